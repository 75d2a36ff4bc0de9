//! What the ends by a server depend on: a path, an error, or an age.

use super::traffic_rules::{closed, exchange, facts, of_rule, opened};
use intact_document::Severity;
use serde_json::{Value, json};

/// One request after another, 100 ms apart. `ends` says of the nth request of all what ended its
/// connection: fields of its response, and the moment of the close after it.
fn calls(count: u64, ends: impl Fn(u64) -> Option<(Value, u64)>) -> Vec<Value> {
    let mut rows = Vec::new();
    let (mut id, mut ordinal) = (0, 0);
    for nth in 0..count {
        let at = nth * 100;
        if ordinal == 0 {
            id += 1;
            rows.push(opened(id, at, Some("api.example")));
        }
        ordinal += 1;
        let mut one = exchange(id, at, at + 20, ordinal);
        (one["method"], one["target"], one["status"]) = ("GET".into(), "/new".into(), 200.into());
        let end = ends(nth);
        if let Some((fields, _)) = &end {
            for (name, value) in fields.as_object().unwrap() {
                one[name] = value.clone();
            }
        }
        rows.push(one);
        if let Some((_, after)) = end {
            let moment = if after < 10 { "after-exchange" } else { "idle" };
            rows.push(closed(id, at + 20 + after, "server", moment, ordinal));
            ordinal = 0;
        }
    }
    rows
}

/// Every third request, and one more after each nine: connections carry different numbers.
fn is_third(nth: u64) -> bool {
    nth % 3 == 2 || nth % 9 == 3
}

#[test]
fn responses_to_one_path_that_end_connections_are_no_request_limit() {
    let old = json!({"target": "/old", "close_sent_by": "server"});
    let rows = calls(36, |nth| is_third(nth).then(|| (old.clone(), 1)));
    let found = facts(&rows);
    assert!(of_rule(&found, "server-closes-early").is_empty());
    let [one] = &of_rule(&found, "connection-close-sent")[..] else {
        panic!("{:?}", found.findings)
    };
    assert!(one.claim.contains("responses to /old"), "{}", one.claim);
    // a path whose responses keep connections, too, is not the cause
    let kept = |nth| {
        if nth == 4 {
            json!({"target": "/old"})
        } else {
            old.clone()
        }
    };
    let mut rows = calls(36, |nth| is_third(nth).then(|| (kept(nth), 1)));
    for row in rows.iter_mut().filter(|row| row["ordinal"] == 1) {
        row["target"] = "/old".into();
    }
    assert!(
        of_rule(&facts(&rows), "connection-close-sent")
            .iter()
            .all(|one| !one.claim.contains("/old"))
    );
    // each connection carries as many: the path may be chance, and both are named
    let rows = calls(36, |nth| (nth % 3 == 2).then(|| (old.clone(), 1)));
    let [one] = &of_rule(&facts(&rows), "server-closes-early")[..] else {
        panic!("no limit")
    };
    assert!(
        one.claim
            .ends_with("requests, or with its responses to /old"),
        "{}",
        one.claim
    );
}

#[test]
fn responses_to_one_method_that_end_connections_are_no_request_limit() {
    let end = |method: &str, nth: u64| {
        let fields =
            json!({"method": method, "target": format!("/{nth}"), "close_sent_by": "server"});
        is_third(nth).then_some((fields, 1))
    };
    let rows = calls(36, |nth| end("POST", nth));
    let found = facts(&rows);
    let [one] = &of_rule(&found, "connection-close-sent")[..] else {
        panic!("{:?}", found.findings)
    };
    assert!(one.claim.contains("responses to POST"), "{}", one.claim);
    // GET is answered with and without an announcement
    let rows = calls(36, |nth| end("GET", nth));
    let found = of_rule(&facts(&rows), "connection-close-sent");
    assert!(found.iter().all(|one| !one.claim.contains("responses to")));
}

#[test]
fn a_close_after_each_error_is_no_request_limit() {
    let error = json!({"status": 500});
    let fix = |rows: &[Value]| {
        let found = of_rule(&facts(rows), "close-announced-not-kept");
        found[0].fix.to_string()
    };
    // after errors alone, though each connection carries as many
    let rows = calls(24, |nth| (nth % 4 == 3).then(|| (error.clone(), 1)));
    assert!(
        fix(&rows).starts_with("Remove the errors"),
        "{}",
        fix(&rows)
    );
    // other errors leave the connection open
    let mut rows = rows;
    for row in rows.iter_mut().filter(|row| row["ordinal"] == 2) {
        row["status"] = 404.into();
    }
    assert!(fix(&rows).contains("request limit"), "{}", fix(&rows));
}

#[test]
fn an_age_that_is_not_announced_is_found_whatever_the_idle_time() {
    // every 1.2 s or so; the end comes 1 to 80 ms after a response
    let lasts = [12, 11, 13, 12, 11, 13];
    let mut ends = std::collections::BTreeMap::new();
    let mut nth = 0;
    for (place, requests) in lasts.into_iter().enumerate() {
        nth += requests;
        ends.insert(nth - 1, [1, 70, 2, 40, 79, 3][place]);
    }
    let rows = calls(nth + 5, |nth| {
        ends.get(&nth).map(|after| (json!({}), *after))
    });
    let found = facts(&rows);
    let [one] = &of_rule(&found, "server-closes-early")[..] else {
        panic!("{:?}", found.findings)
    };
    assert!(one.claim.contains("at an age"), "{}", one.claim);
    assert_eq!(one.severity, Severity::Warning);
    assert!(of_rule(&found, "close-announced-not-kept").is_empty());
    // idle for the same time at each end: the idle limit is as good a reason
    let rows = calls(nth + 5, |nth| ends.get(&nth).map(|_| (json!({}), 75)));
    let found = of_rule(&facts(&rows), "server-closes-early");
    assert!(!found[0].claim.contains("at an age"), "{}", found[0].claim);
}
