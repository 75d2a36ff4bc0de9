//! Names: the duration of a lookup, the addresses of both families, their TTL, and the aliases.

use crate::context::ProbeContext;
use crate::prober::Probed;
use intact_client::Endpoint;
use intact_client::dns::{self, NameServers, Patience};
use intact_ledger::server_profile::{DnsQuery, Found, Names};
use intact_ledger::{Event, Lookup, Span};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// How long the name server is asked.
const PATIENCE: Patience = Patience {
    timeout: Duration::from_secs(1),
    tries: 2,
};

pub(super) fn probe(context: &mut ProbeContext<'_>) -> Probed {
    let address = &context.plans.address;
    let endpoint = context
        .config
        .route
        .endpoint(&address.host, address.port)
        .map_err(crate::ConfigError::from)?;
    let Endpoint::Name { host, port, .. } = endpoint else {
        return Ok(());
    };
    let clock = context.prober.clock;
    let from = clock.now();
    let system = (&*host, port).to_socket_addrs();
    let span = Span::new(from, clock.now());
    let mut names = Names {
        name: host.to_string(),
        system: Some(span),
        addresses: match system {
            Ok(found) => Found::Value(found.map(|address| address.ip()).collect()),
            Err(error) => Found::Error(error.to_string()),
        },
        asked: Vec::new(),
    };
    record(context, &names.addresses, &host, span, "getaddrinfo", None);
    let servers = NameServers::of_system().map_or_else(|_| Vec::new(), |found| found.servers);
    if let Some(&server) = servers.first()
        && host.contains('.')
        && !host.ends_with(".localhost")
    {
        for v6 in [false, true] {
            if context.prober.observer.stopped() {
                break;
            }
            let asked = ask(context, server, &host, v6);
            names.asked.push(asked);
        }
    }
    context.profile.names = Some(names);
    Ok(())
}

fn ask(context: &mut ProbeContext<'_>, server: SocketAddr, host: &str, v6: bool) -> DnsQuery {
    let clock = context.prober.clock;
    let from = clock.now();
    let [answer] = dns::ask(server, host, [v6], PATIENCE);
    let answer = match answer {
        Ok(answer) => Found::Value(answer),
        Err(error) => Found::Error(error.to_string()),
    };
    let span = Span::new(from, clock.now());
    let (addresses, ttl) = match &answer {
        Found::Value(answer) => (Found::Value(answer.addresses.clone()), answer.ttl_s),
        Found::Error(words) => (Found::Error(words.clone()), None),
    };
    record(context, &addresses, host, span, &server.to_string(), ttl);
    DnsQuery {
        kind: if v6 { "AAAA" } else { "A" }.to_owned(),
        server: server.to_string(),
        span,
        answer,
    }
}

fn record(
    context: &mut ProbeContext<'_>,
    addresses: &Found<Vec<std::net::IpAddr>>,
    host: &str,
    span: Span,
    resolver: &str,
    ttl_s: Option<u32>,
) {
    let lookup = Lookup {
        name: Some(host.into()),
        span,
        answer: Some(match addresses {
            Found::Value(found) => Ok(found.clone()),
            Found::Error(words) => Err(words.as_str().into()),
        }),
        ttl_s,
        resolver: Some(resolver.into()),
        ..Lookup::default()
    };
    context.prober.observer.event(Event::Lookup(&lookup));
}
