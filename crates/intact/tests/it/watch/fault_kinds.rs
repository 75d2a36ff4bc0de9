//! `watch --fault`, kind by kind: what the relay does to a connection, and what its rows say. The
//! card is in `faults`.

use crate::peers::program;
use crate::program::{Server, exchanges, intact};
use intact_ledger::store::Reader;
use intact_ledger::{
    Exchange, FaultEvent, FaultNotApplied, FaultObstacle, FaultPoint, FaultStrike, Row, StallEnd,
};

/// A run of a client under a fault.
struct Faulted {
    /// What the client printed.
    printed: Vec<String>,
    strikes: Vec<FaultStrike>,
    not_applied: Vec<FaultNotApplied>,
    /// The rows of the client's requests.
    requests: Vec<Exchange>,
    /// Requests that the server responded to.
    served: u64,
    /// Caveats on bytes that the kernel counts otherwise.
    differences: usize,
}

impl Faulted {
    fn strike(&self) -> &FaultStrike {
        assert_eq!(
            self.strikes.len(),
            1,
            "{:?} {:?}",
            self.strikes,
            self.not_applied
        );
        assert_eq!(self.not_applied, []);
        &self.strikes[0]
    }

    fn obstacle(&self) -> FaultObstacle {
        assert_eq!(self.strikes, []);
        assert_eq!(self.not_applied.len(), 1, "{:?}", self.not_applied);
        self.not_applied[0].why
    }
}

/// Runs a client of `fault_kinds.py`; `None` where there is no Python.
fn run(options: &[&str], what: &str, scheme: &str) -> Option<Faulted> {
    program("python3", "watch Python under faults")?;
    let server = Server::start(&["--body", "100"]);
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/watch/fault_kinds.py");
    let port = match scheme {
        "https" => server.tls_port(),
        _ => server.plain_port(),
    };
    let mut words = vec!["watch", "--ledger", ledger.to_str().unwrap(), "--quiet"];
    words.extend_from_slice(options);
    words.extend(["--", "python3", script, what, scheme, &*port]);
    let out = intact(&words);
    assert!(out.status.success(), "{options:?} {what}: {out:?}");
    let (mut strikes, mut not_applied, mut requests) = (Vec::new(), Vec::new(), Vec::new());
    let mut differences = 0;
    for row in Reader::open(&ledger).unwrap().events().unwrap() {
        match row {
            Row::Exchange(request) => requests.push(*request),
            Row::Caveat(caveat) => differences += usize::from(caveat.id == "kernel-differs"),
            Row::Fault(fault) => match *fault {
                FaultEvent::Struck(strike) => strikes.push(strike),
                FaultEvent::NotApplied(missed) => not_applied.push(missed),
                _ => {}
            },
            _ => {}
        }
    }
    let served = server.end()["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(exchanges)
        .sum();
    Some(Faulted {
        printed: String::from_utf8(out.stdout)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect(),
        strikes,
        not_applied,
        requests,
        served,
        differences,
    })
}

/// What a kind does to the second request of a client that is idle between requests and does not
/// repeat any.
struct Expected {
    kind: &'static str,
    point: FaultPoint,
    /// The client sees its second request fail.
    fails: bool,
    /// The server gets the second request.
    arrives: bool,
    before: u64,
}

const fn expected(kind: &'static str, point: FaultPoint, fails: bool, arrives: bool) -> Expected {
    Expected {
        kind,
        point,
        fails,
        arrives,
        before: 1,
    }
}

#[test]
fn each_kind_strikes_the_first_kept_connection_at_its_point() {
    let kinds = [
        expected("stale", FaultPoint::Idle, true, false),
        expected("fin-race", FaultPoint::Request, true, false),
        expected("rst", FaultPoint::Idle, true, false),
        expected("recycled", FaultPoint::Request, true, false),
        expected("reset-mid-response", FaultPoint::ResponseBody, true, true),
        expected(
            "early-close-after-headers",
            FaultPoint::ResponseBody,
            true,
            true,
        ),
        expected("nat-idle=100ms", FaultPoint::Idle, true, false),
        expected("black-hole", FaultPoint::Idle, true, false),
        expected("slow-close", FaultPoint::Idle, true, false),
        Expected {
            before: 2,
            ..expected("max-age=100ms", FaultPoint::Idle, false, true)
        },
        Expected {
            before: 2,
            ..expected("drain", FaultPoint::Idle, false, true)
        },
    ];
    for one in kinds {
        let options = ["--fault", one.kind, "--fault-wait", "1s"];
        let Some(faulted) = run(&options, "slow", "http") else {
            return;
        };
        let (kind, strike) = (one.kind, faulted.strike());
        let second = if one.fails { "failed" } else { "200 100" };
        assert_eq!(faulted.printed, ["200 100", second, "200 100"], "{kind}");
        assert_eq!(
            strike.kind,
            kind.split('=').next().unwrap().parse().unwrap()
        );
        assert_eq!(
            (strike.point, strike.exchanges_before),
            (one.point, one.before),
            "{kind}: {strike:?}"
        );
        // an early response counts as served although its body was cut
        assert_eq!(
            faulted.served,
            if one.arrives { 3 } else { 2 },
            "{kind}: {strike:?}"
        );
        let is_cut = strike.in_flight == 1 && strike.point == FaultPoint::ResponseBody;
        assert_eq!(strike.reached > 0, is_cut, "{kind}: {strike:?}");
        assert_eq!(
            strike.used_at.is_some(),
            one.fails && one.kind != "rst",
            "{kind}: {strike:?}"
        );
        let has_stalled = strike.kind.row().is_silent();
        assert_eq!(
            strike.ended == StallEnd::Limit,
            has_stalled,
            "{kind}: {strike:?}"
        );
        if has_stalled {
            let stall = strike.end.since(strike.used_at.unwrap());
            assert!(stall >= 1_000_000_000, "{kind}: {strike:?}");
            assert!(strike.withheld > 40, "{kind}: {strike:?}");
        }
    }
}

#[test]
fn the_kernel_of_a_program_that_hears_nothing_sends_again_and_gives_up() {
    for (fault, what, said) in [
        (
            "black-hole",
            "user-timeout",
            vec!["200 100", "sent again True", "ETIMEDOUT", "200 100"],
        ),
        (
            "nat-idle=50ms",
            "keepalive",
            vec!["200 100", "ETIMEDOUT", "200 100"],
        ),
    ] {
        let Some(faulted) = run(&["--fault", fault], what, "http") else {
            return;
        };
        assert_eq!(faulted.printed, said, "{fault}");
        let strike = faulted.strike();
        assert_eq!(strike.ended, StallEnd::ProgramClosed, "{strike:?}");
        assert_eq!(
            strike.used_at.is_some(),
            what == "user-timeout",
            "{strike:?}"
        );
        assert_eq!(faulted.served, 2, "{fault}");
    }
}

#[test]
fn http2_gets_a_goaway_with_and_without_tls() {
    for scheme in ["http", "https"] {
        // a stream that the server never processed may be opened again
        let Some(faulted) = run(&["--fault", "goaway"], "http2", scheme) else {
            return;
        };
        let said = ["answered", "GOAWAY 1", "failed", "answered", "answered"];
        assert_eq!(faulted.printed, said, "{scheme}");
        let strike = faulted.strike();
        let struck = (strike.point, strike.in_flight, strike.reached);
        assert_eq!(struck, (FaultPoint::Request, 1, 0), "{scheme}");
        assert_eq!(faulted.served, 3, "{scheme}");
        let Some(faulted) = run(&["--fault", "drain"], "http2", scheme) else {
            return;
        };
        let said = [
            "answered",
            "GOAWAY 2147483647",
            "failed",
            "answered",
            "answered",
        ];
        assert_eq!(faulted.printed, said, "{scheme}");
        assert_eq!(faulted.strike().point, FaultPoint::Idle, "{scheme}");
        assert_eq!(faulted.served, 3, "{scheme}");
    }
}

#[test]
fn the_first_request_of_a_burst_gets_its_response_and_the_others_are_not_processed() {
    for scheme in ["http", "https"] {
        let Some(faulted) = run(&["--fault", "partial-goaway"], "burst", scheme) else {
            return;
        };
        let said = ["[1]", "GOAWAY 3", "[3]", "[1, 3]"];
        assert_eq!(faulted.printed, said, "{scheme}");
        let strike = faulted.strike();
        let struck = (strike.point, strike.exchanges_before);
        assert_eq!(struck, (FaultPoint::Request, 2), "{scheme}: {strike:?}");
        // the last one may still be on its way
        assert!((1..=2).contains(&strike.in_flight), "{scheme}: {strike:?}");
        assert!(
            strike.reached == 0 && strike.withheld > 0,
            "{scheme}: {strike:?}"
        );
        assert_eq!(faulted.served, 4, "{scheme}");
    }
    // what was withheld passes where the first response does not come in time
    let Some(faulted) = run(&["--fault", "partial-goaway"], "slow-burst", "http") else {
        return;
    };
    assert_eq!(faulted.obstacle(), FaultObstacle::NoResponse);
    assert_eq!(faulted.printed, ["[1]", "[3, 5, 7]", "[1, 3]"]);
    assert_eq!(faulted.differences, 0);
    // one request after another is no burst
    let Some(faulted) = run(&["--fault", "partial-goaway"], "http2", "http") else {
        return;
    };
    assert_eq!(faulted.obstacle(), FaultObstacle::NoBurst);
    assert_eq!(faulted.printed, ["answered"; 3]);
}

#[test]
fn on_tls_a_kind_strikes_or_its_obstacle_is_named() {
    for (kind, keys, said) in [
        ("fin-race", "auto", FaultPoint::Request),
        ("black-hole", "auto", FaultPoint::Idle),
        ("stale", "off", FaultPoint::Idle),
        ("fin-race", "off", FaultPoint::Request),
        ("reset-mid-response", "off", FaultPoint::ResponseHead),
    ] {
        let options = ["--fault", kind, "--fault-wait", "1s", "--keys", keys];
        let expected = ["200 100", "failed", "200 100"];
        // without keys the end of the handshake is inferred from a pause, which a busy machine
        // makes elsewhere
        let attempts = if keys == "off" { 3 } else { 1 };
        let mut runs = (0..attempts).map(|_| run(&options, "slow", "https"));
        let Some(mut faulted) = runs.next().flatten() else {
            return;
        };
        while (*faulted.printed != expected || faulted.strike().exchanges_before != 1)
            && let Some(again) = runs.next().flatten()
        {
            faulted = again;
        }
        assert_eq!(faulted.printed, expected, "{kind} {keys}");
        let strike = faulted.strike();
        assert_eq!(
            (strike.point, strike.exchanges_before),
            (said, 1),
            "{kind} {keys}"
        );
        assert!(
            keys == "auto" || !strike.certainty.is_exact(),
            "{kind} {keys}: {strike:?}"
        );
        let failed = faulted.requests.iter().filter(|one| !one.outcome.is_ok());
        let failed: Vec<_> = failed.map(|one| one.connection).collect();
        assert_eq!(failed, [Some(strike.connection)], "{kind} {keys}");
    }
    for kind in ["max-age=100ms", "drain"] {
        let Some(faulted) = run(&["--fault", kind], "slow", "https") else {
            return;
        };
        assert_eq!(faulted.obstacle(), FaultObstacle::Encrypted, "{kind}");
        assert_eq!(faulted.printed, ["200 100"; 3], "{kind}");
    }
}

#[test]
fn a_kind_that_was_not_applied_says_why() {
    for (options, what, why) in [
        (
            &["--fault", "nat-idle=9s"][..],
            "slow",
            FaultObstacle::NeverIdle,
        ),
        (
            &["--fault", "max-age=90s"],
            "fast",
            FaultObstacle::NeverSoOld,
        ),
        (&["--fault", "fin-race"], "once", FaultObstacle::NeverReused),
        (&["--fault", "stale"], "closes", FaultObstacle::NeverKept),
        (&["--fault", "stale"], "unused", FaultObstacle::NeverReused),
        (
            // seed 5 chooses the third exchange of the first connection
            &["--fault", "fin-race", "--fault-seed", "5"],
            "slow",
            FaultObstacle::TooFewExchanges,
        ),
        (&["--fault", "goaway"], "slow", FaultObstacle::NotHttp2),
        (
            &["--fault", "partial-goaway"],
            "slow",
            FaultObstacle::NotHttp2,
        ),
        (&["--fault", "other-server"], "slow", FaultObstacle::NoName),
        (
            &["--fault", "stale", "--fault-host", "a.example"],
            "slow",
            FaultObstacle::NoSuchHost,
        ),
        (
            &["--fault", "stale", "--fault-host", "127.0.0.1:1"],
            "slow",
            FaultObstacle::NoSuchHost,
        ),
        (
            &["--fault", "stale"],
            "nothing",
            FaultObstacle::NoConnection,
        ),
    ] {
        let Some(faulted) = run(options, what, "http") else {
            return;
        };
        assert_eq!(faulted.obstacle(), why, "{options:?}");
        assert!(
            !faulted.printed.iter().any(|line| line == "failed"),
            "{options:?}"
        );
    }
}

#[test]
fn a_program_that_is_never_idle_sees_the_end_with_a_response() {
    let Some(faulted) = run(&["--fault", "stale"], "fast", "http") else {
        return;
    };
    assert_eq!(faulted.strike().point, FaultPoint::Idle);
    assert_eq!(
        faulted
            .printed
            .iter()
            .filter(|line| *line == "failed")
            .count(),
        1
    );
    assert_eq!(faulted.served, 4);
}

#[test]
fn a_seed_strikes_the_same_connections_after_the_same_exchanges() {
    let choose = |seed: &str| {
        let scope = ["--fault-scope", "one"];
        let options = [&["--fault", "stale", "--fault-seed", seed][..], &scope].concat();
        let faulted = run(&options, "at-once", "http")?;
        // the numbers of connections are in the order of their setup
        let mut struck: Vec<(u64, u64)> = faulted
            .strikes
            .iter()
            .map(|strike| (strike.connection.0, strike.exchanges_before))
            .collect();
        struck.sort_unstable();
        assert_eq!(struck.len(), 3, "{struck:?}");
        Some(struck)
    };
    let (Some(first), Some(again), Some(other)) = (choose("7"), choose("7"), choose("8")) else {
        return;
    };
    assert_eq!(first, again);
    assert_ne!(first, other);
}
