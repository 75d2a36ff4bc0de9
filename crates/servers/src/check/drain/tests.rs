//! What a server lost when it ended under kept connections, by probes made for each case.

use super::*;
use crate::check::{CheckFacts, responded};
use intact_document::requirement::Requirement;
use intact_ledger::server_profile::{ServerEnd, ServerProfile};
use intact_ledger::{Outcome, Tally};

const MS: u64 = 1_000_000;
/// The signal.
const AT: Nanos = Nanos(1_000 * MS);

fn after(ms: u64) -> Nanos {
    AT.after(ms * MS)
}

fn connection(role: DrainRole, http: Protocol) -> DrainConnection {
    DrainConnection {
        role,
        http,
        at: Nanos(0),
        failed: None,
        announced_at: None,
        last_stream: None,
        ended: None,
    }
}

fn request(connection: usize, sent_at: Nanos, ended_at: Nanos, outcome: Outcome) -> DrainRequest {
    DrainRequest {
        connection,
        sent_at,
        ended_at,
        outcome,
        status: outcome.is_ok().then_some(200),
        announced: false,
    }
}

fn drain(connections: Vec<DrainConnection>, requests: Vec<DrainRequest>) -> Drain {
    Drain {
        signal: "SIGTERM".to_owned(),
        at: AT,
        limit_ns: 30_000 * MS,
        connections,
        requests,
        process: ServerEnd {
            command_at: Some(after(900)),
            status: Some("exit code 0".to_owned()),
            group_at: Some(after(900)),
            killed_at: None,
        },
        over_at: after(1_000),
    }
}

fn facts(drain: Drain) -> CheckFacts {
    let profile = ServerProfile {
        contact: Some(responded()),
        drain: Some(drain),
        ..ServerProfile::default()
    };
    CheckFacts::of(&profile, &Tally::new(), &[])
}

fn passes(facts: &CheckFacts, expression: &str) -> bool {
    let requirement: Requirement = expression.parse().unwrap();
    requirement.evaluate(facts).passed()
}

fn rules(facts: &CheckFacts) -> Vec<&'static str> {
    facts.findings.iter().map(|finding| finding.rule).collect()
}

/// A drain in good order: a request in flight, one on a kept connection, both announced.
fn good() -> Drain {
    let announced = |role| DrainConnection {
        announced_at: Some(after(100)),
        ..connection(role, Protocol::Http11)
    };
    drain(
        vec![announced(DrainRole::InFlight), announced(DrainRole::Used)],
        vec![
            request(0, Nanos(999 * MS), after(800), Outcome::Ok),
            request(1, after(10), after(100), Outcome::Ok),
        ],
    )
}

#[test]
fn a_drain_in_good_order_has_no_finding_and_passes() {
    let facts = facts(good());
    assert_eq!(rules(&facts), Vec::<&str>::new());
    for gate in [
        "drain.lost == 0",
        "drain.announced == 100%",
        "drain.time < 1s",
        "findings.lost-in-drain == 0",
        "errors == 0",
    ] {
        assert!(passes(&facts, gate), "{gate}");
    }
    let found = facts.drain.unwrap();
    assert_eq!(
        (found.in_flight.sent, found.kept.sent, found.new.sent),
        (1, 1, 0)
    );
    assert_eq!(found.responded_until_ms, Some(800.0));
}

#[test]
fn what_the_server_declares_unprocessed_is_not_lost() {
    let mut one = good();
    let failed = |kind| Outcome::Failed(kind);
    one.connections
        .push(connection(DrainRole::Used, Protocol::Http2));
    one.connections[2].announced_at = Some(after(5));
    one.requests
        .push(request(2, after(6), after(7), failed(Failure::Refusal)));
    let safe = facts(one.clone());
    assert!(passes(&safe, "drain.lost == 0"));
    assert!(passes(&safe, "drain.refused == 1"));
    one.requests
        .push(request(1, after(200), after(201), failed(Failure::Stale)));
    one.requests.push(request(
        0,
        Nanos(998 * MS),
        after(1),
        failed(Failure::Truncated),
    ));
    let lost = facts(one);
    assert!(!passes(&lost, "drain.lost == 0"));
    assert_eq!(rules(&lost), ["lost-in-drain"]);
    let found = lost.drain.unwrap();
    assert_eq!((found.in_flight.lost, found.kept.lost), (1, 1));
    let by: Vec<_> = found.lost_by.into_iter().collect();
    assert_eq!(by, [("stale", 1), ("truncated", 1)]);
}

#[test]
fn without_a_request_in_flight_nothing_is_known_to_be_kept() {
    let mut one = good();
    one.requests.remove(0);
    let facts = facts(one);
    assert!(!passes(&facts, "drain.lost == 0"));
    assert!(passes(&facts, "drain.announced == 100%"));
}

#[test]
fn http1_can_announce_only_with_a_response_and_http2_always() {
    let mut one = good();
    one.connections[1].announced_at = None;
    // the response may have been under way when the signal came
    one.requests[1].ended_at = after(10);
    one.connections
        .push(connection(DrainRole::Idle, Protocol::Http11));
    assert!(passes(&facts(one.clone()), "drain.announced == 100%"));
    one.requests[1].ended_at = after(60);
    let late = facts(one.clone());
    assert!(!passes(&late, "drain.announced == 100%"));
    assert_eq!(rules(&late), ["drain-not-announced"]);
    let silent = drain(
        vec![connection(DrainRole::Idle, Protocol::Http2)],
        Vec::new(),
    );
    assert_eq!(rules(&facts(silent)), ["drain-not-announced"]);
    let unused = drain(
        vec![connection(DrainRole::Idle, Protocol::Http11)],
        Vec::new(),
    );
    let unused = facts(unused);
    assert_eq!(rules(&unused), Vec::<&str>::new());
    // not observed, so that no gate opens
    assert!(!passes(&unused, "drain.announced == 100%"));
    assert!(!passes(&unused, "drain.announced <= 100%"));
}

#[test]
fn each_end_of_the_process_is_named() {
    let of = |process: ServerEnd| {
        let mut one = good();
        one.process = process;
        facts(one)
    };
    let killed = ServerEnd {
        killed_at: Some(after(30_000)),
        ..ServerEnd::default()
    };
    let ignored = of(killed.clone());
    assert_eq!(rules(&ignored), ["drain-not-ended"]);
    assert!(!passes(&ignored, "drain.time < 60s"));
    let not_passed_on = of(ServerEnd {
        command_at: Some(after(2)),
        status: Some("SIGTERM".to_owned()),
        ..killed
    });
    assert_eq!(rules(&not_passed_on), ["drain-not-ended"]);
    assert!(
        not_passed_on.findings[0]
            .claim
            .contains("does not pass it on")
    );
    let left_behind = of(ServerEnd {
        command_at: Some(after(2)),
        status: Some("exit code 0".to_owned()),
        group_at: Some(after(2)),
        killed_at: None,
    });
    assert_eq!(rules(&left_behind), ["drain-not-ended"]);
    assert_eq!(
        left_behind.drain.as_ref().unwrap().process.end,
        ProcessEnd::LeftBehind
    );
    assert!(!passes(&left_behind, "drain.time < 60s"));
    let by_the_signal = ServerEnd {
        command_at: Some(after(900)),
        status: Some("SIGTERM".to_owned()),
        group_at: Some(after(900)),
        killed_at: None,
    };
    // raised again after a drain in good order
    assert_eq!(rules(&of(by_the_signal.clone())), Vec::<&str>::new());
    let mut cut_off = good();
    cut_off.process = by_the_signal;
    cut_off.requests.remove(1);
    cut_off.requests[0].outcome = Outcome::Failed(Failure::Reset);
    for one in &mut cut_off.connections {
        one.announced_at = None;
    }
    let cut_off = rules(&facts(cut_off));
    assert_eq!(cut_off, ["lost-in-drain", "drain-not-handled"]);
    let stopped = of(ServerEnd::default());
    assert_eq!(
        stopped.drain.as_ref().unwrap().process.end,
        ProcessEnd::Unknown
    );
    for gate in ["drain.lost == 0", "drain.announced == 100%", "errors == 0"] {
        assert!(!passes(&stopped, gate), "{gate}");
    }
}

#[test]
fn a_drain_and_the_other_probes_pass_no_gate_of_each_other() {
    let drained = facts(good());
    assert!(!passes(&drained, "findings.idle-timeout-race == 0"));
    assert!(!passes(&drained, "findings.connection-not-kept == 0"));
    assert!(!passes(&drained, "idle-timeout >= 60s"));
    assert!(passes(&drained, "findings.redirect == 0"));
    let mut profile = facts(good());
    profile.drain = None;
    assert!(!passes(&profile, "findings.lost-in-drain == 0"));
    assert!(!passes(&profile, "drain.lost == 0"));
    assert!(passes(&profile, "findings.connection-not-kept == 0"));
}

#[test]
fn a_refusal_of_new_connections_and_their_last_response_are_known_by_time() {
    let mut one = good();
    one.connections.push(DrainConnection {
        at: after(10),
        ..connection(DrainRole::New, Protocol::Http11)
    });
    one.requests
        .push(request(2, after(10), after(12), Outcome::Ok));
    for (ms, failed) in [(110, Failure::Refused), (210, Failure::Refused)] {
        one.connections.push(DrainConnection {
            at: after(ms),
            failed: Some(failed),
            ..connection(DrainRole::New, Protocol::Http11)
        });
    }
    let facts = facts(one);
    assert_eq!(rules(&facts), ["drain-refuses-at-once"]);
    let found = facts.drain.unwrap();
    assert_eq!(found.accepted_until_ms, Some(12.0));
    assert_eq!(found.refused_from_ms, Some(110.0));
    assert_eq!((found.new.sent, found.new.answered), (1, 1));
}

/// The remedy of the only finding with this rule, where the server names this product.
fn remedy(drain: Drain, product: &str, rule: &str) -> String {
    let mut profile = ServerProfile {
        contact: Some(responded()),
        drain: Some(drain),
        ..ServerProfile::default()
    };
    if let Some(contact) = &mut profile.contact {
        contact.server = Some(product.to_owned());
    }
    let facts = CheckFacts::of(&profile, &Tally::new(), &[]);
    let finding = facts.findings.iter().find(|finding| finding.rule == rule);
    finding.unwrap().fix.to_string()
}

#[test]
fn a_server_that_drains_is_not_advised_to_drain() {
    let lost = Outcome::Failed(Failure::Reset);
    let rule = "lost-in-drain";
    let platform = "let the platform stop sending";
    // accepted by the kernel, and by no worker
    let mut behind = good();
    behind.connections.push(DrainConnection {
        at: after(200),
        ..connection(DrainRole::New, Protocol::Http11)
    });
    let request_of_new = request(2, after(201), after(850), lost);
    behind.requests.push(request_of_new);
    let fix = remedy(behind, "gunicorn", rule);
    assert!(fix.starts_with(platform), "{fix}");
    // cut off although the server responds to others
    let mut crossed = good();
    crossed.requests[1] = request(1, Nanos(999 * MS), after(1), lost);
    let fix = remedy(crossed, "Caddy", rule);
    assert!(
        fix.contains("shutdown_delay") && fix.contains(platform),
        "{fix}"
    );
    // no handler
    let mut cut_off = drain(
        vec![connection(DrainRole::InFlight, Protocol::Http11)],
        vec![request(0, Nanos(999 * MS), after(1), lost)],
    );
    let fix = remedy(cut_off.clone(), "nginx/1.22.1", rule);
    assert!(fix.contains("SIGQUIT") && !fix.contains(platform), "{fix}");
    let fix = remedy(cut_off.clone(), "unknown", rule);
    assert!(fix.starts_with("on the signal, finish"), "{fix}");
    // cut off by SIGKILL
    let mut killed = cut_off.clone();
    killed.process = ServerEnd {
        killed_at: Some(after(30_000)),
        ..ServerEnd::default()
    };
    let fix = remedy(killed, "unknown", rule);
    assert!(fix.starts_with("handle the signal, and limit"), "{fix}");
    // responds without an announcement
    cut_off.requests[0] = request(0, Nanos(999 * MS), after(800), Outcome::Ok);
    let fix = remedy(cut_off, "gunicorn", "drain-not-announced");
    assert!(fix.starts_with("from the signal on, respond"), "{fix}");
}
