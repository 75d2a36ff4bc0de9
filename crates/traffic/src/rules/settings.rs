//! The settings that a finding advises: those of the recognised client or server. They are data of
//! `advice`. Must not name a setting.

use crate::Counts;
use intact_advice::{Client, Remedy, Server, unrecognised};
use intact_document::finding::Finding;
use intact_document::statement::Statement;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The client of most connections to a destination, if it is recognised; `idle` is the idle time
/// after which it closes, in nanoseconds.
pub(super) fn client(counts: &Counts, idle: Option<u64>) -> Option<&'static Client> {
    let most = |names: &BTreeMap<Arc<str>, u64>| {
        let most = names.iter().max_by_key(|(_, count)| **count);
        most.map(|(name, _)| Arc::clone(name))
    };
    let (command, agent) = (most(&counts.commands), most(&counts.agents));
    let idle_s = idle.map(|idle| idle as f64 / 1e9);
    let client = Client::recognise(command.as_deref(), agent.as_deref(), idle_s)?;
    let mut protocols = counts.protocols.keys();
    let has_streams = !counts.protocols.is_empty() && protocols.all(|one| one.has_streams());
    Some(if has_streams {
        client.with_streams()
    } else {
        client
    })
}

/// The server of a destination whose connections name one product that is known.
pub(super) fn server(counts: &Counts) -> Option<&'static Server> {
    Server::recognise(counts.servers.keys().map(|product| &**product))
}

/// The finding with the client's own name of the remedy, and the command that prints what was
/// measured of it.
pub(super) fn for_client(remedy: Remedy, client: Option<&Client>, mut finding: Finding) -> Finding {
    let own = client.and_then(|client| client.advice(remedy));
    if client.is_some_and(|client| client.is_browser) {
        // the advice to a program is none to a page
        if let Some(advice) = own {
            finding.fix = Statement::text(advice);
        }
        return finding;
    }
    let advice = own.or_else(|| unrecognised(remedy).map(str::to_owned));
    if let Some(advice) = advice {
        finding.fix = finding.fix.then(". ", Statement::text(advice));
    }
    if let Some(name) = client.and_then(|client| client.fix.as_deref()) {
        let command = ["intact fix", name].join(" ");
        let measured = format!("`{}` has what was measured", command.trim_end());
        finding.fix = finding.fix.and(Statement::text(measured));
    }
    finding
}
