//! `intact check` against servers whose behaviour is known: scenarios are data.

use crate::program::{Server, exchanges, intact};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Output;
use std::thread;

/// Runs a check; the process' output and its document.
pub(crate) fn check(words: &[&str]) -> (Output, Value) {
    let mut all = vec!["check", "--json"];
    all.extend_from_slice(words);
    let out = intact(&all);
    let text = String::from_utf8(out.stdout.clone()).unwrap();
    let document = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!(
            "{words:?}: {error}: {text} {}",
            String::from_utf8_lossy(&out.stderr)
        )
    });
    (out, document)
}

#[derive(Deserialize)]
struct Scenarios {
    scenario: Vec<Scenario>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    name: String,
    pub(crate) serve: Vec<String>,
    pub(crate) check: Vec<String>,
    #[serde(default)]
    pub(crate) tls: bool,
    #[serde(default = "yes")]
    agrees: bool,
    #[serde(default)]
    many: bool,
    #[serde(default)]
    exit: i32,
    #[serde(default)]
    pub(crate) finds: Vec<String>,
    #[serde(default)]
    finds_not: Vec<String>,
    expect: BTreeMap<String, Expected>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Expected {
    AtLeast { at_least: f64 },
    Null { is: String },
    Value(toml::Value),
}

impl Expected {
    fn holds(&self, found: &Value) -> bool {
        match self {
            Expected::AtLeast { at_least } => {
                found.as_f64().is_some_and(|value| value >= *at_least)
            }
            Expected::Null { is } => is == "null" && found.is_null(),
            Expected::Value(value) => &serde_json::to_value(value).unwrap() == found,
        }
    }
}

impl Scenario {
    /// What does not hold; empty when all does.
    fn run(&self) -> Vec<String> {
        let serve: Vec<&str> = self.serve.iter().map(String::as_str).collect();
        let server = Server::start(&serve);
        let folder = tempfile::tempdir().unwrap();
        let ca = folder.path().join("ca.pem");
        server.write_ca(&ca);
        let mut words: Vec<&str> = self.check.iter().map(String::as_str).collect();
        let secure = format!("https://127.0.0.1:{}/", server.tls_port());
        let plain = server.plain();
        words.extend(["--cacert", ca.to_str().unwrap()]);
        words.push(if self.tls { &secure } else { &plain });
        let (out, document) = check(&words);
        let mut wrong = Vec::new();
        for (pointer, expected) in &self.expect {
            let found = document.pointer(pointer).unwrap_or(&Value::Null);
            if !expected.holds(found) {
                wrong.push(format!("{pointer} is {found}"));
            }
        }
        let found: Vec<&str> = document["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| finding["rule"].as_str().unwrap())
            .collect();
        for rule in &self.finds {
            if !found.contains(&rule.as_str()) {
                wrong.push(format!("{rule} is not among {found:?}"));
            }
        }
        for rule in &self.finds_not {
            if found.contains(&rule.as_str()) {
                wrong.push(format!("{rule} should not be among {found:?}"));
            }
        }
        if out.status.code() != Some(self.exit) {
            wrong.push(format!("exit code {:?}", out.status.code()));
        }
        if !self.many && document["requests"]["total"].as_u64() > Some(200) {
            wrong.push(format!("{} requests", document["requests"]["total"]));
        }
        let theirs = server.end();
        let cell = &theirs["cells"][0];
        let counts = |what: &str, ours: &Value, theirs: u64| {
            (self.agrees && ours.as_u64() != Some(theirs))
                .then(|| format!("we count {ours} {what}, the server {theirs}"))
        };
        wrong.extend(counts(
            "requests",
            &document["requests"]["total"],
            exchanges(cell),
        ));
        wrong.extend(counts(
            "connections",
            &document["connections"]["opened"],
            cell["connections"]["opened"].as_u64().unwrap(),
        ));
        wrong
            .into_iter()
            .map(|wrong| format!("{}: {wrong}", self.name))
            .collect()
    }
}

/// The scenarios of `fixtures/scenarios/check.toml`.
pub(crate) fn scenarios() -> Vec<Scenario> {
    let text = include_str!("../../../../fixtures/scenarios/check.toml");
    let scenarios: Scenarios = toml::from_str(text).unwrap();
    scenarios.scenario
}

#[test]
fn every_scenario_has_the_card_that_its_server_deserves() {
    let running: Vec<_> = scenarios()
        .into_iter()
        .map(|scenario| thread::spawn(move || scenario.run()))
        .collect();
    let wrong: Vec<String> = running
        .into_iter()
        .flat_map(|run| run.join().unwrap())
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
