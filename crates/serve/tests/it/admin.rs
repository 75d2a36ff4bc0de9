//! What the server tells of itself while it runs.

use crate::rig::{Rig, get};
use intact_serve::Config;

#[test]
fn the_ledger_is_told_live_and_asking_for_it_is_not_counted() {
    let rig = Rig::start(Config {
        max_requests: Some(2),
        ..Config::default()
    });
    let mut used = rig.connect();
    get(&mut used, "/");
    let mut asking = rig.connect();
    for _ in 0..3 {
        let answer = get(&mut asking, "/.intact/ledger");
        let text = String::from_utf8(answer.body).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["schema"], "intact.serve/1");
        assert_eq!(json["requests"]["total"], 1);
        assert_eq!(json["connections"]["opened"], 1);
        assert_eq!(json["connections"]["open"], 1);
        assert_eq!(json["last"][0]["target"], "/");
    }
    assert_eq!(get(&mut asking, "/.intact/health").body, b"ok\n");
    assert_eq!(get(&mut asking, "/.intact/other").status(), "404");
    let totals = rig.end();
    assert_eq!((totals.requests.total, totals.connections.opened), (1, 1));
}

#[test]
fn an_open_connection_counts_before_it_asks_anything() {
    let rig = Rig::start(Config::default());
    let _unused = rig.connect();
    let mut asking = rig.connect();
    let open = |stream: &mut _| {
        let json: serde_json::Value =
            serde_json::from_slice(&get(stream, "/.intact/ledger").body).unwrap();
        json["connections"]["open"].as_u64().unwrap()
    };
    // connections are accepted in order, so the first one is there
    assert_eq!(open(&mut asking), 1);
}
