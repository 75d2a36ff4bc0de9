//! `intact check` against peers that are no use, or do what no option of `serve` does.

use crate::check::check;
use crate::peers::CLOSED;
use crate::program::{Schema, Server, intact};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
#[cfg(unix)]
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A peer that does this with every connection, each in a thread of its own, for as long as the
/// test runs.
pub(crate) fn peer(serve: impl Fn(TcpStream, u32) + Send + Sync + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (nth, stream) in (0..).zip(listener.incoming().map_while(Result::ok)) {
            let serve = serve.clone();
            thread::spawn(move || serve(stream, nth));
        }
    });
    address
}

/// Reads one request head; `false` at the end of the stream.
pub(crate) fn next_request(reader: &mut BufReader<TcpStream>) -> bool {
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|count| count > 0) {
        if line == "\r\n" {
            return true;
        }
        line.clear();
    }
    false
}

/// Responds to every request of a connection until it ends.
pub(crate) fn answer_all(reader: &mut BufReader<TcpStream>) {
    while next_request(reader) && reader.get_mut().write_all(ANSWER).is_ok() {}
}

pub(crate) const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn rules(document: &Value) -> Vec<&str> {
    let findings = document["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|finding| finding["rule"].as_str().unwrap())
        .collect()
}

/// A check that gets no answer: exit 3, this kind of failure, these words in the verdict.
fn useless(words: &[&str], kind: &str, said: &str) {
    let mut all = vec!["--timeout", "500ms"];
    all.extend_from_slice(words);
    let (out, document) = check(&all);
    assert_eq!(out.status.code(), Some(3), "{words:?}");
    assert_eq!(document["target"]["failed"], kind, "{words:?}");
    assert_eq!(rules(&document), ["unreachable"], "{words:?}");
    let verdict = document["verdict"][0].as_str().unwrap();
    assert!(verdict.contains(said), "{words:?}: {verdict}");
    assert!(document["idle_timeout"].is_null() && document["max_requests"].is_null());
    assert!(
        document["skipped"].as_array().unwrap().len() > 4,
        "{words:?}"
    );
}

#[test]
fn a_peer_that_is_no_use_is_named_with_the_remedy() {
    useless(&[CLOSED], "refused", "host and port");
    useless(
        &["http://no-such-host.invalid/"],
        "lookup",
        "could not be resolved",
    );
    let silent = peer(|stream, _| {
        let _ = (&stream).read(&mut [0; 1]);
        thread::sleep(Duration::from_secs(60));
    });
    useless(&[&format!("http://{silent}/")], "timeout", "--timeout");
    let closing = peer(|stream, _| {
        let _ = (&stream).read(&mut [0; 1024]);
    });
    useless(&[&format!("http://{closing}/")], "closed", "closed");
    let garbage = peer(|mut stream, _| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
        let _ = stream.read(&mut [0; 1024]);
    });
    useless(&[&format!("http://{garbage}/")], "malformed", "not HTTP");
}

#[test]
fn the_other_of_tls_and_plain_http_is_recognised() {
    let server = Server::start(&[]);
    let plain = server.plain().replace("http://", "https://");
    let (out, document) = check(&[&plain]);
    assert_eq!(out.status.code(), Some(3));
    let verdict = document["verdict"][0].as_str().unwrap();
    assert!(verdict.contains("use http://"), "{verdict}");
    let polite = peer(|mut stream, _| {
        let mut bytes = [0; 1024];
        let count = stream.read(&mut bytes).unwrap_or(0);
        let _ = if bytes[..count].starts_with(b"GET ") {
            stream.write_all(ANSWER)
        } else {
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        };
    });
    useless(&[&format!("https://{polite}/")], "not-tls", "use http://");
    let secure = format!("http://127.0.0.1:{}/", server.tls_port());
    let (out, document) = check(&[&secure]);
    assert_eq!(out.status.code(), Some(3));
    assert_eq!(document["target"]["other_scheme"], true);
    let verdict = document["verdict"][0].as_str().unwrap();
    assert!(verdict.contains("use https://"), "{verdict}");
}

#[test]
fn a_certificate_that_does_not_fit_is_refused_with_its_fault() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    server.write_ca(&ca);
    let ca = ca.to_str().unwrap();
    let port = server.tls_port();
    let url = format!("https://127.0.0.1:{port}/");
    useless(&[&url], "certificate-unknown", "--cacert");
    let resolve = format!("other.test:{port}:127.0.0.1");
    let named = format!("https://other.test:{port}/");
    useless(
        &[&named, "--resolve", &resolve, "--cacert", ca],
        "certificate-name",
        "--insecure",
    );
    let (out, document) = check(&[&url, "--insecure", "--no-idle"]);
    assert_eq!(out.status.code(), Some(0));
    assert_eq!(document["versions"][2]["reused"], true);

    let (certificate, key) = expired(folder.path());
    let server = Server::start(&["--cert", &certificate, "--key", &key]);
    let url = format!("https://localhost:{}/", server.tls_port());
    useless(
        &[&url, "-4", "--cacert", &certificate],
        "certificate-expired",
        "expired",
    );
}

/// A certificate for localhost that was good once, and its key.
fn expired(folder: &Path) -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    parameters.not_before = rcgen::date_time_ymd(2020, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2021, 1, 1);
    let certificate = parameters.self_signed(&key).unwrap();
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    (
        write("expired.pem", certificate.pem()),
        write("expired-key.pem", key.serialize_pem()),
    )
}

#[test]
fn a_redirect_is_printed_and_followed_only_on_request() {
    let end = Server::start(&[]);
    let location = format!("Location: {}end?token=secret", end.plain());
    let server = Server::start(&["--status", "302", "--header", &location]);
    let (_, document) = check(&[&server.plain(), "--no-idle"]);
    assert_eq!(document["target"]["status"], 302);
    let to = document["target"]["redirect"]["to"].as_str().unwrap();
    assert!(to.starts_with(&format!("{}end", end.plain())), "{to}");
    assert!(rules(&document).contains(&"redirect"));
    let (_, document) = check(&[&server.plain(), "--no-idle", "-L"]);
    assert_eq!(document["target"]["status"], 200);
    assert_eq!(document["target"]["url"], format!("{}end", end.plain()));
    assert_eq!(document["target"]["followed"][0]["status"], 302);
    assert!(!document.to_string().contains("secret"));
}

#[test]
fn a_server_that_an_idle_connection_blocks_is_found_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream);
            answer_all(&mut reader);
        }
    });
    let (out, document) = check(&[&url, "--idle-limit", "1s"]);
    assert_eq!(out.status.code(), Some(0));
    assert_eq!(document["idle_timeout"]["answers_others"], false);
    assert!(
        rules(&document).contains(&"idle-connection-blocks"),
        "{document:#}"
    );
    let idle = &document["idle_timeout"];
    assert!(idle["measured_s"].is_null(), "{idle:#}");
    assert!(
        idle["bounds"]["measured_s"]["low"].as_f64() >= Some(1.0),
        "{idle:#}"
    );
}

#[test]
fn a_maximum_age_is_no_limit_of_requests() {
    let by_age = peer(|stream, _| {
        let begun = Instant::now();
        let mut reader = BufReader::new(stream);
        while next_request(&mut reader) {
            thread::sleep(Duration::from_millis(15));
            if begun.elapsed() > Duration::from_secs(1) {
                let last = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
                let _ = reader.get_mut().write_all(last);
                return;
            }
            reader.get_mut().write_all(ANSWER).unwrap();
        }
    });
    let by_requests = peer(|stream, _| {
        let mut reader = BufReader::new(stream);
        for _ in 0..40 {
            if !next_request(&mut reader) || reader.get_mut().write_all(ANSWER).is_err() {
                return;
            }
        }
    });
    for (server, is_aged) in [(by_age, true), (by_requests, false)] {
        let (_, document) = check(&[&format!("http://{server}/"), "--idle-limit", "3s"]);
        let findings = document["findings"].as_array().unwrap();
        let limit = findings
            .iter()
            .find(|finding| finding["rule"] == "max-requests-low")
            .unwrap_or_else(|| panic!("{document:#}"));
        let claim = limit["claim"].as_str().unwrap();
        assert_eq!(claim.contains("ends at an age"), is_aged, "{claim}");
    }
}

#[test]
fn an_unsolicited_response_at_the_end_is_reported() {
    let url = peer(|stream, _| {
        stream
            .set_read_timeout(Some(Duration::from_millis(400)))
            .unwrap();
        let mut reader = BufReader::new(stream);
        answer_all(&mut reader);
        let _ = reader
            .get_mut()
            .write_all(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n");
    });
    let (_, document) = check(&[&format!("http://{url}/"), "--idle-limit", "20s"]);
    assert_eq!(document["idle_timeout"]["ended"]["unsolicited_status"], 408);
    assert!(document["idle_timeout"]["measured_s"].as_f64() >= Some(0.39));
}

#[test]
fn responses_that_come_later_on_reused_connections_are_reported() {
    let url = peer(|stream, _| {
        let mut reader = BufReader::new(stream);
        let mut answered = 0;
        while next_request(&mut reader) {
            // the second and third request are those that are compared with the first
            if (1..3).contains(&answered) {
                thread::sleep(Duration::from_millis(80));
            }
            answered += 1;
            if reader.get_mut().write_all(ANSWER).is_err() {
                return;
            }
        }
    });
    let (_, document) = check(&[&format!("http://{url}/"), "--no-idle"]);
    assert!(
        rules(&document).contains(&"slower-when-reused"),
        "{document:#}"
    );
    let verdict = document["verdict"].to_string();
    assert!(verdict.contains("reuse saves no time here"), "{verdict}");
}

#[test]
fn a_connection_that_stays_with_one_of_several_servers_is_reported() {
    let url = peer(|stream, nth| {
        let mut reader = BufReader::new(stream);
        let answer = format!("HTTP/1.1 200 OK\r\nx-backend: {nth}\r\ncontent-length: 2\r\n\r\nok");
        while next_request(&mut reader) && reader.get_mut().write_all(answer.as_bytes()).is_ok() {}
    });
    let (_, document) = check(&[&format!("http://{url}/"), "--no-idle"]);
    assert_eq!(document["state"]["affinity"][0], "x-backend");
    assert!(rules(&document).contains(&"connection-affinity"));
}

#[test]
fn a_close_after_head_is_reported() {
    let url = peer(|stream, _| {
        let mut reader = BufReader::new(stream);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 || !next_request(&mut reader) {
                return;
            }
            let head = line.starts_with("HEAD");
            let answer = if head {
                &ANSWER[..ANSWER.len() - 2]
            } else {
                ANSWER
            };
            if reader.get_mut().write_all(answer).is_err() || head {
                return;
            }
        }
    });
    let (_, document) = check(&[&format!("http://{url}/"), "--no-idle"]);
    assert_eq!(document["methods"][0]["what"], "HEAD");
    assert_eq!(document["methods"][0]["kept"], false);
    assert!(rules(&document).contains(&"closed-after-method"));
}

#[test]
fn requirements_hold_lower_bounds_only_where_those_settle_them() {
    let server = Server::start(&[]);
    let held = |requirement: &str| {
        let out = intact(&[
            "check",
            &server.plain(),
            "--idle-limit",
            "1s",
            "--require",
            requirement,
        ]);
        let said = String::from_utf8(out.stderr).unwrap();
        (out.status.code(), said)
    };
    assert_eq!(held("idle-timeout >= 1s").0, Some(0));
    assert_eq!(held("max-requests >= 110").0, Some(0));
    let (code, said) = held("idle-timeout >= 60s");
    assert_eq!(code, Some(1));
    assert!(said.contains("which does not decide >= 60s"), "{said}");
    assert_eq!(held("idle-timeout < 60s").0, Some(1));
    assert_eq!(held("errors == 0").0, Some(0));
    assert_eq!(held("p99 < 1s").0, Some(2), "check has no latency to hold");
}

// a signal interrupts it
#[cfg(unix)]
#[test]
fn an_interrupted_wait_keeps_the_card_and_a_stored_card_reads_back() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let mut child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["check", &server.plain(), "--json", "--ledger"])
        .arg(&ledger)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // the wait has begun when the card on disk has the requests per connection
    let waits = || -> Option<()> {
        let profile = std::fs::read(ledger.join("server-profile.json")).ok()?;
        let profile: Value = serde_json::from_slice(&profile).ok()?;
        profile["requests"].is_object().then_some(())
    };
    for _ in 0..1_000 {
        if waits().is_some() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    crate::program::signal(child.id(), "-INT");
    let mut text = String::new();
    let mut out = child.stdout.take().unwrap();
    out.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let live: Value = serde_json::from_str(&text).unwrap();
    assert!(live["max_requests"]["measured"].is_null());
    assert_eq!(live["max_requests"]["bounds"]["measured"]["low"], 110);
    assert!(live["idle_timeout"]["measured_s"].is_null());

    let out = intact(&["report", ledger.to_str().unwrap(), "--json"]);
    assert_eq!(out.status.code(), Some(0));
    let stored: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(stored, live);
}

#[test]
fn the_document_of_a_check_is_what_its_schema_says() {
    let schema = Schema::named("check");
    let server = Server::start(&["--idle-timeout", "500ms", "--max-requests", "60"]);
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    server.write_ca(&ca);
    let ca = ca.to_str().unwrap();
    let secure = format!("https://127.0.0.1:{}/", server.tls_port());
    let refused = format!("http://{CLOSED}/");
    let named = server.plain().replace("127.0.0.1", "localhost");
    for words in [
        &[&*secure, "--cacert", ca, "--idle-limit", "2s", "--thorough"][..],
        &[&named, "-4", "--no-idle"],
        &[&secure],
        &[&refused],
    ] {
        let (_, document) = check(words);
        schema.check(&document);
    }
}

#[test]
fn an_idle_limit_that_shrinks_under_many_connections_is_reported() {
    let open = Arc::new(AtomicU32::new(0));
    let url = peer(move |stream, _| {
        let others = open.fetch_add(1, Ordering::Relaxed);
        let idle = if others > 10 { 200 } else { 1_600 };
        stream
            .set_read_timeout(Some(Duration::from_millis(idle)))
            .unwrap();
        let mut reader = BufReader::new(stream);
        answer_all(&mut reader);
        open.fetch_sub(1, Ordering::Relaxed);
    });
    let url = format!("http://{url}/");
    let (_, document) = check(&[&url, "--idle-connections", "30", "--idle-limit", "20s"]);
    assert!(document["idle_under_load"]["measured_s"].is_number());
    assert!(
        rules(&document).contains(&"idle-timeout-shrinks"),
        "{document:#}"
    );
}
