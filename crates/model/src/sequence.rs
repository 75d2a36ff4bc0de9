//! The packets of one request through a chain, in order of time: the content of a sequence diagram.

use crate::chain::{Call, Chain, Http, Tls};
use crate::predict::{Counting, Reuse, legs, steps};
use serde::Serialize;

/// The moment from which on a new connection can carry its request.
const READY: &str = "ready";
/// The moment at which the client has everything.
const END: &str = "end";
/// Limit of arrows.
const MOST_ARROWS: usize = 400;

/// One or several packets from one service to another. An arrow from a service to itself is its
/// work, a lookup, a ready connection, or the end of the request.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Arrow {
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// The text of the arrow.
    pub label: String,
    /// When it is sent, in milliseconds from the start.
    pub at_ms: f64,
    /// When it arrives, in milliseconds from the start.
    pub until_ms: f64,
}

/// The arrows of one request, ordered by start.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Sequence {
    /// The participants, the client first.
    pub lanes: Vec<String>,
    /// The arrows. Repeated sequential calls are drawn once.
    pub arrows: Vec<Arrow>,
    /// When the last response arrives, in milliseconds from the start.
    pub end_ms: f64,
    /// Whether the limit of arrows was reached.
    pub cut: bool,
}

/// The sequence of a request. With `Configured`, a call uses a new connection if at least half of
/// its kind do.
pub fn sequence(chain: &Chain, counting: Counting, reuse: Reuse) -> Sequence {
    let mut drawer = SequenceBuilder {
        chain,
        counting,
        reuse,
        arrows: Vec::new(),
        lanes: vec![chain.client.clone()],
        cut: false,
    };
    let end_ms = drawer.calls(&chain.client, &chain.calls, 0.0);
    drawer.arrow(&chain.client, &chain.client, END, end_ms, end_ms);
    drawer.arrows.sort_by(|a, b| a.at_ms.total_cmp(&b.at_ms));
    Sequence {
        lanes: drawer.lanes,
        arrows: drawer.arrows,
        end_ms,
        cut: drawer.cut,
    }
}

struct SequenceBuilder<'a> {
    chain: &'a Chain,
    counting: Counting,
    reuse: Reuse,
    arrows: Vec<Arrow>,
    lanes: Vec<String>,
    cut: bool,
}

impl SequenceBuilder<'_> {
    /// Draws calls that begin at `at`. Returns when the last one ends.
    fn calls(&mut self, from: &str, calls: &[Call], at: f64) -> f64 {
        let mut now = at;
        for step in steps(calls) {
            let begun = now;
            for call in step {
                if self.arrows.len() >= MOST_ARROWS {
                    self.cut = true;
                    return now;
                }
                now = now.max(self.call(from, call, begun));
            }
        }
        now
    }

    fn call(&mut self, from: &str, call: &Call, at: f64) -> f64 {
        if !self.lanes.contains(&call.to) {
            self.lanes.push(call.to.clone());
        }
        let fresh = match self.reuse {
            Reuse::Never => true,
            Reuse::Always => false,
            Reuse::Configured => call.reuse < 0.5,
        };
        let way = call.rtt_ms / 2.0;
        let mut now = at;
        if fresh {
            if call.dns_ms > 0.0 {
                self.arrow(from, from, "lookup", now, now + call.dns_ms);
            }
            now += call.dns_ms;
            for (up, words) in handshake(call, self.counting) {
                let (left, right) = if up {
                    (from, &*call.to)
                } else {
                    (&*call.to, from)
                };
                self.arrow(left, right, words, now, now + way);
                now += way;
            }
            // the computation of the handshakes, in addition to their trips
            let leg = legs(call, self.counting);
            now = now.max(at + leg.setup_ms);
            self.arrow(from, from, READY, now, now);
        }
        let times = match (call.times, call.at_once) {
            (1, _) => String::new(),
            (times, true) => format!(" x {times}"),
            (times, false) => format!(" 1 of {times}"),
        };
        self.arrow(from, &call.to, &format!("request{times}"), now, now + way);
        let mut done = now + way;
        if let Some(service) = self.chain.services.get(&call.to) {
            if service.work_ms > 0.0 {
                self.arrow(&call.to, &call.to, "work", done, done + service.work_ms);
            }
            done = self.calls(&call.to, &service.calls, done + service.work_ms);
        }
        self.arrow(&call.to, from, "answer", done, done + way);
        let once = done + way - at;
        if call.at_once {
            at + once
        } else {
            at + once * call.times as f64
        }
    }

    fn arrow(&mut self, from: &str, to: &str, words: &str, at_ms: f64, until_ms: f64) {
        self.arrows.push(Arrow {
            from: from.to_owned(),
            to: to.to_owned(),
            label: words.to_owned(),
            at_ms,
            until_ms,
        });
    }
}

/// The handshake's packets before the request; true for those of the client.
fn handshake(call: &Call, counting: Counting) -> Vec<(bool, &'static str)> {
    const UP: bool = true;
    const DOWN: bool = false;
    let series = counting == Counting::Series;
    let short = [(UP, "ClientHello"), (DOWN, "ServerHello ..")];
    let mut all = Vec::new();
    if call.http == Http::Tcp {
        all.extend([(UP, "SYN"), (DOWN, "SYN, ACK")]);
        if series {
            all.push((UP, "ACK"));
        }
    }
    match (call.http, call.tls) {
        (_, Tls::None | Tls::Tls13EarlyData) => {}
        (Http::Tcp, Tls::Tls12) => all.extend([
            (UP, "ClientHello"),
            (DOWN, "ServerHello .."),
            (UP, "Key, Finished"),
            (DOWN, "Finished"),
        ]),
        (Http::Quic, _) | (Http::Tcp, Tls::Tls12Resumed | Tls::Tls13) => {
            all.extend(short);
            if series {
                all.push((UP, "Finished"));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Service;
    use crate::predict::{handshake_trips, predict};
    use proptest::prelude::*;

    fn any_call(to: String) -> impl Strategy<Value = Call> {
        (
            (
                0..100_u32,
                0..5_u32,
                0..3_u32,
                0..5_usize,
                any::<bool>(),
                0..2_u32,
            ),
            (1..4_u64, any::<bool>(), 0..4_u8, 0..100_000_u64),
        )
            .prop_map(
                move |(
                    (rtt, dns, crypto, tls, quic, reuse),
                    (times, at_once, group, answer_bytes),
                )| {
                    let tls = Tls::ALL[tls];
                    let can_quic = matches!(tls, Tls::Tls13 | Tls::Tls13EarlyData);
                    Call {
                        to: to.clone(),
                        rtt_ms: f64::from(rtt),
                        dns_ms: f64::from(dns),
                        crypto_ms: f64::from(crypto),
                        tls,
                        http: if quic && can_quic {
                            Http::Quic
                        } else {
                            Http::Tcp
                        },
                        reuse: f64::from(reuse),
                        times,
                        at_once,
                        group: (group < 2).then(|| group.to_string()),
                        answer_bytes,
                    }
                },
            )
    }

    fn any_calls(to: &'static str) -> impl Strategy<Value = Vec<Call>> {
        proptest::collection::vec(any_call(to.to_owned()), 1..4)
    }

    fn any_chain() -> impl Strategy<Value = Chain> {
        (any_calls("a"), any_calls("b"), 0..9_u32, 0..9_u32).prop_map(
            |(calls, inner, work_a, work_b)| {
                let a = Service {
                    work_ms: f64::from(work_a),
                    calls: inner,
                };
                let b = Service {
                    work_ms: f64::from(work_b),
                    calls: Vec::new(),
                };
                Chain {
                    name: String::new(),
                    client: "client".to_owned(),
                    calls,
                    services: [("a".to_owned(), a), ("b".to_owned(), b)].into(),
                }
            },
        )
    }

    proptest! {
        #[test]
        fn the_diagram_ends_when_the_prediction_says(chain in any_chain()) {
            for counting in [Counting::Tcp, Counting::Series] {
                for reuse in [Reuse::Never, Reuse::Always, Reuse::Configured] {
                    let drawn = sequence(&chain, counting, reuse);
                    let predicted = predict(&chain, counting, reuse).total_ms;
                    prop_assert!(!drawn.cut);
                    prop_assert!((drawn.end_ms - predicted).abs() < 1e-6, "{} {}", drawn.end_ms, predicted);
                    let last = drawn.arrows.iter().map(|arrow| arrow.until_ms).fold(0.0, f64::max);
                    prop_assert!(last <= drawn.end_ms + 1e-6);
                    let ends = drawn.arrows.iter().filter(|arrow| arrow.label == END);
                    prop_assert_eq!(ends.count(), 1);
                    // a connection is ready before its request is sent, never without a handshake
                    let count = |label: &str| drawn.arrows.iter().filter(|arrow| arrow.label == label).count();
                    let has_new = drawn.arrows.iter().any(|arrow| arrow.label.starts_with("SYN") || arrow.label == "ClientHello");
                    prop_assert!(!has_new || count(READY) > 0);
                    prop_assert!(reuse != Reuse::Always || count(READY) == 0);
                    // a repeated call is drawn once, so other calls may end after the last arrow
                    let is_whole = chain.calls.iter().all(|call| call.times == 1 || call.at_once)
                        && chain.services.values().all(|one| one.calls.iter().all(|call| call.times == 1 || call.at_once));
                    prop_assert!(!is_whole || (last - drawn.end_ms).abs() < 1e-6, "{} {}", last, drawn.end_ms);
                    let works = drawn.arrows.iter().filter(|arrow| arrow.label == "work");
                    let works = works.map(|arrow| arrow.until_ms - arrow.at_ms);
                    prop_assert!(works.clone().all(|work| work > 0.0));
                    let does_work = chain.services.get("a").is_some_and(|one| one.work_ms > 0.0);
                    prop_assert!(!does_work || works.count() >= 1);
                }
            }
        }

        #[test]
        fn a_handshake_has_as_many_arrows_as_trips(call in any_call("a".to_owned())) {
            for counting in [Counting::Tcp, Counting::Series] {
                let (transport, tls) = handshake_trips(&call, counting);
                prop_assert_eq!(handshake(&call, counting).len() as u32, transport + tls);
            }
        }
    }
}
