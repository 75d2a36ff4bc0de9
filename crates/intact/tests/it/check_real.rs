//! `intact check` and real programs: what nginx counted, how Node was configured, what curl prints
//! for the same server.

use crate::check::check;
use crate::peers::{Nginx, Peer, certificate, free_port, program, wait_for};
use crate::program::Server;
use std::process::{Command, Stdio};

#[test]
fn nginx_counts_what_we_count_and_has_the_limits_that_it_was_given() {
    let test = "nginx_counts_what_we_count_and_has_the_limits_that_it_was_given";
    let settings = "keepalive_timeout 1s 2s; keepalive_requests 20; client_header_timeout 1s;";
    let Some(nginx) = Nginx::start(test, settings) else {
        return;
    };
    for (url, http) in [
        (format!("http://127.0.0.1:{}/", nginx.plain), "1.1"),
        (format!("https://127.0.0.1:{}/", nginx.tls), "1.1"),
        (format!("https://127.0.0.1:{}/", nginx.tls), "2"),
    ] {
        let (connections, requests) = nginx.count();
        let words = ["--insecure", "--idle-limit", "20s", "--http", http, &*url];
        let (out, document) = check(&words);
        let (connections_then, requests_then) = nginx.count();
        assert_eq!(out.status.code(), Some(0), "{url}");
        let idle = &document["idle_timeout"];
        assert!(idle["measured_s"].as_f64() >= Some(0.99), "{url}: {idle}");
        assert!(
            idle["before_first_request_s"].as_f64() >= Some(0.99),
            "{url}: {idle}"
        );
        let max = &document["max_requests"];
        assert_eq!(max["measured"], 20, "{url}: {max}");
        if http == "1.1" {
            assert_eq!(idle["announced_s"], 2, "{url}: {idle}");
            assert_eq!(max["ended"]["announced"], true, "{url}: {max}");
        }
        // asking nginx is a connection and a request, too; so are the first bytes of HTTP/2 where
        // it is not spoken
        let ours = document["connections"]["opened"].as_u64().unwrap();
        assert_eq!(connections_then - connections - 1, ours, "{url}");
        let ours = document["requests"]["total"].as_u64().unwrap();
        assert_eq!(requests_then - requests - 1, ours, "{url}");
    }
}

#[test]
fn node_closes_at_its_configured_limit() {
    let test = "node_closes_when_it_was_told_to";
    let Some(node) = program("node", test) else {
        return;
    };
    let port = free_port();
    let script = format!(
        "const server = require('http').createServer((request, response) => response.end('hello'));
         server.keepAliveTimeout = 1000; server.maxRequestsPerSocket = 30; server.listen({port}, '127.0.0.1');"
    );
    let child = Command::new(node)
        .args(["-e", &script])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let _peer = Peer(child);
    wait_for(port);
    let url = format!("http://127.0.0.1:{port}/");
    let (_, document) = check(&["--idle-limit", "3s", &url]);
    let idle = &document["idle_timeout"];
    assert_eq!(idle["announced_s"], 1, "{idle}");
    assert!(idle["measured_s"].as_f64() >= Some(0.99), "{idle}");
    assert_eq!(document["max_requests"]["measured"], 30);
    assert_eq!(document["max_requests"]["announced"], 30);
}

#[test]
fn curl_says_of_the_connection_what_we_say_that_it_says() {
    let test = "curl_says_of_the_connection_what_we_say_that_it_says";
    let Some(curl) = program("curl", test) else {
        return;
    };
    for words in [&[][..], &["--max-requests", "1"]] {
        let server = Server::start(words);
        let (_, document) = check(&["--no-idle", &server.plain()]);
        for (nth, options) in [
            (0, &["--http1.0"][..]),
            (1, &["--http1.0", "-H", "Connection: keep-alive"]),
            (2, &["--http1.1"]),
            (3, &["--http2-prior-knowledge"]),
        ] {
            let out = Command::new(&curl)
                .args(["-sv", "-o", "/dev/null", &server.plain()])
                .args(options)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            let last = said.lines().last().unwrap_or("");
            let curl_says = if last.contains("left intact") {
                "left intact"
            } else {
                assert!(
                    last.to_ascii_lowercase().contains("closing") || last.contains("shutting down"),
                    "{said}"
                );
                "closing"
            };
            let ours = &document["versions"][nth]["curl"];
            assert_eq!(ours, curl_says, "{words:?} {options:?}: {said}");
        }
    }
}

#[test]
fn versions_of_tls_that_should_not_be_accepted_are_reported() {
    let test = "versions_of_tls_that_should_not_be_accepted_are_told_when_they_are";
    let Some(openssl) = program("openssl", test) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path());
    let port = free_port();
    let child = Command::new(openssl)
        .args(["s_server", "-quiet", "-www", "-accept"])
        .arg(format!("127.0.0.1:{port}"))
        .args(["-min_protocol", "TLSv1", "-cipher", "ALL:@SECLEVEL=0"])
        .arg("-cert")
        .arg(folder.path().join("cert.pem"))
        .arg("-key")
        .arg(folder.path().join("key.pem"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _peer = Peer(child);
    wait_for(port);
    let url = format!("https://127.0.0.1:{port}/");
    // it never answers HEAD
    let ca = folder.path().join("cert.pem");
    let ca = ca.to_str().unwrap();
    // openssl has made it with CA:TRUE
    let (out, document) = check(&[&url, "--cacert", ca, "--no-idle", "--timeout", "1s"]);
    assert_eq!(out.status.code(), Some(0), "{document}");
    let other = tempfile::tempdir().unwrap();
    certificate(other.path());
    let other = other.path().join("cert.pem");
    let refused = check(&[&url, "--cacert", other.to_str().unwrap(), "--no-idle"]);
    assert_eq!(refused.0.status.code(), Some(3));
    let verdict = refused.1["verdict"].to_string();
    assert!(
        verdict.contains("not one of the trusted certificates"),
        "{verdict}"
    );
    assert!(!verdict.contains("CaUsedAsEndEntity"), "{verdict}");
    assert_eq!(document["tls_older"][0]["accepted"], true);
    assert_eq!(document["tls_older"][1]["accepted"], true);
    let rules = document["findings"].to_string();
    assert!(rules.contains("old-tls-accepted"), "{rules}");
    // it answers in HTTP/1.0 and closes, whatever it is asked in
    assert_eq!(document["versions"][2]["response_version"], "1.0");
    assert_eq!(document["versions"][2]["reused"], false);
}
