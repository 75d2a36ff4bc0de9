//! The rules of `check`: servers with which they fire, and sound ones with which none does.
//!
//! Many fire in `fixtures/scenarios/check.toml`, whose test checks that they do.

use super::{in_threads, passed};
use crate::check::{check, scenarios};
use crate::peers::{CLOSED, Peer, certificate, free_port, program, wait_for};
use crate::program::{ReadyProgram, Server};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// The rules, and the options of a check that finds them with a server of `servers.py` of this
/// name.
pub(super) const PROBED: [(&str, &[&str]); 9] = [
    ("reuse-saves-little", &["--no-idle"]),
    ("bytes-after-response", &["--no-idle"]),
    ("closed-after-method", &["--no-idle"]),
    ("connection-affinity", &["--no-idle"]),
    ("slower-when-reused", &["--no-idle"]),
    ("stopped-accepting", &["--no-idle"]),
    ("idle-connection-blocks", &["--idle-limit", "1s"]),
    ("shorter-before-first-request", &["--idle-limit", "3s"]),
    (
        "idle-timeout-shrinks",
        &["--idle-limit", "3s", "--idle-connections", "30"],
    ),
];

/// The rules, and a command that serves and is ended: `$SERVE` is our server, `$PEER` one of
/// `servers.py`.
const DRAINED: [(&str, &str); 5] = [
    ("drain-not-handled", "exec $PEER drain-not-handled"),
    ("lost-in-drain", "exec $SERVE --drain-time 0s"),
    ("drain-refuses-at-once", "exec $SERVE"),
    ("drain-not-ended", "trap '' TERM; $SERVE & wait; wait"),
    ("drain-not-announced", "trap '' TERM; $SERVE & wait; wait"),
];

/// Rules that have a test of their own.
const OF_TLS: [&str; 2] = ["certificate-chain-large", "old-tls-accepted"];

/// Rules of times, which a busy machine may show with any server, and one whose times are the
/// opposite.
const OF_TIMES: [(&str, &str); 3] = [
    ("first-request-costs-more", "slower-when-reused"),
    ("slower-when-reused", "slow-at-first"),
    ("reuse-saves-little", "slow-at-first"),
];

/// Whether a busy machine may show the rule with any server.
pub(super) fn is_of_times(rule: &String) -> bool {
    OF_TIMES.iter().any(|(one, _)| one == rule)
}

fn rules(document: &Value) -> Vec<String> {
    let findings = document["findings"].as_array().unwrap();
    let rules = findings.iter().map(|one| one["rule"].as_str().unwrap());
    rules.map(str::to_owned).collect()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("peer.py", include_str!("peer.py")),
        ("servers.py", include_str!("servers.py")),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// The words that start a server of `servers.py`.
fn server(folder: &Path, kind: &str, port: u16) -> Vec<String> {
    let port = format!("PORT={port}");
    let script = folder.join("servers.py").display().to_string();
    let all = ["env", &port, "SERVER=127.0.0.1", "CLIENT=127.0.0.1"];
    let words = all
        .into_iter()
        .chain(["FOLDER=.", "python3", &script, kind]);
    words.map(str::to_owned).collect()
}

/// A server of `servers.py`.
pub(super) struct Probed {
    port: u16,
    _program: ReadyProgram,
    _folder: tempfile::TempDir,
}

impl Probed {
    /// Starts the one of this name.
    pub(super) fn start(kind: &str) -> Probed {
        let (folder, port) = (folder(), free_port());
        let words = server(folder.path(), kind, port);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Probed {
            port,
            _program: ReadyProgram::start(&words),
            _folder: folder,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }
}

/// What `check` finds with a server of `servers.py`.
fn probed(kind: &str, options: &[&str]) -> Vec<String> {
    let server = Probed::start(kind);
    rules(&check(&[&[&*server.url()], options].concat()).1)
}

/// What `check --drain` finds with a command.
fn drained(command: &str, options: &[&str]) -> Value {
    let (folder, port) = (folder(), free_port());
    let url = format!("http://127.0.0.1:{port}/");
    let serve = format!(
        "{} serve --listen 127.0.0.1:{port} --tls-listen 127.0.0.1:0",
        env!("CARGO_BIN_EXE_intact")
    );
    let peer = server(folder.path(), "", port).join(" ");
    let command = command.replace("$SERVE", &serve).replace("$PEER ", &peer);
    let drain = [
        "--drain",
        "--drain-slow",
        "/delay/500",
        "--drain-time",
        "3s",
    ];
    let command = ["--", "sh", "-c", &*command];
    check(&[&[&*url], &drain[..], options, &command].concat()).1
}

/// A rule, and what a check finds that should find it.
type Check = (&'static str, Box<dyn Fn() -> Vec<String> + Sync>);

/// The checks of this file, but for those of TLS.
fn checks() -> Vec<Check> {
    let probed = PROBED
        .into_iter()
        .map(|(rule, options)| -> Check { (rule, Box::new(|| probed(rule, options))) });
    let drained = DRAINED
        .into_iter()
        .map(|(rule, command)| -> Check { (rule, Box::new(|| rules(&drained(command, &[])))) });
    let redirect = || {
        let server = Server::start(&[]);
        let url = server.plain() + "redirect";
        rules(&check(&[&url, "--no-idle"]).1)
    };
    let unreachable = || rules(&check(&[CLOSED]).1);
    let others: [Check; 2] = [
        ("redirect", Box::new(redirect)),
        ("unreachable", Box::new(unreachable)),
    ];
    probed.chain(drained).chain(others).collect()
}

#[test]
fn each_rule_of_a_check_has_a_server_with_which_it_fires() {
    if program("python3", "rule_pairs::checks").is_none() {
        return;
    }
    let checks = checks();
    let found = in_threads(&checks, |(_, check)| check());
    let missing = checks.iter().zip(found);
    let missing = missing.filter(|((rule, _), found)| found.iter().all(|one| one != rule));
    let missing: Vec<_> = missing.map(|((rule, _), found)| (*rule, found)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn rules_of_tls_have_servers_with_which_they_fire() {
    let Some(openssl) = program("openssl", "rule_pairs::checks TLS") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let names: String = (0..400)
        .map(|nth| format!(",DNS:a-long-name-of-a-host-{nth}.example"))
        .collect();
    let names = format!("subjectAltName=DNS:localhost,IP:127.0.0.1{names}");
    let subject = ["-subj", "/CN=localhost", "-addext", &names];
    let made = Command::new(&openssl)
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        ])
        .args(subject)
        .args(["-keyout", &at("large-key.pem"), "-out", &at("large.pem")])
        .stderr(Stdio::null())
        .status();
    assert!(made.unwrap().success());
    let large = Server::start(&["--cert", &at("large.pem"), "--key", &at("large-key.pem")]);
    let url = format!("https://127.0.0.1:{}/", large.tls_port());
    let (_, document) = check(&[&url, "--cacert", &at("large.pem"), "--no-idle"]);
    let found = rules(&document);
    assert!(
        found.contains(&"certificate-chain-large".to_owned()),
        "{found:?}"
    );
    certificate(folder.path());
    let port = free_port();
    let child = Command::new(openssl)
        .args(["s_server", "-quiet", "-www", "-min_protocol", "TLSv1"])
        .args(["-cipher", "ALL:@SECLEVEL=0", "-accept"])
        .arg(format!("127.0.0.1:{port}"))
        .args(["-cert", &at("cert.pem"), "-key", &at("key.pem")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _peer = Peer(child.unwrap());
    wait_for(port);
    let url = format!("https://127.0.0.1:{port}/");
    let options = ["--cacert", &at("cert.pem"), "--no-idle", "--timeout", "1s"];
    let found = rules(&check(&[&[&*url], &options[..]].concat()).1);
    assert!(found.contains(&"old-tls-accepted".to_owned()), "{found:?}");
}

/// Two sound servers, of which one is ended: every rule judges one of them, and none fires.
#[test]
fn no_rule_of_a_check_fires_with_a_sound_server() {
    if program("python3", "rule_pairs::checks of a sound server").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let server = Server::start(&[]);
    server.write_ca(at("ca.pem").as_ref());
    let url = format!("https://127.0.0.1:{}/", server.tls_port());
    let junit = at("junit.xml");
    let idle = ["--idle-limit", "1500ms", "--idle-connections", "5"];
    let options = ["--cacert", &at("ca.pem"), "--junit", &junit];
    let (_, document) = check(&[&[&*url], &idle[..], &options].concat());
    assert!(rules(&document).iter().all(is_of_times), "{document:#}");
    for (rule, server) in OF_TIMES {
        let found = probed(server, &["--no-idle"]);
        assert!(found.iter().all(|one| one != rule), "{server}: {found:?}");
    }
    let mut judged = passed(&std::fs::read_to_string(&junit).unwrap());
    let document = drained("exec $PEER graceful", &["--junit", &junit]);
    assert!(rules(&document).is_empty(), "{document:#}");
    judged.extend(passed(&std::fs::read_to_string(&junit).unwrap()));
    for rule in intact_servers::check::rule_ids() {
        assert!(
            judged.iter().any(|one| one == rule),
            "{rule} judges neither"
        );
    }
}

#[test]
fn a_rule_that_a_check_claims_has_a_pair() {
    let scenarios = scenarios();
    let found = scenarios.iter().flat_map(|one| &one.finds);
    let mut fires: Vec<&str> = found.map(String::as_str).collect();
    fires.extend(checks().iter().map(|one| one.0));
    fires.extend(OF_TLS);
    for rule in intact_servers::check::rule_ids() {
        assert!(fires.contains(&rule), "no server shows {rule}");
    }
}
