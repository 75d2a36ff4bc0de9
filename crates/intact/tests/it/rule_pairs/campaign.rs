//! The rules of a campaign: one of many targets, each of which shows one, and one that shows none.
//!
//! Its benches and checks are those of `bench` and `check`, which have pairs of their own. Here
//! each finding must reach the document of the campaign, at its target.

use super::checks::{PROBED, Probed};
use crate::check::scenarios;
use crate::peers::{CLOSED, program};
use crate::program::{Server, intact};
use intact_document::requirement::DocumentKind;
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Why a rule has no target here.
const LEFT_OUT: [(&str, &str); 4] = [
    (
        "ports-running-out",
        "documents.rs has its pair, with few ports",
    ),
    (
        "certificate-chain-large",
        "checks.rs has its pair, with a certificate of openssl",
    ),
    (
        "old-tls-accepted",
        "checks.rs has its pair, with a server of openssl",
    ),
    (
        "failed-requests",
        "documents.rs has its pair: a target that fails has no bench",
    ),
];

/// The rule that a target shows, none for a sound one.
struct Target {
    rule: Option<String>,
    measure: &'static str,
    url: String,
    lines: String,
    _server: Box<dyn Any>,
}

impl Target {
    fn probed(rule: &str, measure: &'static str, kind: &str) -> Target {
        let server = Probed::start(kind);
        let url = server.url();
        Target::new(Some(rule), measure, url, server)
    }

    fn own(rule: Option<&str>, measure: &'static str, serve: &[&str], is_tls: bool) -> Target {
        let server = Server::start(serve);
        let url = if is_tls {
            format!("https://127.0.0.1:{}/", server.tls_port())
        } else {
            server.plain()
        };
        Target::new(rule, measure, url, server)
    }

    fn new(rule: Option<&str>, measure: &'static str, url: String, server: impl Any) -> Target {
        let lines = format!("measure = \"{measure}\"\ninsecure = true\n");
        Target {
            rule: rule.map(str::to_owned),
            measure,
            url,
            lines,
            _server: Box::new(server),
        }
    }
}

fn targets() -> Vec<Target> {
    let mut all = Vec::new();
    let claimed = intact_findings::rules_of(DocumentKind::Fleet);
    for (rule, kind) in [
        ("bytes-after-response", "bytes-after-response"),
        ("slower-when-reused", "slow-on-reuse"),
    ] {
        all.push(Target::probed(rule, "bench", kind));
    }
    all.push(Target::own(
        Some("not-2xx"),
        "bench",
        &["--status", "404"],
        false,
    ));
    all.push(Target::own(
        Some("server-closes-early"),
        "bench",
        &["--max-requests", "3"],
        false,
    ));
    for (rule, _) in PROBED {
        if claimed.contains(&rule) {
            all.push(Target::probed(rule, "check", rule));
        }
    }
    for scenario in scenarios() {
        for rule in &scenario.finds {
            let serve: Vec<&str> = scenario.serve.iter().map(String::as_str).collect();
            let mut target = Target::own(Some(rule), "check", &serve, scenario.tls);
            if let Some(at) = scenario.check.iter().position(|word| word == "--expect") {
                let _ = writeln!(target.lines, "expect = \"{}\"", scenario.check[at + 1]);
            }
            all.push(target);
        }
    }
    let redirect = Server::start(&[]);
    let url = redirect.plain() + "redirect";
    all.push(Target::new(Some("redirect"), "check", url, redirect));
    all.push(Target::new(
        Some("unreachable"),
        "check",
        format!("http://{CLOSED}/"),
        (),
    ));
    all.push(Target::own(None, "bench", &[], false));
    all.push(Target::own(None, "check", &[], true));
    all
}

/// The rules of each target's findings in the document of a campaign.
fn found(document: &Value) -> BTreeMap<(&'static str, String), Vec<String>> {
    let part = |list: &'static str, part: &'static str, measure| {
        let all = document[list].as_array().into_iter().flatten();
        all.map(move |one| {
            let findings = one[part]["findings"].as_array().into_iter().flatten();
            let rules = findings.map(|finding| finding["rule"].as_str().unwrap().to_owned());
            let target = one["target"].as_str().unwrap().to_owned();
            ((measure, target), rules.collect())
        })
    };
    let benches = part("groups", "bench", "bench");
    benches.chain(part("checks", "cards", "check")).collect()
}

#[test]
fn each_rule_of_a_campaign_reaches_its_document_at_its_target() {
    if program("python3", "rule_pairs::campaign").is_none() {
        return;
    }
    let targets = targets();
    let mut plan = "name = \"rules\"\nrepetitions = 1\nduration = \"500ms\"\n\
         [limits]\nrequests = 100000\nrate = 200\nworkers = 6\ndeliveries = 1\n\
         [axes]\nkeepalive = [\"on\", \"off\"]\n"
        .to_owned();
    for (nth, target) in targets.iter().enumerate() {
        let Target { url, lines, .. } = target;
        let _ = writeln!(
            plan,
            "[[target]]\nname = \"t{nth}\"\nurl = \"{url}\"\ni-own-this = \"127.0.0.1\"\n{lines}"
        );
        if target.measure == "check" {
            plan.push_str("idle-limit = \"3s\"\n");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("plan.toml"), plan).unwrap();
    let out = intact(&[
        "fleet",
        "run",
        &at("plan.toml"),
        "--json",
        "--store",
        &at("store"),
    ]);
    let document: Value =
        serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out:?}"));
    let found = found(&document);
    let mut faults = Vec::new();
    for (nth, target) in targets.iter().enumerate() {
        let rules = found.get(&(target.measure, format!("t{nth}")));
        let rules = rules.map_or(&[][..], Vec::as_slice);
        match &target.rule {
            Some(rule) if !rules.contains(rule) => {
                faults.push(format!(
                    "{} {rule}: its target has {rules:?}",
                    target.measure
                ));
            }
            Some(_) => {}
            None => {
                // a busy machine may show rules of times with any server

                if !rules.iter().all(super::checks::is_of_times) {
                    faults.push(format!("a sound target has {rules:?}"));
                }
            }
        }
    }
    for rule in intact_findings::rules_of(DocumentKind::Fleet) {
        let is_shown = targets.iter().any(|one| one.rule.as_deref() == Some(rule));
        if is_shown == LEFT_OUT.iter().any(|(left, _)| *left == rule) {
            faults.push(format!(
                "{rule} has {}target",
                if is_shown { "a " } else { "no " }
            ));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
