//! The part of the page about versions of HTTP and TLS: does a second request reuse the connection?
//! Also whether a connection survives other methods.

use crate::page::*;
use intact_document::grouping::grouped;
use intact_ledger::Failure;
use intact_ledger::server_profile::{EarlyData, OldTls};
use intact_servers::check::{CheckFacts, Http3Facts, VersionFacts};
use intact_units::Quantity::Time;
use intact_units::plural::counted;

/// What each of the versions has, in order.
fn joined<'a>(
    versions: &[&'a VersionFacts],
    what: impl Fn(&'a VersionFacts) -> Option<&'a str>,
) -> Option<String> {
    let all: Vec<&str> = versions.iter().filter_map(|one| what(one)).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Whether a connection was not kept that the version keeps by default.
fn is_closed(one: &VersionFacts) -> bool {
    one.reused == Some(false) && one.http != "1.0"
}

/// HTTP and TLS versions, and whether a connection survives other methods.
pub(super) fn versions(facts: &CheckFacts) -> Section {
    // a TLS version that the server refuses takes one line, not one for each version of HTTP
    let is_refused = |tls: Option<&'static str>| {
        let mut all = facts.versions.iter().filter(|one| one.tls == tls);
        tls.is_some() && all.all(|one| one.failed == Some(Failure::TlsVersion.id()))
    };
    let shown = facts.versions.iter().filter(|one| !is_refused(one.tls));
    // a row is one version of HTTP over the versions of TLS in which it was the same
    let shown = grouped(shown.map(|one| {
        let fields = (&one.connection, &one.keep_alive);
        ((one.name(), reused(one), one.curl, fields), one)
    }));
    let table = Rows::of(&shown)
        .column("HTTP", |(_, all)| all[0].name())
        .column("TLS", |(_, all)| joined(all, |one| one.tls))
        .column("reused", |(_, all)| {
            Cell::from(reused(all[0])).alarm_if(is_closed(all[0]))
        })
        .about("the server responded to a second request on the same connection")
        .ranked(1, "curl says", |(_, all)| all[0].curl)
        .about("after the first response")
        .ranked(2, "Connection", |(_, all)| all[0].connection.as_ref())
        .about("as sent")
        .ranked(3, "Keep-Alive", |(_, all)| all[0].keep_alive.as_ref())
        .about("as sent")
        .full("cipher", |(_, all)| {
            joined(all, |one| one.cipher.as_deref())
        })
        .table();
    let refused = facts.versions.iter().filter_map(|one| one.tls);
    let mut refused: Vec<&str> = refused.filter(|tls| is_refused(Some(tls))).collect();
    refused.dedup();
    let refused = refused
        .into_iter()
        .map(|tls| note(text!("TLS {} offered: refused", tls)));
    let older = offered(&facts.tls_older);
    let over_quic = facts.http3.as_ref().filter(|_| facts.drain.is_none());
    let (kept, others): (Vec<_>, Vec<_>) =
        facts.methods.iter().partition(|one| one.kept == Some(true));
    let kept = kept.into_iter().map(|one| match one.status {
        Some(status) => format!("{} ({status})", one.what),
        None => one.what.clone(),
    });
    let kept = kept.collect::<Vec<String>>().join(", ");
    let kept = (!kept.is_empty()).then(|| note(text!("The connection is kept after {}.", kept)));
    let survives = Rows::of(&others)
        .column("request", |one| &one.what)
        .column("status", |one| one.status.map(|status| status.to_string()))
        .column("connection after it", |one| {
            let word = match one.kept {
                Some(_) => "closed",
                None => one.failed.unwrap_or("no response"),
            };
            Cell::from(word).alarm_if(one.kept == Some(false))
        })
        .table()
        .caption("After other methods and statuses");
    let mut closed = facts.versions.iter().map(is_closed);
    let is_odd = closed.any(|one| one) || !others.is_empty();
    Section::new(
        "versions",
        "Versions: does a second request reuse the connection?",
    )
    // as the verdict says
    .detail_if(!is_odd)
    .summary(table)
    .summary(over_quic.map(alt_svc))
    .summary(refused.chain(older).chain(kept).collect::<Vec<Block>>())
    .summary(survives)
}

/// The old versions of TLS, those with one result together.
fn offered(old: &[OldTls]) -> Vec<Block> {
    let results = grouped(old.iter().map(|one| {
        let result = match one.accepted {
            Some(true) => "accepted",
            Some(false) => "refused",
            None => "no response",
        };
        let detail = one.detail.as_ref();
        let detail = detail.map_or_else(String::new, |detail| format!(" ({detail})"));
        (format!("{result}{detail}"), one.version.as_str())
    }));
    let notes = results
        .into_iter()
        .map(|(result, versions)| note(text!("TLS {} offered: {}", versions.join(", "), result)));
    notes.collect()
}

/// The announcement of HTTP/3: whether it works.
fn alt_svc(seen: &Http3Facts) -> Block {
    let port = format!("UDP port {}", seen.port);
    let at = match &seen.host {
        Some(host) => format!("{port} of {host}"),
        None => port,
    };
    let result = match (seen.works, seen.is_blocked, seen.failed) {
        (Some(true), ..) => format!("h3 works{}", observed(seen)),
        (_, Some(true), failed) => format!("h3 is blocked ({})", failed.unwrap_or("no response")),
        (Some(false), _, failed) => format!("h3 fails ({})", failed.unwrap_or("no response")),
        (None, ..) => "not tried: this build has no HTTP/3 (feature http3)".to_owned(),
    };
    let announcement = match seen.announced {
        Some(_) => "Alt-Svc announces h3 on",
        None => "Alt-Svc does not announce h3; on",
    };
    note(text!("{} {}: {}", announcement, at, result))
}

/// What the connections of HTTP/3 showed, in words.
fn observed(seen: &Http3Facts) -> String {
    let first = seen.connections.first();
    let setup = first.and_then(|first| first.setup_ms);
    let setup = setup.map(|setup| format!(", setup {}", Time(setup)));
    let responses = seen.responses.zip(seen.wanted);
    let responses = responses.map(|(responses, wanted)| {
        let requests = counted(u64::from(wanted), "request");
        format!(", {responses} responses to {requests} on one connection")
    });
    let resumed = match seen.resumed {
        Some(true) => ", a second connection resumed the session",
        Some(false) => ", the session was not resumed",
        None => ", resumption was not observed",
    };
    let early = match seen.early_data {
        Some(EarlyData::Accepted) => ", 0-RTT was accepted",
        Some(EarlyData::Rejected) => ", 0-RTT was rejected",
        Some(EarlyData::NotOffered) => ", the ticket does not allow 0-RTT",
        // without resumption there is none
        None if seen.resumed == Some(false) => "",
        None => ", 0-RTT was not observed",
    };
    [
        setup.unwrap_or_default(),
        responses.unwrap_or_default(),
        resumed.to_owned(),
        early.to_owned(),
    ]
    .concat()
}

/// Whether the connection was reused, or why there was nothing to reuse.
fn reused(one: &VersionFacts) -> &'static str {
    let not_supported = [Failure::TlsAlpn, Failure::TlsVersion].map(Failure::id);
    match (one.reused, one.failed) {
        (Some(true), _) => "yes",
        (Some(false), _) => "no",
        (None, Some(kind)) if not_supported.contains(&kind) => "not supported",
        (None, Some(_)) if one.http == "2" && one.tls.is_none() => "not supported",
        (None, Some(kind)) => kind,
        (None, None) => "",
    }
}
