//! Every hostile server of `fixtures/hostile/` against the engine: each request ends, as the file
//! says it has to, and the server has seen the same connections.

use crate::rig::{Record, config, run};
use intact_bench::Length;
use intact_experiment::TlsChoice;
use intact_ledger::{Outcome, Protocol};
use intact_serve::Totals;
use intact_test_servers::{Hostile, TestServer, in_parallel};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the engine waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// No hang: far more than a handful of timeouts in a row.
const HANG: Duration = Duration::from_secs(30);

/// The servers of a folder of `fixtures/`.
pub(crate) fn all(folder: &str) -> Vec<Hostile> {
    let fixtures = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures"));
    Hostile::read_all(&fixtures.join(folder)).unwrap()
}

fn against(hostile: &Hostile, protocol: Protocol, secure: bool) -> (Record, Totals) {
    let server = TestServer::start(hostile.config.clone()).unwrap();
    let addresses = server.addresses();
    let mut config = if secure {
        let port = addresses.tls.unwrap().port();
        config(&format!("https://localhost:{port}/"))
    } else {
        config(&format!("http://{}/", addresses.plain.unwrap()))
    };
    config.timeout = TIMEOUT;
    config.length = Length::Exchanges(6);
    config.axes.http = vec![protocol];
    if secure {
        let (_, tls) = hostile.config.tls.as_ref().unwrap();
        config.axes.tls = vec![TlsChoice::Any];
        let roots = tls.authority.ca_pem().unwrap();
        config.credentials.verify = intact_client::tls::Verify::Roots(roots.as_bytes().into());
    }
    let record = run(config);
    (record, server.end().unwrap())
}

/// The outcomes that were counted.
pub(crate) fn outcomes(record: &Record) -> Vec<String> {
    let (ok, failed) = record.outcomes();
    let mut ids: Vec<String> = failed.into_iter().map(|(id, _)| id).collect();
    if ok > 0 {
        ids.push("ok".to_owned());
    }
    ids.sort();
    ids
}

/// The id of an outcome.
pub(crate) fn id(outcome: &Outcome) -> &'static str {
    outcome.failure().map_or("ok", |kind| kind.id())
}

/// Checks one file over one protocol; what is wrong, if anything.
fn check(hostile: &Hostile, protocol: Protocol, secure: bool) -> Option<String> {
    let expected = match (protocol, secure) {
        (Protocol::Http2, false) => &hostile.expect.http2,
        (Protocol::Http2, true) => &hostile.expect.tls_http2,
        (_, false) => &hostile.expect.http1,
        (_, true) => &hostile.expect.tls_http1,
    };
    let expected: Vec<&str> = expected.iter().map(id).collect();
    let begun = Instant::now();
    let (record, totals) = against(hostile, protocol, secure);
    let took = begun.elapsed();
    let found = outcomes(&record);
    let line = format!(
        "{} over HTTP/{}{}: {found:?} in {took:?}, {} connections here, {} there",
        hostile.name,
        protocol.as_str(),
        if secure { " and TLS" } else { "" },
        record.opened(),
        totals.connections.opened,
    );
    let fits = !found.is_empty() && found.iter().all(|id| expected.contains(&id.as_str()));
    // a connection that is reset at once may never have been one for us
    let lost = found.iter().any(|id| id.starts_with("connect-"));
    let (here, there) = (record.opened(), totals.connections.opened);
    let agrees = here == there || (lost && here < there);
    (!fits || !agrees || took > HANG).then(|| format!("{line}; expected {expected:?}"))
}

#[test]
fn every_hostile_server_is_survived_and_counted_by_kind() {
    let mut checks: Vec<(&Hostile, Protocol, bool)> = Vec::new();
    let all = all("hostile");
    assert!(all.len() >= 24, "files are missing");
    for hostile in &all {
        for protocol in [Protocol::Http11, Protocol::Http2] {
            checks.extend([(hostile, protocol, false), (hostile, protocol, true)]);
        }
    }
    let wrong = in_parallel(checks, |(hostile, protocol, secure)| {
        check(hostile, *protocol, *secure)
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
