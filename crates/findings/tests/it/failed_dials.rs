//! Dials that failed after their transport was established: whose they are, and what gates make of
//! them.

use super::traffic_rules::{closed, exchange, facts, meets, opened};
use intact_document::requirement::Requirement;
use serde_json::{Value, json};

/// A connection to a proxy that refused the tunnel.
fn refused(id: u64, at: u64) -> Value {
    let mut one = opened(id, at, None);
    one["peer"] = json!("192.0.2.1:3128");
    one["origin"] = json!({"scheme": "tcp", "host": "api.example", "port": 8443});
    one["failed"] = json!({"phase": "connect", "kind": "proxy", "detail": "with status 502"});
    one
}

/// A request through a tunnel that the proxy granted.
fn granted(id: u64, at: u64) -> [Value; 3] {
    let mut one = opened(id, at, Some("api.example"));
    one["peer"] = json!("192.0.2.1:3128");
    one["origin"] = json!({"scheme": "https", "host": "api.example", "port": 8443});
    let end = closed(id, at + 21, "client", "after-exchange", 1);
    [one, exchange(id, at, at + 20, 1), end]
}

#[test]
fn a_refused_tunnel_is_a_failed_dial_to_the_origin_behind_the_proxy() {
    let mut rows = vec![refused(1, 0)];
    rows.extend(granted(2, 100));
    rows.push(refused(3, 200));
    let facts = facts(&rows);
    let [only] = &facts.destinations[..] else {
        panic!("{:#?}", facts.destinations);
    };
    assert_eq!(only.origin, "https://api.example:8443");
    let connections = &only.figures.counted.counts.connections;
    assert_eq!((connections.opened, connections.failed["proxy"]), (1, 2));
    assert!(meets(&facts, "connections-failed == 2"));
}

#[test]
fn requests_may_have_waited_for_a_tunnel_that_was_refused() {
    let mut rows = granted(1, 0).to_vec();
    let before = facts(&rows);
    rows.push(refused(2, 100));
    let after = facts(&rows);
    for expression in [
        "failed == 0",
        "failed <= 5",
        "failed.proxy == 0",
        "failed < 10%",
    ] {
        assert!(meets(&before, expression), "{expression}");
        assert!(!meets(&after, expression), "{expression}");
    }
    // no other kind is in doubt
    assert!(meets(&after, "failed.timeout == 0") && meets(&after, "stale == 0"));
    let gate: Requirement = "failed == 0".parse().unwrap();
    let line = gate.evaluate(&after).results()[0].to_string();
    let reason = "(1 connection attempt failed, and requests may have waited for it)";
    assert!(
        line.contains("failed is unknown") && line.contains(reason),
        "{line}"
    );
}

#[test]
fn a_run_in_which_nothing_worked_is_not_judged_though_its_failures_are_known() {
    let facts = facts(&[refused(1, 0), refused(2, 100)]);
    for expression in ["failed == 0", "connections-failed == 2"] {
        let gate: Requirement = expression.parse().unwrap();
        let line = gate.evaluate(&facts).results()[0].to_string();
        let reason = "not judged: no connection could be opened";
        assert!(line.contains(reason), "{line}");
        assert!(!meets(&facts, expression));
    }
}
