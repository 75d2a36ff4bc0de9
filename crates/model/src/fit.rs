//! Derives a chain from traffic: one program, its destinations, their means.

use crate::chain::{Call, Chain, Http, Service, Tls};
use crate::predict::{Counting, handshake_trips};
use intact_ledger::{Caveat, Handshake, TlsVersion};
use intact_traffic::{Destination, ObservedFacts};
use serde::Serialize;
use std::collections::BTreeMap;

/// A chain derived from a ledger.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fit {
    /// The chain. Its calls are sequential, because latencies add up.
    pub chain: Chain,
    /// Sum of the mean latencies of its requests, in milliseconds.
    pub measured_ms: f64,
    /// Destinations that are not in the chain, with the reason.
    pub left_out: Vec<String>,
    /// Caveats of the ledger, which apply to the chain.
    pub caveats: Vec<Caveat>,
}

/// The chain of the traffic; `None` if no destination has enough data.
pub fn fit(client: &str, facts: &ObservedFacts) -> Option<Fit> {
    let mut fit = Fit {
        chain: Chain {
            name: String::new(),
            client: client.to_owned(),
            calls: Vec::new(),
            services: BTreeMap::new(),
        },
        measured_ms: 0.0,
        left_out: Vec::new(),
        caveats: facts.caveats.clone(),
    };
    for destination in &facts.destinations {
        match one(destination) {
            Ok((call, service, measured_ms)) => {
                fit.measured_ms += measured_ms;
                fit.chain.services.insert(call.to.clone(), service);
                fit.chain.calls.push(call);
            }
            Err(why) => fit.left_out.push(format!("{}: {why}", destination.origin)),
        }
    }
    (!fit.chain.calls.is_empty()).then_some(fit)
}

fn one(destination: &Destination) -> Result<(Call, Service, f64), &'static str> {
    let figures = &destination.figures;
    let [dns, connect, ssl, _] = figures.seen_setup_ms();
    let rtt_ms = connect.ok_or("no new connection was observed, so the round trip is unknown")?;
    let measured_ms = figures
        .outbound_ms
        .ok_or("no request was observed from beginning to end")?;
    let reuse = figures
        .counted
        .counts
        .reuse
        .ok_or("the reuse of its connections is unknown")?;
    let without_setup = figures
        .seen_without_setup_ms()
        .ok_or("no request was observed from beginning to end")?;
    let most = destination.tls.iter().max_by_key(|kind| kind.count);
    let tls = most.map_or(Tls::None, |kind| match (kind.version, kind.handshake) {
        (Some(TlsVersion::Tls13), Some(Handshake::EarlyData)) => Tls::Tls13EarlyData,
        (Some(TlsVersion::Tls13), _) => Tls::Tls13,
        (_, Some(Handshake::Resumed)) => Tls::Tls12Resumed,
        _ => Tls::Tls12,
    });
    let measured = MeasuredCall {
        dns_ms: dns,
        rtt_ms,
        ssl_ms: ssl,
        without_setup_ms: without_setup,
        tls,
        reuse,
    };
    let (mut call, service) = measured.call(&destination.origin);
    call.times = figures.counted.requests.total;
    Ok((call, service, measured_ms))
}

/// Means of the requests to one server over TCP, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredCall {
    /// The lookup of a name.
    pub dns_ms: Option<f64>,
    /// The transport handshake: a round trip.
    pub rtt_ms: f64,
    /// The TLS handshake.
    pub ssl_ms: Option<f64>,
    /// A request without the setup.
    pub without_setup_ms: f64,
    /// TLS.
    pub tls: Tls,
    /// Share of the requests that reuse a connection, 0 to 1.
    pub reuse: f64,
}

impl MeasuredCall {
    /// The chain of one such request.
    pub fn chain(&self) -> Chain {
        let (call, service) = self.call("server");
        Chain {
            name: String::new(),
            client: "client".to_owned(),
            services: BTreeMap::from([(call.to.clone(), service)]),
            calls: vec![call],
        }
    }

    fn call(&self, to: &str) -> (Call, Service) {
        let mut call = Call {
            to: to.to_owned(),
            rtt_ms: self.rtt_ms,
            dns_ms: self.dns_ms.unwrap_or(0.0),
            crypto_ms: 0.0,
            tls: self.tls,
            http: Http::Tcp,
            reuse: self.reuse,
            times: 1,
            at_once: false,
            group: None,
            // the measured time includes slow start
            answer_bytes: 0,
        };
        let (_, trips) = handshake_trips(&call, Counting::Tcp);
        let trips_ms = self.rtt_ms / 2.0 * f64::from(trips);
        call.crypto_ms = self.ssl_ms.map_or(0.0, |ssl| (ssl - trips_ms).max(0.0));
        let service = Service {
            work_ms: (self.without_setup_ms - self.rtt_ms).max(0.0),
            calls: Vec::new(),
        };
        (call, service)
    }
}
