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
    let mut call = Call {
        to: destination.origin.clone(),
        rtt_ms,
        dns_ms: dns.unwrap_or(0.0),
        crypto_ms: 0.0,
        tls,
        http: Http::Tcp,
        reuse,
        times: figures.counted.requests.total,
        at_once: false,
        group: None,
        // the measured time includes slow start
        answer_bytes: 0,
    };
    let (_, trips) = handshake_trips(&call, Counting::Tcp);
    let trips_ms = rtt_ms / 2.0 * f64::from(trips);
    call.crypto_ms = ssl.map_or(0.0, |ssl| (ssl - trips_ms).max(0.0));
    let service = Service {
        work_ms: (without_setup - rtt_ms).max(0.0),
        calls: Vec::new(),
    };
    Ok((call, service, measured_ms))
}
