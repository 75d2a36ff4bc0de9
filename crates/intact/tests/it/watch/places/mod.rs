//! Where in the code connections are opened: planted programs, whose lines say how many connections
//! each opens.
//!
//! A place may be not known. A wrong one fails the test.

mod go;
mod java;
mod native;
mod node;
mod outputs;
mod python;

use crate::program::{Server, intact};
use intact_ledger::{CodeStack, Row, StackId};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Connections by the line that opened them.
type Lines = BTreeMap<u32, u64>;

/// The lines that the source says a case opens connections at: `CASE=N` in a comment.
fn planted(source: &str, case: &str) -> Lines {
    let mut lines = Lines::new();
    for (line, text) in (1..).zip(source.lines()) {
        let comment = text
            .rsplit_once("  # ")
            .or_else(|| text.rsplit_once(" // "));
        let words = comment.into_iter().flat_map(|(_, words)| words.split(' '));
        let counts =
            words.filter_map(|word| word.strip_prefix(case)?.strip_prefix('=')?.parse().ok());
        for count in counts {
            lines.insert(line, count);
        }
    }
    lines
}

/// What a watched program opened.
struct Seen {
    /// Connections whose place is in this file, by its line.
    lines: Lines,
    /// Connections without a place.
    not_known: u64,
    /// What the program printed.
    output: String,
}

/// Runs a program in a folder against a server; `{port}` in its words is filled in. What it opened
/// from this file: a place in another one is wrong.
fn seen(folder: &Path, file: &str, words: &[&str]) -> Seen {
    let server = Server::start(&[]);
    let ledger = tempfile::tempdir().unwrap();
    let path = ledger.path().join("ledger");
    let root = folder.to_str().unwrap();
    let port = server.plain_port();
    let words: Vec<String> = words
        .iter()
        .map(|word| word.replace("{port}", &port))
        .collect();
    let mut all = vec![
        "watch",
        "-q",
        "--ledger",
        path.to_str().unwrap(),
        "--code-root",
        root,
        "--",
    ];
    all.extend(words.iter().map(String::as_str));
    let out = intact(&all);
    assert!(out.status.success(), "{words:?}: {out:?}");
    let reader = intact_ledger::store::Reader::open(&path).unwrap();
    let mut stacks: HashMap<StackId, CodeStack> = HashMap::new();
    let mut seen = Seen {
        lines: Lines::new(),
        not_known: 0,
        output: String::from_utf8_lossy(&out.stdout).into_owned(),
    };
    for row in reader.events().unwrap() {
        match row {
            Row::Stack(stack) => {
                stacks.insert(stack.id, stack);
            }
            // a dial that failed or lost a race has opened nothing
            Row::Opened(one) if one.is_opened() => {
                let stack = one.stack.map(|id| &stacks[&id]);
                match stack.and_then(CodeStack::place) {
                    Some(place) => {
                        assert_eq!(place.file.as_deref(), Some(file), "{words:?}: {stack:?}");
                        *seen.lines.entry(place.line.unwrap()).or_default() += 1;
                    }
                    None => seen.not_known += 1,
                }
            }
            _ => {}
        }
    }
    seen
}

/// Holds what a case opened to what its source says: all of it at these lines.
fn hold(what: &str, source: &str, case: &str, seen: &Seen) {
    let expected = planted(source, case);
    assert!(
        !expected.is_empty(),
        "{what}: nothing is planted for {case}"
    );
    assert_eq!(
        seen.lines, expected,
        "{what}: {case}: not known: {}",
        seen.not_known
    );
    assert_eq!(seen.not_known, 0, "{what}: {case}");
}
