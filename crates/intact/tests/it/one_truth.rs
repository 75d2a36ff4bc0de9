//! One figure, one truth: for every fixture that can be read and every kind of document, JSON, its
//! verdict, the gate, the terminal page, Markdown and HTML state the same reading of a figure: its
//! value, its bounds, or that it is unknown, and why.
//!
//! The binary is a black box. Requirements that nothing can meet make the gate print its reading of
//! every figure of every subject; each other output is compared with that.

use documents::{Input, Subject};
use gate::{Metric, gate_reading, metrics};
use page::Page;
use reading::{Difference, Reading};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter};
use std::process::{Command, Output, Stdio};

mod documents;
mod gate;
mod page;
mod reading;

/// Figures that no document states under a key of its own in JSON: each is derived from others that
/// are stated, or is a list. A new figure has a key, or a reason to be here.
const WITHOUT_KEY: &[&str] = &[
    // `phases_ms` has them by new and reused connections, or only their means are compared
    "dns.p50",
    "connect.p50",
    "ssl.p50",
    "blocked.mean",
    "blocked.p50",
    "send.p50",
    "wait.p50",
    "headers-to-body.mean",
    "headers-to-body.p50",
    "receive.p50",
    // parts of documents that no ledger here has
    "schedule.achieved",
    "schedule.queued",
    "throughput-gain",
    "unlike",
    "brought",
    "drain.lost",
    "drain.refused",
    "drain.announced",
    "drain.time",
    "chain.races",
    "chain.lost",
    // from `bytes_per_request`
    "header-bytes-per-request",
    // differences of two subjects
    "saved",
    "saved-share",
    // from `outcomes`
    "invocations-failed",
    // from the list of findings
    "findings.<rule>",
    "warnings",
    "errors",
    // in no document
    "stale",
];

/// The outputs that are compared with the gate.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Medium {
    /// The words of the gate itself: one of the display forms, or unknown and the reason.
    Gate,
    Json,
    /// The verdict, where it counts connections: `13 were opened where 7 would do`.
    Sentence,
    Terminal,
    Markdown,
    Html,
}

/// One statement of one output about one figure of one subject.
struct Cell {
    input: String,
    subject: String,
    metric: String,
    medium: Medium,
    stated: String,
    expected: String,
    difference: Option<Difference>,
}

impl Display for Cell {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:?} {:?}: {}: {} {}: {}, expected: {}",
            self.medium,
            self.difference,
            self.input,
            self.subject,
            self.metric,
            self.stated,
            self.expected
        )
    }
}

/// What the gate says of figures, by subject and metric.
type Gate = BTreeMap<(String, String), Reading>;

/// Runs `intact` where no line of a page is too long.
fn wide(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(words)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "2000")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// One input with all its outputs, and the cells that were compared.
struct Comparison<'a> {
    input: &'a Input,
    document: Value,
    subjects: Vec<Subject>,
    gate: Gate,
    cells: Vec<Cell>,
}

impl<'a> Comparison<'a> {
    /// Reads the JSON of an input, and what the gate says of each figure of each subject.
    fn start(input: &'a Input, metrics: &[Metric]) -> Comparison<'a> {
        let words: Vec<&str> = input.words.iter().map(String::as_str).collect();
        let out = wide(&[&words[..], &["--json"]].concat());
        let document: Value = serde_json::from_slice(&out.stdout)
            .unwrap_or_else(|error| panic!("{words:?}: {error}: {}", text(&out.stderr)));
        let mut comparison = Comparison {
            input,
            subjects: input.kind.subjects(&document),
            document,
            gate: Gate::new(),
            cells: Vec::new(),
        };
        comparison.ask_the_gate(&words, metrics);
        comparison
    }

    fn ask_the_gate(&mut self, words: &[&str], metrics: &[Metric]) {
        let kind = self.input.kind;
        let known = metrics
            .iter()
            .filter(|metric| metric.commands.contains(kind.command))
            // each command has rules of its own
            .filter(|metric| !metric.name.contains("<rule>"));
        let known: Vec<&Metric> = known.collect();
        let asked = self.subjects.iter().flat_map(|subject| {
            known.iter().map(|metric| {
                let Metric { name, never, .. } = metric;
                let requirement = format!("{}{name} == {never}", subject.selector);
                (requirement, (subject.label.clone(), name.clone()))
            })
        });
        let asked: BTreeMap<String, (String, String)> = asked.collect();
        let options = asked
            .keys()
            .flat_map(|requirement| ["--require", requirement]);
        let out = wide(&[words, &options.collect::<Vec<_>>()].concat());
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{words:?}: {said}");
        let mut about = None;
        let mut silent: BTreeSet<_> = asked.values().cloned().collect();
        for line in said.lines() {
            if let Some(requirement) = line.strip_prefix("NOT met: ") {
                about = asked.get(requirement);
                continue;
            }
            let Some((label, metric)) = about else {
                continue;
            };
            let name = if label.is_empty() {
                format!(": {metric} ")
            } else {
                format!("  {label}: {metric} ")
            };
            let Some((_, words)) = line.split_once(&name) else {
                continue;
            };
            silent.remove(&(label.clone(), metric.clone()));
            // the baseline is compared with nothing, for example
            if words.starts_with("left out") {
                continue;
            }
            let (reading, is_form) = gate_reading(words);
            let difference = (!is_form).then_some(Difference::Form);
            self.note(Medium::Gate, (label, metric), words, &reading, difference);
            if !matches!(reading, Reading::Strange(_)) {
                self.gate.insert((label.clone(), metric.clone()), reading);
            }
        }
        assert!(
            silent.is_empty(),
            "{words:?}: no line of {silent:?}: {said}"
        );
    }

    fn note(
        &mut self,
        medium: Medium,
        (subject, metric): (&str, &str),
        stated: &str,
        expected: &Reading,
        difference: Option<Difference>,
    ) {
        self.cells.push(Cell {
            input: self.input.name.clone(),
            subject: subject.to_owned(),
            metric: metric.to_owned(),
            medium,
            stated: stated.to_owned(),
            expected: expected.to_string(),
            difference,
        });
    }

    /// What the gate says, or JSON where the gate has no reading.
    fn reference(&self, label: &str, metric: &str) -> Option<Reading> {
        let gate = self.gate.get(&(label.to_owned(), metric.to_owned()));
        gate.cloned().or_else(|| {
            let kind = self.input.kind;
            let mut subjects = self.subjects.iter();
            match subjects.find(|subject| subject.label == label) {
                Some(subject) => subject
                    .objects
                    .iter()
                    .find_map(|object| kind.stated(&self.document, object, metric)),
                None if label.is_empty() => kind.stated_of_run(&self.document, metric),
                None => None,
            }
        })
    }

    fn compare_json(&mut self) {
        let kind = self.input.kind;
        for (at, gate) in self.gate.clone() {
            let (label, metric) = (at.0.as_str(), at.1.as_str());
            let subject = self
                .subjects
                .iter()
                .find(|subject| subject.label == label)
                .unwrap();
            let stated = subject.objects.iter().filter_map(|object| {
                let reading = kind.stated(&self.document, object, metric)?;
                let name = format!("{label}[{object}]");
                Some((name, reading))
            });
            for (name, reading) in stated.collect::<Vec<_>>() {
                let difference = reading.difference(&gate, true);
                self.note(
                    Medium::Json,
                    (&name, metric),
                    &reading.to_string(),
                    &gate,
                    difference,
                );
            }
        }
    }

    fn compare_sentences(&mut self) {
        let verdict = self.document["verdict"].as_array().cloned();
        for sentence in verdict.iter().flatten().filter_map(Value::as_str) {
            for (metric, words) in sentence_figures(sentence).into_iter().flatten() {
                if let Some(reading) = self.reference("", metric) {
                    let difference = Reading::displayed(words).difference(&reading, false);
                    self.note(
                        Medium::Sentence,
                        ("verdict:", metric),
                        words,
                        &reading,
                        difference,
                    );
                }
            }
        }
    }

    fn compare_page(&mut self, medium: Medium, page: &Page) {
        for fact in &page.facts {
            let Some((metric, words)) = fact_figure(fact) else {
                continue;
            };
            if let Some(reading) = self.reference("", metric) {
                let difference = Reading::displayed(words).difference(&reading, false);
                self.note(medium, ("facts:", metric), fact, &reading, difference);
            }
        }
        for table in &page.tables {
            let is_of_subjects = ["destination", "variant", "program", "session", "service"]
                .contains(&table.heads[0].as_str())
                && !["kind", "after", "tag"].contains(&table.heads[1].as_str());
            for row in table.rows.iter().filter(|_| is_of_subjects) {
                for (head, cell) in table.heads.iter().zip(row) {
                    let Some(metric) = column_figure(head) else {
                        continue;
                    };
                    if let Some(reading) = self.reference(&row[0], metric) {
                        let difference = Reading::displayed(cell).difference(&reading, false);
                        self.note(medium, (&row[0], metric), cell, &reading, difference);
                    }
                }
            }
        }
    }

    fn compare_pages(&mut self) {
        let folder = tempfile::tempdir().unwrap();
        for (medium, file) in [(Medium::Markdown, "page.md"), (Medium::Html, "page.html")] {
            let path = folder.path().join(file);
            let words = self.input.words.iter().map(String::as_str);
            let words = words.chain(["--full", "--report", path.to_str().unwrap()]);
            let out = wide(&words.collect::<Vec<_>>());
            let report = std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{error}: {}", text(&out.stderr)));
            if medium == Medium::Markdown {
                self.compare_page(Medium::Terminal, &Page::terminal(&text(&out.stdout)));
                self.compare_page(medium, &Page::markdown(&report));
            } else {
                self.compare_page(medium, &Page::html(&report));
            }
        }
    }
}

/// The figure that a column of a table shows.
fn column_figure(head: &str) -> Option<&'static str> {
    let figure = match head {
        "requests" => "requests",
        "failed" => "failed",
        "not opened" => "connections-failed",
        "opened" => "connections",
        "needed" => "needed",
        "reused" => "reuse",
        "lookups" => "lookups",
        "req/conn" => "requests-per-connection",
        "opened/s" => "churn",
        "req/s" => "throughput",
        "typical" => "typical",
        "mean" => "mean",
        "p50" => "p50",
        "p99" => "p99",
        "max" => "max",
        "without setup" => "without-setup.mean",
        _ => return None,
    };
    Some(figure)
}

/// The figure that a part of the line of facts is about, and the words of its reading.
fn fact_figure(fact: &str) -> Option<(&'static str, &str)> {
    [
        (" requests", "requests"),
        (" request", "requests"),
        (" requests sent", "requests"),
        (" requests measured", "requests"),
        (" requests failed", "failed"),
        (" request failed", "failed"),
        (" connection attempts failed", "connections-failed"),
        (" connection attempt failed", "connections-failed"),
        (" connections opened", "connections"),
        (" connection opened", "connections"),
        (" needed", "needed"),
        (" reused", "reuse"),
        (" lookups", "lookups"),
        (" lookup", "lookups"),
    ]
    .into_iter()
    .find_map(|(words, metric)| Some((metric, fact.strip_suffix(words)?)))
}

/// The figures of a sentence of the verdict about all connections. What would do on a condition is
/// no figure.
fn sentence_figures(sentence: &str) -> Option<Vec<(&'static str, &str)>> {
    let (opened, rest) = sentence.split_once(" opened where ")?;
    let opened = opened
        .strip_suffix(" were")
        .or_else(|| opened.strip_suffix(" was"))?;
    let opened = opened.rsplit_once("needed: ").map_or(opened, |(_, it)| it);
    let opened = opened
        .trim_end_matches(" connections")
        .trim_end_matches(" connection");
    let (needed, rest) = rest.split_once(" would do")?;
    let is_figure = |words: &str| !matches!(Reading::displayed(words), Reading::Strange(_));
    let mut figures = vec![("connections", opened), ("needed", needed)];
    figures.truncate(if rest.starts_with(" if ") { 1 } else { 2 });
    is_figure(opened).then_some(figures)
}

/// How many cells there are, and how many of them differ, by output and kind of difference.
fn count(cells: &[Cell]) -> String {
    let mut all: BTreeMap<Medium, u64> = BTreeMap::new();
    let mut differing: BTreeMap<(Medium, Difference), u64> = BTreeMap::new();
    for cell in cells {
        *all.entry(cell.medium).or_default() += 1;
        if let Some(difference) = cell.difference {
            *differing.entry((cell.medium, difference)).or_default() += 1;
        }
    }
    let mut lines = format!("{} cells: {all:?}\n", cells.len());
    for ((medium, difference), number) in differing {
        lines.push_str(&format!(
            "  {medium:?}: {number} differ in {difference:?}\n"
        ));
    }
    lines
}

#[test]
#[expect(clippy::print_stdout, reason = "how much was compared")]
fn every_output_states_the_same_reading_of_every_figure() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = metrics();
    let inputs = [documents::fixtures(), documents::ledgers(folder.path())].concat();
    let mut cells = Vec::new();
    for input in &inputs {
        let mut comparison = Comparison::start(input, &metrics);
        comparison.compare_json();
        comparison.compare_sentences();
        comparison.compare_pages();
        cells.append(&mut comparison.cells);
    }
    let counts = count(&cells);
    println!("{} documents, {counts}", inputs.len());
    // it cannot hold by comparing nothing
    let compared = |medium| cells.iter().filter(|cell| cell.medium == medium).count();
    for (medium, least) in [
        (Medium::Gate, 6000),
        (Medium::Json, 3000),
        (Medium::Sentence, 10),
        (Medium::Terminal, 500),
        (Medium::Markdown, 650),
        (Medium::Html, 650),
    ] {
        assert!(compared(medium) >= least, "{medium:?}: {counts}");
    }
    let differing: Vec<&Cell> = cells
        .iter()
        .filter(|cell| cell.difference.is_some())
        .collect();
    let list: String = differing.iter().map(|cell| format!("{cell}\n")).collect();
    assert!(
        differing.is_empty(),
        "{list}{counts}{} of {} cells differ",
        differing.len(),
        cells.len()
    );
}

#[test]
fn what_was_not_measured_is_no_zero() {
    // the preflight fails, so that no round is measured
    let words = ["bench", "-n", "3", "http://127.0.0.1:9/"];
    let json = wide(&[&words[..], &["--json"]].concat());
    let document: Value = serde_json::from_slice(&json.stdout).unwrap();
    for figure in [
        "/requests/total",
        "/connections/opened",
        "/connections/failures",
        "/avoidable",
    ] {
        assert_eq!(document.pointer(figure), Some(&Value::Null), "{figure}");
    }
    let page = text(&wide(&words).stdout);
    let tried = document["requests"]["failures"].as_u64().unwrap();
    assert!(tried > 0 && !page.contains(" 0 requests"), "{page}");
    for fact in ["requests tried before", "requests failed"] {
        assert!(page.contains(&format!(" {tried} {fact}")), "{page}");
    }
}

#[test]
fn every_figure_that_can_be_required_has_a_key_in_json_or_a_reason_to_have_none() {
    let without = metrics().into_iter().filter(|metric| {
        let is_stated = |kind: &documents::Kind| {
            metric.commands.contains(kind.command) && kind.has(&metric.name)
        };
        !documents::KINDS.iter().any(is_stated)
    });
    let without: BTreeSet<String> = without.map(|metric| metric.name).collect();
    let listed = WITHOUT_KEY.iter().map(|name| (*name).to_owned());
    assert_eq!(without, listed.collect());
}
