//! Ledgers with numbers that no run has: near 2^64 in every numeric field, and times that run
//! backwards. Each ledger is a page, a document and exports, or refused; tests have overflow
//! checks, so that a sum that wraps is a panic.

use crate::check::profile;
use crate::consumers::{consume, variant};
use intact_ledger::{
    Evidence, Nanos, Producer, Round, Row, Run, Sink, Sockets, Span, Tally, Vantage,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

const MS: u64 = 1_000_000;

/// The files of a ledger as JSON.
#[derive(Clone)]
struct Files {
    run: Value,
    events: Vec<Value>,
    tally: Option<Value>,
    profile: Option<Value>,
}

impl Files {
    /// A ledger of a producer with these events, in two variants and nine rounds where it has
    /// variants.
    fn new(producer: Producer, lines: &[Value]) -> Files {
        let started = "2026-01-01T00:00:00Z".parse().unwrap();
        let is_bench = producer == Producer::Bench;
        let is_check = producer == Producer::Check;
        let has_variants = matches!(
            producer,
            Producer::Bench | Producer::Compare | Producer::Lambda
        );
        let mut run =
            Run::new(producer, "0", Vantage::Client, started, 1, &[]).with_evidence(Evidence::ALL);
        let mut rows: Vec<Row> = lines.iter().map(|line| read(line).unwrap()).collect();
        if has_variants {
            run.variants = ["on", "off"].map(variant).to_vec();
            run.varied = vec!["keepalive".to_owned()];
            rows = in_rounds(lines);
        }
        let mut tally = Tally::new();
        rows.iter().for_each(|row| tally.record(row.as_event()));
        Files {
            run: serde_json::to_value(&run).unwrap(),
            events: rows
                .iter()
                .map(|row| serde_json::to_value(row.as_event()).unwrap())
                .collect(),
            tally: is_bench.then(|| serde_json::to_value(&tally).unwrap()),
            profile: is_check.then(|| serde_json::to_value(profile()).unwrap()),
        }
    }

    fn write(&self, folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        let lines: String = self.events.iter().map(|row| format!("{row}\n")).collect();
        let events = zstd::bulk::compress(lines.as_bytes(), 1).unwrap();
        fs::write(folder.join("events.jsonl.zst"), events).unwrap();
        let end = serde_json::json!({"ended": "2026-01-01T00:00:00Z", "events": self.events.len()});
        let files = [
            ("run.json", Some(&self.run)),
            ("tally.json", self.tally.as_ref()),
            ("server-profile.json", self.profile.as_ref()),
            ("end.json", Some(&end)),
        ];
        for (name, value) in files {
            let _ = fs::remove_file(folder.join(name));
            if let Some(value) = value {
                fs::write(folder.join(name), value.to_string()).unwrap();
            }
        }
    }

    /// Every file, by a number of its own; the events are one value.
    fn parts(&mut self) -> Vec<&mut Value> {
        let mut parts = vec![&mut self.run];
        parts.extend(&mut self.tally);
        parts.extend(&mut self.profile);
        parts.extend(&mut self.events);
        parts
    }

    /// The fields that hold numbers, without the positions in lists.
    fn fields(&mut self) -> BTreeSet<String> {
        let mut fields = BTreeSet::new();
        for part in self.parts() {
            numbers(part, &name(part), &mut |field, _| {
                fields.insert(field.to_owned());
            });
        }
        fields
    }

    /// Replaces the numbers of a field (all fields, if there is none), as `change` does by their
    /// position.
    fn change(&mut self, field: Option<&str>, change: impl Fn(usize, u64) -> u64) {
        let mut nth = 0;
        for part in self.parts() {
            numbers(part, &name(part), &mut |at, number| {
                if field.is_none_or(|field| field == at) {
                    *number = serde_json::json!(change(nth, number.as_u64().unwrap_or(0)));
                    nth += 1;
                }
            });
            keep_counts(part);
        }
    }
}

fn read(line: &Value) -> Result<Row, serde_json::Error> {
    serde_json::from_value(line.clone())
}

/// The events once for each variant and round, with what a bench and a function record next to
/// them.
fn in_rounds(lines: &[Value]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (round, variant) in (1..=9u32).flat_map(|round| [(round, 0u32), (round, 1)]) {
        for line in lines {
            let mut line = line.clone();
            if !matches!(line["event"].as_str(), Some("caveat" | "sockets")) {
                line["variant"] = serde_json::json!(variant);
                line["round"] = serde_json::json!(round);
            }
            rows.push(read(&line).unwrap());
        }
        rows.push(Row::Round(Round {
            client_cpu: Some(3 * MS),
            client_threads: Some(2),
            server_cpu: Some(6 * MS),
            ..Round::new(variant, round, Span::new(Nanos(0), Nanos(3_000 * MS)))
        }));
        rows.push(Row::Sockets(Sockets {
            at: Nanos(u64::from(round) * MS),
            time_wait: 5,
            free_ports: Some(28_000),
        }));
        let call = serde_json::json!({
            "event": "invocation", "id": round * 2 + variant, "variant": variant, "round": round, "environment": variant,
            "init": [0, MS], "frozen": [2 * MS, 3 * MS], "rest": MS, "at": 3 * MS, "end": 900 * MS,
            "outcome": "answered", "detail": 7, "duplicate_response": 1,
        });
        rows.push(read(&call).unwrap());
    }
    rows
}

/// What a value is called: the kind of the event.
fn name(value: &Value) -> String {
    value["event"].as_str().unwrap_or_default().to_owned()
}

/// Visits every number with the name of its field.
fn numbers(value: &mut Value, at: &str, visit: &mut impl FnMut(&str, &mut Value)) {
    match value {
        Value::Number(_) => visit(at, value),
        Value::Array(list) => {
            for one in list {
                numbers(one, at, visit);
            }
        }
        Value::Object(map) => {
            for (key, one) in map {
                let is_digit = key.parse::<u16>().is_ok();
                let key = if is_digit { "N" } else { key };
                numbers(one, &format!("{at}/{key}"), visit);
            }
        }
        _ => {}
    }
}

/// Makes the buckets of each histogram as many as its count says, which a reader looks at first.
fn keep_counts(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(keep_counts),
        Value::Object(map) => {
            let count = map.get("count").cloned();
            if let (Some(count), Some(Value::Array(buckets))) = (count, map.get_mut("buckets")) {
                let first = buckets.first().and_then(|bucket| bucket[0].as_u64());
                *buckets = vec![serde_json::json!([first.unwrap_or(0).min(14_000), count])];
                map.insert("min".to_owned(), serde_json::json!(0));
            }
            map.values_mut().for_each(keep_counts);
        }
        _ => {}
    }
}

fn rules() -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden");
    let mut all: Vec<PathBuf> = fs::read_dir(golden)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    all.sort();
    all
}

fn golden(rule: &Path) -> Vec<Value> {
    let text = fs::read_to_string(rule.join("fires.jsonl")).unwrap();
    let lines = text.lines().skip(1);
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Runs a case. Returns what panicked, and where.
fn panic_of<T>(case: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(case)).map_err(|payload| match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload
            .downcast_ref::<&str>()
            .map_or("", |text| text)
            .to_owned(),
    })
}

/// Numbers near 2^64, near 2^63 (the last time that is read), and the largest of a smaller field,
/// in each or each second place.
const LARGE: [(u64, usize); 4] = [
    (u64::MAX, 1),
    (u64::MAX, 2),
    (Nanos::LATEST.0, 1),
    (u32::MAX as u64, 1),
];

/// Reads a ledger with each field made large, in all places and in every second one; with
/// `INTACT_TEST_ALL` by each number, else by one of them in turn. Returns how many were read, and
/// all panics.
fn failures(files: &mut Files, folder: &Path, seen: &mut BTreeSet<String>) -> (usize, Vec<String>) {
    let mut read = 0;
    let mut failures = Vec::new();
    let producer = files.run["producer"].to_string();
    let fields = files.fields();
    let is_new = |field: &&String| seen.insert(format!("{producer}{field}"));
    let fields: Vec<Option<&str>> = fields
        .iter()
        .filter(is_new)
        .map(|field| Some(field.as_str()))
        .chain([None])
        .collect();
    let each = if std::env::var_os("INTACT_TEST_ALL").is_some() {
        1
    } else {
        LARGE.len()
    };
    for (nth, field) in fields.into_iter().enumerate() {
        for &(large, step) in LARGE.iter().skip(nth % each).step_by(each) {
            let mut changed = files.clone();
            let change = |nth, old| if nth % step == step - 1 { large } else { old };
            changed.change(field, change);
            changed.write(folder);
            match panic_of(|| consume(folder, field.is_none())) {
                Ok(refused) => read += usize::from(refused.is_none()),
                Err(text) => failures.push(format!("{field:?} = {large}, 1 of {step}: {text}")),
            }
        }
    }
    (read, failures)
}

const PRODUCERS: [Producer; 6] = [
    Producer::Watch,
    Producer::Audit,
    Producer::Bench,
    Producer::Check,
    Producer::Compare,
    Producer::Lambda,
];

#[test]
fn no_number_of_a_ledger_is_too_large_for_a_sum() {
    let folder = tempfile::tempdir().unwrap();
    let rules = rules();
    let mut all = Vec::new();
    let mut reads = [0; PRODUCERS.len()];
    let mut seen = BTreeSet::new();
    for (nth, rule) in rules.iter().enumerate() {
        let producer = &PRODUCERS[nth % PRODUCERS.len()];
        let mut files = Files::new(producer.clone(), &golden(rule));
        let ledger = folder.path().join("ledger");
        let (read, failures) = failures(&mut files, &ledger, &mut seen);
        reads[nth % PRODUCERS.len()] += read;
        let name = rule.file_name().unwrap().display();
        all.extend(
            failures
                .iter()
                .map(|one| format!("{name}, {producer}: {one}")),
        );
    }
    // a field of a producer is changed once, so the last rules may have none that is new
    assert!(reads.iter().all(|read| *read > 10), "{reads:?}");
    let sum: usize = reads.iter().sum();
    assert!(all.is_empty(), "{} of {sum}: {}", all.len(), all.join("\n"));
}

/// Whether a field of an event is a time; a tally has histograms in their place.
fn is_time(field: &str, part: &str) -> bool {
    field.contains(part) && !field.starts_with("/cells")
}

#[test]
fn times_may_run_backwards() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    for (nth, rule) in rules().iter().enumerate() {
        let producer = PRODUCERS[nth % PRODUCERS.len()].clone();
        let mut files = Files::new(producer, &golden(rule));
        let fields = files.fields();
        for part in ["/at", "/end", "/spans", "/setup"] {
            for field in fields.iter().filter(|field| is_time(field, part)) {
                files.change(Some(field), |nth, old| {
                    (1 << 40) - old.min(1 << 39) - nth as u64
                });
            }
            files.write(&ledger);
            let refused = consume(&ledger, false);
            assert!(refused.is_none(), "{} {part}: {refused:?}", rule.display());
        }
        files.events.reverse();
        files.write(&ledger);
        let refused = consume(&ledger, false);
        assert!(refused.is_none(), "{}: {refused:?}", rule.display());
    }
}
