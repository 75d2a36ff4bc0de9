//! The row test: `watch`, `audit` of a capture of the same packets, and the server record the same
//! traffic. Their rows are compared field by field.
//!
//! `watch` and `audit` read the same connection, between the relay and the server. They may differ
//! only in
//! - ids, addresses and the process, which only one of them knows;
//! - the interval of TCP keep-alive probes, which is an option of the program's socket;
//! - bytes that the server sends after the client has closed, such as its own `close_notify`: the
//!   relay may be gone by then;
//! - times: `watch` takes a time when it reads, `audit` has the kernel's. Phases are compared by
//!   presence and lower bounds;
//! - `headers_to_body` and `blocked`, which are absent where a read or a packet has both ends of
//!   the phase;
//! - the key of the fingerprints: equal requests have equal fingerprints within each of the two.
//!
//! The server sees no setup and no request that was sent after it had closed. For a fault it
//! records what a careful client counts. It does not see an end that the client announces as such.

use super::Capture;
use crate::peers::program;
use crate::program::intact;
use intact_ledger::store::Reader;
use intact_ledger::{
    Close, Connection, Exchange, Failure, OtherEnd, Outcome, Phase, Reuse, Row, Side, Span,
};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Phases that the client's pauses make long: the connection, the ordinal, the phase, and a bound
/// below its length in milliseconds.
const PAUSES: [(&str, u32, Phase, u64); 5] = [
    ("/echo/slow", 1, Phase::Send, 200),
    ("/delay/5000", 1, Phase::Wait, 250),
    ("/fault/stall", 1, Phase::Wait, 250),
    ("/hang-up", 2, Phase::Receive, 200),
    ("/h2/1", 4, Phase::Wait, 250),
];

/// The most that the server sends after the client has closed.
const LATE_BYTES: u64 = 64;

/// One connection with its exchanges, by the first target that it was asked for.
#[derive(Debug)]
struct Recorded {
    connection: Connection,
    exchanges: Vec<Exchange>,
    close: Option<Close>,
}

/// The connections of a ledger. A connection without exchanges has no name.
fn read(folder: &Path) -> BTreeMap<String, Recorded> {
    let reader = Reader::open(folder).unwrap();
    let mut all: BTreeMap<u64, Recorded> = BTreeMap::new();
    for row in reader.events().unwrap() {
        match row {
            Row::Opened(connection) | Row::Revised(connection) => {
                let known = all.entry(connection.id.0).or_insert_with(|| Recorded {
                    connection: *connection.clone(),
                    exchanges: Vec::new(),
                    close: None,
                });
                known.connection = *connection;
            }
            Row::Exchange(exchange) => {
                let of = exchange.connection.unwrap().0;
                all.get_mut(&of).unwrap().exchanges.push(*exchange);
            }
            Row::Closed(closed) => {
                all.get_mut(&closed.connection.0).unwrap().close = Some(closed.close);
            }
            _ => {}
        }
    }
    let mut named = BTreeMap::new();
    for mut one in all.into_values() {
        one.exchanges.sort_by_key(|exchange| exchange.ordinal);
        let first = one.exchanges.first();
        let name = first.map_or_else(String::new, |first| {
            first.target.as_ref().unwrap().as_str().to_owned()
        });
        assert!(named.insert(name.clone(), one).is_none(), "{name} twice");
    }
    named
}

/// A connection without what only one observer sees, and without times.
fn comparable(recorded: &Recorded) -> Connection {
    let mut one = recorded.connection.clone();
    one.id = intact_ledger::ConnectionId(0);
    one.at = intact_ledger::Nanos(0);
    one.setup = intact_ledger::Setup::default();
    (one.local, one.peer, one.owner, one.dialled) = (None, None, None, None);
    one.stack = None;
    one
}

/// An exchange without ids, times, the key of its fingerprint, and what only packets or the kernel
/// show.
fn comparable_exchange(exchange: &Exchange) -> Exchange {
    let mut one = exchange.clone();
    let zero = intact_ledger::Nanos(0);
    (one.id, one.at, one.end, one.connection) = (0, zero, zero, None);
    one.spans = intact_ledger::Spans::default();
    one.fingerprint = None;
    (one.retransmissions, one.delayed_acks) = (None, None);
    one.acknowledged_after = None;
    one.body.left_after = None;
    one
}

/// The phases of an exchange follow each other and add up to its latency.
fn assert_adds_up(who: &str, exchange: &Exchange) {
    let mut at = exchange.at;
    let mut sum = 0;
    for span in Phase::ALL
        .iter()
        .filter_map(|&phase| exchange.spans.of(phase))
    {
        assert!(span.start >= at, "{who}: {exchange:#?}");
        at = span.end;
        sum += span.nanos();
    }
    assert_eq!(sum, exchange.latency(), "{who}: {exchange:#?}");
}

fn assert_same_exchange(name: &str, watched: &Exchange, audited: &Exchange) {
    assert_eq!(
        comparable_exchange(watched),
        comparable_exchange(audited),
        "{name}"
    );
    // the relay's kernel counts its own segments, and only where a response was slow
    assert_eq!(watched.delayed_acks, None, "{name}");
    let in_packets = (audited.retransmissions, audited.delayed_acks);
    assert!(
        matches!(in_packets, (Some(_), Some(_))),
        "{name}: {in_packets:?}"
    );
    assert_adds_up("watch", watched);
    assert_adds_up("audit", audited);
    for phase in Phase::ALL {
        let both = [watched, audited].map(|one| one.spans.of(phase));
        if !matches!(phase, Phase::HeadersToBody | Phase::Blocked) {
            let [ours, theirs] = both.map(|span| span.is_some());
            assert_eq!(ours, theirs, "{name} {phase:?}");
        }
        let bound = PAUSES.iter().find(|(of, ordinal, long, _)| {
            *of == name && Some(*ordinal) == watched.ordinal && *long == phase
        });
        if let Some((_, _, _, bound_ms)) = bound {
            let lengths = both.map(|span| span.map_or(0, Span::nanos) / 1_000_000);
            let is_long = lengths.iter().all(|length| length >= bound_ms);
            assert!(is_long, "{name} {phase:?}: {lengths:?} ms");
        }
    }
}

/// Numbers equal fingerprints alike, in the order of their first exchange.
fn fingerprints(recorded: &BTreeMap<String, Recorded>) -> Vec<Option<usize>> {
    let mut known = Vec::new();
    let exchanges = recorded.values().flat_map(|one| &one.exchanges);
    exchanges
        .map(|exchange| {
            let fingerprint = exchange.fingerprint?;
            let place = known.iter().position(|one| *one == fingerprint);
            Some(place.unwrap_or_else(|| {
                known.push(fingerprint);
                known.len() - 1
            }))
        })
        .collect()
}

fn assert_same_close(name: &str, watched: &Close, audited: &Close) {
    let plain = |close: &Close| {
        let mut close = close.clone();
        close.at = intact_ledger::Nanos(0);
        if let Some(OtherEnd::ClosedAt(at)) = &mut close.other_end {
            *at = intact_ledger::Nanos(0);
        }
        close.probes.tcp_keepalive_s = None;
        close.probes.user_timeout_ms = None;
        close.bytes.received = 0;
        close
    };
    let [ours, theirs] = [watched, audited].map(|close| close.bytes.received);
    let may_lack = if watched.by == Some(Side::Client) {
        LATE_BYTES
    } else {
        0
    };
    assert!(
        (ours..=ours + may_lack).contains(&theirs),
        "{name}: {ours} {theirs}"
    );
    assert_eq!(plain(watched), plain(audited), "{name}");
}

/// What the server sees of an exchange.
type ServedRow = (Option<u32>, Option<Reuse>, Option<u16>, Outcome);

fn served_row(exchange: &Exchange) -> ServedRow {
    (
        exchange.ordinal,
        exchange.reuse,
        exchange.status,
        exchange.outcome,
    )
}

/// Starts `serve` with a ledger; itself, its ports.
fn serve(folder: &Path) -> (Child, [String; 2]) {
    let ledger = folder.join("served");
    let mut child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(["--tls-listen", "127.0.0.1:0", "--idle-timeout", "1s"])
        .args(["--announce", "--seed", "1", "--ledger"])
        .arg(ledger)
        .arg("--write-ca")
        .arg(folder.join("ca.pem"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    // the first two lines are the URLs in the clear and with TLS
    let ports = [(), ()].map(|()| {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let authority = line.split('/').nth(2).unwrap();
        authority.rsplit(':').next().unwrap().to_owned()
    });
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    (child, ports)
}

/// What each connection must show, so that two observers that are wrong alike do not pass: the
/// outcome of its last exchange, how the last exchange reused it, and who closed.
const EXPECTED: [(&str, Option<Failure>, Option<Reuse>, Side); 21] = [
    ("/keep", None, Some(Reuse::Reused), Side::Client),
    ("/bodies", None, Some(Reuse::Reused), Side::Client),
    ("/echo/slow", None, Some(Reuse::Fresh), Side::Client),
    ("/old", None, Some(Reuse::Fresh), Side::Server),
    (
        "/delay/5000",
        Some(Failure::ClientClosed),
        Some(Reuse::Fresh),
        Side::Client,
    ),
    (
        "/hang-up",
        Some(Failure::ClientClosed),
        Some(Reuse::Reused),
        Side::Client,
    ),
    (
        "/reset-by-client",
        Some(Failure::ClientClosed),
        Some(Reuse::Reused),
        Side::Client,
    ),
    (
        "/fault/reset-mid-body",
        Some(Failure::Reset),
        Some(Reuse::Fresh),
        Side::Server,
    ),
    (
        "/fault/truncated-body",
        Some(Failure::Truncated),
        Some(Reuse::Fresh),
        Side::Server,
    ),
    (
        "/fault/close-before-answer",
        Some(Failure::Closed),
        Some(Reuse::Fresh),
        Side::Server,
    ),
    ("/preconnected", None, Some(Reuse::Reused), Side::Client),
    ("", None, None, Side::Client),
    ("/idle", None, Some(Reuse::Fresh), Side::Server),
    (
        "/stale",
        Some(Failure::Stale),
        Some(Reuse::Reused),
        Side::Server,
    ),
    (
        "/executed",
        Some(Failure::Closed),
        Some(Reuse::Reused),
        Side::Server,
    ),
    (
        "/h2/1",
        Some(Failure::ClientClosed),
        Some(Reuse::Reused),
        Side::Client,
    ),
    (
        "/grpc.health.v1.Health/Check",
        Some(Failure::GrpcStatus),
        Some(Reuse::Reused),
        Side::Client,
    ),
    ("/tls/TLSv1_2", None, Some(Reuse::Reused), Side::Client),
    ("/tls/TLSv1_3", None, Some(Reuse::Reused), Side::Client),
    ("/curl/h2", None, Some(Reuse::Reused), Side::Client),
    (
        "/fault/stall",
        Some(Failure::ClientClosed),
        Some(Reuse::Fresh),
        Side::Client,
    ),
];

#[test]
fn watch_audit_and_the_server_record_the_same_rows() {
    let test = "captured::rows::watch_audit_and_the_server_record_the_same_rows";
    let [Some(curl), Some(python)] = ["curl", "python3"].map(|name| program(name, test)) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (server, [plain, tls]) = serve(folder.path());
    let Some(mut capture) = Capture::start(test, folder.path(), &[&plain, &tls]) else {
        return;
    };
    std::fs::write(path("rows.py"), include_str!("rows.py")).unwrap();
    let script = format!(
        "{python} {script} {plain} {tls} {ca}
         {curl} -s --cacert {ca} --http2 https://localhost:{tls}/curl/h2 https://localhost:{tls}/bytes/50000 -o /dev/null -o /dev/null",
        python = python.display(),
        script = path("rows.py").display(),
        ca = path("ca.pem").display(),
        curl = curl.display(),
    );
    let watched = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["watch", "--quiet", "--ledger"])
        .arg(path("watched"))
        .args(["--", "sh", "-ec", &script])
        .env("SSLKEYLOGFILE", path("keys.txt"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(watched.status.success(), "{watched:?}");
    let total: usize = read(&path("watched"))
        .values()
        .map(|one| one.exchanges.len())
        .sum();
    capture.end(total as u64, &path("keys.txt"));
    let file = capture.file.to_str().unwrap().to_owned();
    let ledger = path("audited");
    let keys = path("keys.txt");
    let audit = intact(&[
        "audit",
        "--ledger",
        ledger.to_str().unwrap(),
        "--keylog",
        keys.to_str().unwrap(),
        &file,
    ]);
    assert!(audit.status.success(), "{audit:?}");
    end(server);

    let [watched, audited, served] =
        ["watched", "audited", "served"].map(|folder| read(&path(folder)));
    let names = |all: &BTreeMap<String, Recorded>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&watched), names(&audited));
    assert_eq!(names(&watched), names(&served));
    for (name, ours) in &watched {
        compare(name, ours, &audited[name], &served[name]);
    }
    assert_eq!(fingerprints(&watched), fingerprints(&audited));
    let bodies = &watched["/bodies"].exchanges;
    assert!(bodies.iter().all(|one| one.fingerprint.is_some()));
    assert_eq!(bodies[1].fingerprint, bodies[2].fingerprint);
    assert_ne!(bodies[2].fingerprint, bodies[3].fingerprint);
    assert_eq!(watched.len(), EXPECTED.len());
    for (name, failure, reuse, closer) in EXPECTED {
        let one = &watched[name];
        let last = one.exchanges.last();
        let outcome = failure.map_or(Outcome::Ok, Outcome::Failed);
        assert_eq!(
            last.map_or(Outcome::Ok, |last| last.outcome),
            outcome,
            "{name}"
        );
        assert_eq!(last.and_then(|last| last.reuse), reuse, "{name}");
        assert_eq!(one.close.as_ref().unwrap().by, Some(closer), "{name}");
    }
}

fn compare(name: &str, watched: &Recorded, audited: &Recorded, served: &Recorded) {
    assert_eq!(comparable(watched), comparable(audited), "{name}");
    let [ours, theirs] = [watched, audited].map(|one| one.connection.setup);
    assert_eq!(ours.ssl.is_some(), theirs.ssl.is_some(), "{name}");
    assert!(ours.connect.is_some() && theirs.connect.is_some(), "{name}");
    assert_eq!(watched.exchanges.len(), audited.exchanges.len(), "{name}");
    for (ours, theirs) in watched.exchanges.iter().zip(&audited.exchanges) {
        assert_same_exchange(name, ours, theirs);
    }
    assert_same_close(
        name,
        watched.close.as_ref().unwrap(),
        audited.close.as_ref().unwrap(),
    );
    // what was sent after the server had closed is in no ledger of the server
    let arrived = watched
        .exchanges
        .iter()
        .filter(|one| one.outcome != Outcome::Failed(Failure::Stale));
    let ours: Vec<ServedRow> = arrived.map(served_row).collect();
    let theirs: Vec<ServedRow> = served.exchanges.iter().map(served_row).collect();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours.0, theirs.0, "{name}");
        // on a busy machine the server may get a request that the client sent in time only after
        // the limit
        let is_late = (ours.1, theirs.1) == (Some(Reuse::Fresh), Some(Reuse::Preconnected));
        assert!(ours.1 == theirs.1 || is_late, "{name}: {ours:?} {theirs:?}");
    }
    assert_eq!(ours.len(), theirs.len(), "{name}");
    let server = served.close.as_ref().unwrap();
    let client = watched.close.as_ref().unwrap();
    assert_eq!(client.by, server.by, "{name}");
    for (ours, theirs) in ours.iter().zip(&served.exchanges) {
        // a fault has the outcome that a careful client counts
        let is_fault = |detail: &str| detail.starts_with("fault: ");
        if !theirs.detail.as_deref().is_some_and(is_fault) {
            assert_eq!(ours.3, theirs.outcome, "{name}");
        }
    }
}

/// Ends the server, which then writes the end of its ledger.
fn end(mut server: Child) {
    let id = server.id().to_string();
    Command::new("kill").args(["-INT", &id]).status().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while server.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "the server does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}
