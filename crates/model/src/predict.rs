//! The arithmetic: the trips of a call, then calls inside calls.

use crate::chain::{Call, Chain, Http, Tls};
use serde::Serialize;
use std::collections::BTreeMap;

/// Number of segments that a new connection may send before the first acknowledgement (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
/// Bytes per segment on Ethernet.
const SEGMENT: u64 = 1460;

/// How packets are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Counting {
    /// The last packet of a handshake travels with the next packet.
    Tcp,
    /// Each packet waits for the one before, as in diagrams on paper.
    Series,
}

/// Which calls reuse a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reuse {
    /// The share of the chain.
    Configured,
    /// None.
    Never,
    /// All.
    Always,
}

/// The prediction for one request through a chain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Prediction {
    /// Mean time in milliseconds.
    pub total_ms: f64,
    /// Number of exchanges.
    pub exchanges: f64,
    /// Mean number of opened connections.
    pub connections: f64,
}

const NOTHING: Prediction = Prediction {
    total_ms: 0.0,
    exchanges: 0.0,
    connections: 0.0,
};

/// The prediction for one call without the service that it calls, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CallPrediction {
    /// Lookup, handshakes and slow start of a new connection.
    pub setup_ms: f64,
    /// Request and response.
    pub exchange_ms: f64,
}

/// One-way trips of handshakes before the request can be sent: of TCP (or QUIC), and of TLS.
pub(crate) fn handshake_trips(call: &Call, counting: Counting) -> (u32, u32) {
    let series = counting == Counting::Series;
    if call.http == Http::Quic {
        return match call.tls {
            Tls::Tls13EarlyData => (0, 0),
            _ if series => (3, 0),
            _ => (2, 0),
        };
    }
    let tcp = if series { 3 } else { 2 };
    let tls = match (call.tls, series) {
        (Tls::None | Tls::Tls13EarlyData, _) => 0,
        (Tls::Tls12, _) => 4,
        (Tls::Tls12Resumed | Tls::Tls13, true) => 3,
        (Tls::Tls12Resumed | Tls::Tls13, false) => 2,
    };
    (tcp, tls)
}

/// Additional round trips of a response of this size on a new connection.
fn slow_start(bytes: u64) -> u32 {
    let (mut window, mut sent, mut trips) = (INITIAL_WINDOW * SEGMENT, 0_u64, 0);
    while sent.saturating_add(window) < bytes {
        sent += window;
        window = window.saturating_mul(2);
        trips += 1;
    }
    trips
}

/// The prediction for a call.
pub fn legs(call: &Call, counting: Counting) -> CallPrediction {
    let (transport, tls) = handshake_trips(call, counting);
    let way = call.rtt_ms / 2.0;
    let crypto = match call.tls {
        Tls::None => 0.0,
        _ => call.crypto_ms,
    };
    CallPrediction {
        setup_ms: call.dns_ms
            + way * f64::from(transport + tls)
            + crypto
            + call.rtt_ms * f64::from(slow_start(call.answer_bytes)),
        exchange_ms: call.rtt_ms,
    }
}

/// Groups of concurrent calls, in order. A group has the position of its first call.
pub(crate) fn steps(calls: &[Call]) -> Vec<Vec<&Call>> {
    let mut steps: Vec<Vec<&Call>> = Vec::new();
    for call in calls {
        let group = call.group.as_ref();
        let same = |step: &&mut Vec<&Call>| group.is_some() && step[0].group.as_ref() == group;
        match steps.iter_mut().find(same) {
            Some(step) => step.push(call),
            None => steps.push(vec![call]),
        }
    }
    steps
}

/// The prediction for one request through the chain.
pub fn predict(chain: &Chain, counting: Counting, reuse: Reuse) -> Prediction {
    let mut predictor = Predictor {
        chain,
        counting,
        reuse,
        known: BTreeMap::new(),
    };
    predictor.calls(&chain.calls)
}

struct Predictor<'a> {
    chain: &'a Chain,
    counting: Counting,
    reuse: Reuse,
    /// The prediction for a request of each known service.
    known: BTreeMap<&'a str, Prediction>,
}

impl<'a> Predictor<'a> {
    /// The prediction for calls. A group takes as long as its longest call.
    fn calls(&mut self, calls: &'a [Call]) -> Prediction {
        let mut sum = NOTHING;
        for step in steps(calls) {
            let mut longest: f64 = 0.0;
            for call in step {
                let one = self.call(call);
                sum.exchanges += one.exchanges;
                sum.connections += one.connections;
                longest = longest.max(one.total_ms);
            }
            sum.total_ms += longest;
        }
        sum
    }

    fn call(&mut self, call: &'a Call) -> Prediction {
        let leg = legs(call, self.counting);
        let fresh = match self.reuse {
            Reuse::Configured => 1.0 - call.reuse,
            Reuse::Never => 1.0,
            Reuse::Always => 0.0,
        };
        let inner = self.service(&call.to);
        let one = leg.exchange_ms + leg.setup_ms * fresh + inner.total_ms;
        let times = call.times as f64;
        Prediction {
            total_ms: if call.at_once { one } else { one * times },
            exchanges: times * (1.0 + inner.exchanges),
            connections: times * (fresh + inner.connections),
        }
    }

    fn service(&mut self, name: &'a str) -> Prediction {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let Some(service) = self.chain.services.get(name) else {
            return NOTHING;
        };
        let mut one = self.calls(&service.calls);
        one.total_ms += service.work_ms;
        self.known.insert(name, one);
        one
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::parse;

    fn at_15_ms_one_way(tls: &str) -> Chain {
        parse(&format!(
            "[client]\ncalls = [{{ to = \"shop\", rtt = \"30ms\", tls = \"{tls}\" }}]\n[service.shop]\n"
        ))
        .unwrap()
    }

    #[test]
    fn both_counting_rules_give_the_figures_of_the_paper_and_of_the_link() {
        let total_ms =
            |tls, counting, reuse| predict(&at_15_ms_one_way(tls), counting, reuse).total_ms;
        assert_eq!(total_ms("1.2", Counting::Series, Reuse::Never), 135.0);
        assert_eq!(total_ms("1.2", Counting::Series, Reuse::Always), 30.0);
        assert_eq!(total_ms("1.2", Counting::Tcp, Reuse::Never), 120.0);
        assert_eq!(total_ms("1.2", Counting::Tcp, Reuse::Always), 30.0);
        assert_eq!(total_ms("1.3", Counting::Tcp, Reuse::Never), 90.0);
        assert_eq!(
            total_ms("1.3-early-data", Counting::Tcp, Reuse::Never),
            60.0
        );
        assert_eq!(total_ms("1.2-resumed", Counting::Tcp, Reuse::Never), 90.0);
        assert_eq!(total_ms("none", Counting::Tcp, Reuse::Never), 60.0);
    }

    #[test]
    fn responses_above_the_initial_window_take_more_round_trips() {
        assert_eq!(slow_start(14_600), 0);
        assert_eq!(slow_start(14_601), 1);
        assert_eq!(slow_start(43_800), 1);
        assert_eq!(slow_start(43_801), 2);
        assert!(slow_start(u64::MAX) < 64);
    }

    #[test]
    fn calls_inside_calls_multiply_and_groups_are_concurrent() {
        let chain = parse(
            r#"
            [defaults]
            reuse = true
            tls = "none"
            [client]
            calls = [{ to = "shop", rtt = "10ms", times = 2 }]
            [service.shop]
            work = "3ms"
            calls = [
              { to = "stock", rtt = "1ms", times = 3, reuse = false },
              { to = "price", rtt = "4ms", group = "look" },
              { to = "taste", rtt = "6ms", group = "look", times = 2, at-once = true },
            ]
            [service.stock]
            [service.price]
            [service.taste]
            "#,
        )
        .unwrap();
        let one = predict(&chain, Counting::Tcp, Reuse::Configured);
        // shop: 10 + 3 + 3 x (1 + 1) + max(4, 6)
        assert_eq!(one.total_ms, 2.0 * 25.0);
        assert_eq!(one.exchanges, 2.0 * (1.0 + 3.0 + 1.0 + 2.0));
        assert_eq!(one.connections, 6.0);
    }
}
