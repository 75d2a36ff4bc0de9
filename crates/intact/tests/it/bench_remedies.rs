//! `bench --remedies` of the built-in server: what acted is counted; what did not has no saving.

use crate::link::on_link;
use crate::program::{Schema, Server, bench};
use serde_json::Value;

/// The row of a remedy.
fn effect<'a>(document: &'a Value, name: &str) -> &'a Value {
    let effects = document["effects"].as_array().unwrap();
    let mut named = effects.iter().filter(|one| one["setting"] == name);
    named
        .next()
        .unwrap_or_else(|| panic!("{name}: {effects:#?}"))
}

/// How often the last remedy of a row acted, of how many times.
fn acted(effect: &Value) -> (u64, u64) {
    let last = effect["acted"].as_array().and_then(|all| all.last());
    let last = last.unwrap_or_else(|| panic!("{effect:#}"));
    let count = |key: &str| last[key].as_u64().unwrap();
    (count("times"), count("of"))
}

#[test]
fn each_remedy_of_the_built_in_server_acts_on_a_link() {
    let words = ["bench", "--remedies", "--link", "rtt=10ms", "--json"];
    let words = [&words[..], &["-n", "16", "--rounds", "2"]].concat();
    let Some(out) = on_link(&words, "remedies") else {
        return;
    };
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    Schema::named("bench").check(&document);
    let of = |name: &str| effect(&document, name);
    for name in ["keep-alive", "HTTP/2", "HTTP/3", "gRPC", "revalidation"] {
        assert_eq!(acted(of(name)), (16, 16), "{name}");
    }
    for name in ["resumption", "TCP Fast Open", "cached lookups"] {
        let (times, opened) = acted(of(name));
        assert!(times >= 8 && opened == 16, "{name}: {times} of {opened}");
    }
    // over HTTP/1.1 every third connection has no session yet
    let (early, _) = acted(of("resumption + 0-RTT"));
    assert!(early >= 5, "{early}");
    let (saved, all) = acted(of("header compression"));
    assert!(saved > all / 2, "{saved} of {all} bytes");
    for (name, with) in [
        ("gRPC", "HTTP/2"),
        ("header compression", "keep-alive + HTTP/2"),
        ("cached lookups", "dns=per-connection"),
    ] {
        assert_eq!(of(name)["with"], with, "{name}");
    }
    let share = &of("fresh cache entries")["computed"];
    assert_eq!(share["max_age_s"], 60);
    assert_eq!(share["rate_is_measured"], false);
    let model = &document["model"];
    assert!(model["rtt_ms"].as_f64().unwrap() >= 10.0, "{model}");
    assert!(
        document["effects"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["result"] != "nothing-acted"),
        "{document:#}"
    );
}

#[test]
fn a_remedy_that_the_server_does_not_have_saves_nothing() {
    let server = Server::start(&[]);
    let words = ["--remedies", "--cache", "off,revalidate", "-n", "16"];
    let document = bench(&[&words[..], &["--rounds", "8", &server.plain()]].concat());
    for (name, why) in [
        ("revalidation", "no response was 304 (Not Modified)"),
        ("fresh cache entries", "no response had a max-age"),
    ] {
        let effect = effect(&document, name);
        assert_eq!(effect["result"], "nothing-acted", "{name}");
        assert_eq!(effect["inactive"], serde_json::json!([why]));
    }
    let both = effect(&document, "keep-alive");
    assert_ne!(both["result"], "nothing-acted");
}
