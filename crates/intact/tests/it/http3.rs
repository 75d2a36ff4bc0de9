//! HTTP/3 as a person meets it: `bench --http 3`, early data, and its discovery by `check`.

use crate::check::check;
use crate::program::{Server, bench, intact};
use serde_json::Value;

/// The variants of a bench by name.
fn variant<'a>(document: &'a Value, name: &str) -> &'a Value {
    let variants = document["variants"].as_array().unwrap();
    let mut named = variants.iter().filter(|one| one["name"] == name);
    named.next().unwrap_or_else(|| panic!("{name}: {document}"))
}

#[test]
fn the_built_in_server_speaks_http3_if_a_variant_needs_it() {
    let document = bench(&["--http", "1.1,2,3", "-n", "40", "-c", "2", "--rounds", "2"]);
    for http in ["1.1", "2", "3"] {
        for keepalive in ["on", "off"] {
            let name = format!("keepalive={keepalive} http={http}");
            let one = variant(&document, &name);
            assert_eq!(one["requests"]["ok"], 40, "{name}");
            let opened = if keepalive == "on" { 4 } else { 40 };
            assert_eq!(one["connections"]["opened"], opened, "{name}");
        }
    }
    // HTTP/3 has no plain form
    let document = bench(&["--http", "1.1,3", "--tls", "none,1.3", "-n", "8"]);
    assert_eq!(document["variants"].as_array().unwrap().len(), 6);
}

#[cfg(target_os = "linux")]
#[test]
fn a_cold_request_takes_two_round_trips_and_with_early_data_one() {
    let words = [
        "--link",
        "rtt=30ms",
        "--keepalive",
        "off",
        "--tls",
        "1.3",
        "-n",
        "16",
    ];
    let typical = |document: &Value, name: &str| {
        let value = &variant(document, name)["typical_ms"];
        value.as_f64().unwrap_or_else(|| panic!("{name}: {value}"))
    };
    // a busy machine can hide a round trip of 30 ms, but not three times
    let shows = |measure: &dyn Fn() -> (f64, f64)| {
        let pairs: Vec<_> = (0..3).map(|_| measure()).collect();
        assert!(
            pairs.iter().any(|(more, less)| more - less >= 15.0),
            "{pairs:?}"
        );
    };
    shows(&|| {
        let document = bench(&[&words[..], &["--http", "2,3"]].concat());
        let (http2, http3) = (typical(&document, "http=2"), typical(&document, "http=3"));
        assert!(http3 >= 60.0 && http2 >= 90.0, "{http3} {http2}");
        (http2, http3)
    });
    let early = ["--http", "3", "--resume", "on", "--early-data", "off,on"];
    shows(&|| {
        let document = bench(&[&words[..], &early].concat());
        let share = &variant(&document, "early-data=on")["early_data_share"];
        assert!(share.as_f64().unwrap() > 0.3, "{share}");
        let off = typical(&document, "early-data=off");
        let on = typical(&document, "early-data=on");
        assert!(on >= 30.0 && off >= 60.0, "{on} {off}");
        (off, on)
    });
}

#[test]
fn check_reports_whether_announced_http3_works() {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    let checked = |options: &[&str]| {
        let server = Server::start(options);
        server.write_ca(&ca);
        let url = format!("https://localhost:{}/", server.tls_port());
        let words = ["--cacert", ca.to_str().unwrap(), "--no-idle", &url];
        let document = check(&words).1;
        let mut page = vec!["check", "--full"];
        page.extend(words);
        let page = String::from_utf8(intact(&page).stdout).unwrap();
        (document["http3"].clone(), page)
    };
    let (works, page) = checked(&["--http3"]);
    assert_eq!(works["works"], true);
    assert_eq!(works["reused"], true);
    assert_eq!(works["resumed"], true);
    assert_eq!(works["early_data"], "not-offered");
    assert_eq!(works["connections"].as_array().unwrap().len(), 3);
    // --no-idle: the limit is announced and was not watched
    let idle = &works["idle_timeout"];
    assert!(idle["announced_s"].as_f64().unwrap() > 0.0, "{idle}");
    let bounds = &idle["bounds"]["measured_s"];
    assert!(
        idle["measured_s"].is_null() && bounds["low"].is_null(),
        "{idle}"
    );
    assert!(page.contains(": h3 works, setup "), "{page}");
    assert!(page.contains("idle, HTTP/3"), "{page}");
    let (blocked, page) = checked(&["--header", "Alt-Svc: h3=\":9\"; ma=60"]);
    assert_eq!(blocked["works"], false);
    assert_eq!(blocked["is_blocked"], true);
    assert!(
        page.contains("Alt-Svc announces h3 on UDP port 9: h3 is blocked"),
        "{page}"
    );
    assert!(checked(&[]).0.is_null());
}

#[test]
fn packets_of_http3_are_shown_by_type_and_kept_with_the_keys_inside() {
    let server = Server::start(&["--http3", "--early-data"]);
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    server.write_ca(&ca);
    let file = folder.path().join("packets.pcapng");
    let file = file.to_str().unwrap();
    let url = format!("https://127.0.0.1:{}/", server.tls_port());
    let words = ["check", &url, "--cacert", ca.to_str().unwrap(), "--no-idle"];
    let out = intact(&[&words[..], &["--ladder", "--pcapng", file]].concat());
    if out.status.code() == Some(4) {
        // without the right to capture; the message has a test of its own
        return;
    }
    let page = String::from_utf8(out.stdout).unwrap();
    let part = |title: &str| {
        let title = format!("Packets of {title}\n");
        let (_, ladder) = page
            .split_once(&title)
            .unwrap_or_else(|| panic!("{title}: {page}"));
        let (ladder, _) = ladder.split_once("\n\n").unwrap();
        ladder.to_owned()
    };
    let (cold, early) = (part("HTTP/3"), part("HTTP/3, resumed with early data"));
    for name in ["Initial", "Handshake", "1-RTT"] {
        assert!(cold.contains(name), "{name} in {cold}");
    }
    assert!(!cold.contains("0-RTT"), "{cold}");
    assert!(early.contains("0-RTT"), "{early}");
    // the secrets in the file open the packets
    let test = "packets_of_http3_are_shown_by_type_and_kept_with_the_keys_inside";
    if crate::peers::program("tshark", test).is_some() {
        let out = std::process::Command::new("tshark")
            .args(["-r", file, "-Y", "http3"])
            .output()
            .unwrap();
        assert!(!out.stdout.is_empty());
    }
}
