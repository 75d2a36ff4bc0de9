//! Where in the code connections were opened: a finding has the places of what it counts.

use super::pools::{calls, facts};
use serde_json::{Value, json};

/// A stack whose own call is in this file.
fn stack(id: u64, file: &str, own: Option<u32>) -> Value {
    json!({
        "event": "stack", "id": id, "own": own,
        "frames": [
            {"function": "connect", "file": "python3.11/socket.py", "line": 5},
            {"function": "charge", "file": file, "line": 41},
        ],
    })
}

#[test]
fn a_finding_names_the_places_that_opened_what_it_counts() {
    let mut rows = vec![
        stack(1, "app/billing.py", Some(1)),
        stack(2, "app/hooks.py", Some(1)),
        stack(3, "elsewhere.py", None),
    ];
    for mut row in calls(0) {
        // the first connection is needed
        if row["event"] == "opened" {
            let id = row["id"].as_u64().unwrap();
            row["stack"] = json!([1, 1, 2, 3][id as usize % 4]);
        }
        rows.push(row);
    }
    let facts = facts(&rows);
    let finding = &facts.findings[0];
    let places = finding.places.iter();
    let places: Vec<_> = places
        .map(|one| (one.position(), one.connections))
        .collect();
    let expected = [("app/billing.py:41", 9), ("app/hooks.py:41", 5)];
    assert_eq!(places, expected.map(|(at, count)| (at.to_owned(), count)));
    let json = serde_json::to_value(finding).unwrap();
    assert_eq!(json["places"][0]["function"], "charge");
    assert_eq!(json["places"][0]["stack"][0]["function"], "connect");
}

#[test]
fn unknown_places_are_a_caveat_where_a_finding_may_have_some() {
    let caveat = json!({
        "event": "caveat", "id": "places-not-known", "message": "1 of `curl`",
    });
    let mut rows = calls(0);
    rows.push(caveat.clone());
    assert_eq!(facts(&rows).caveats.len(), 1);
    rows = calls(0).into_iter().take(3).collect();
    rows.push(caveat);
    assert_eq!(facts(&rows).caveats, []);
}

#[test]
fn without_stacks_a_finding_has_no_places() {
    let facts = facts(&calls(0));
    let json = serde_json::to_value(&facts.findings[0]).unwrap();
    assert!(json.get("places").is_none());
}
