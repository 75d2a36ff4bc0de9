//! Pages of docs/ that are made from the code: each test compares one with its source.

use crate::catalogue::{FORM, units};
use crate::markdown;
use crate::page::{Rows, Table, Text};
use crate::terminal::wrap;
use intact_document::requirement::{
    Dimension, DocumentKind, FIGURES, Figure, SELECTORS, SelectorEntry,
};
use std::fmt::Write;

/// Compares a page of docs/ with what is made from the code. `INTACT_UPDATE` rewrites it.
fn hold(name: &str, made: &str) {
    let path = format!("{}/../../docs/reference/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("INTACT_UPDATE").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "docs/reference/{name} is not what the code says: run the tests with INTACT_UPDATE=1"
    );
}

/// Columns of prose in docs/.
const COLUMNS: usize = 100;

/// A page with its prose in lines of [`COLUMNS`]. Tables, headings and code stay as they are;
/// inline code is not broken.
fn wrapped(page: &str) -> String {
    let mut out = String::new();
    let mut paragraph = String::new();
    let mut is_code = false;
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        let is_kept = is_code || is_fence || line.is_empty() || line.starts_with(['|', '#', '<']);
        if is_kept || line.starts_with("- ") {
            flush(&mut paragraph, &mut out);
        }
        if is_kept {
            out.push_str(line);
            out.push('\n');
        } else {
            paragraph.push_str(line);
            paragraph.push(' ');
        }
    }
    flush(&mut paragraph, &mut out);
    out
}

/// Writes a paragraph and empties it.
fn flush(paragraph: &mut String, out: &mut String) {
    let indent = if paragraph.starts_with("- ") {
        "  "
    } else {
        ""
    };
    let mut parts = paragraph.trim_end().split('`');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (nth, part) in parts.enumerate() {
        text.push('`');
        text.push_str(&if nth % 2 == 0 {
            part.replace(' ', "\u{a0}")
        } else {
            part.to_owned()
        });
    }
    for line in wrap(&text, COLUMNS, indent) {
        out.push_str(&line);
        out.push('\n');
    }
    paragraph.clear();
}

#[test]
fn prose_of_a_page_is_wrapped_and_the_rest_is_not() {
    let word = "words ".repeat(30);
    let page = format!("# {word}\n\n- {word}`a b c`\n| {word}|\n```\n{word}\n```\n");
    let wrapped = wrapped(&page);
    let lines: Vec<&str> = wrapped.lines().collect();
    assert_eq!(lines.len(), 8, "{wrapped}");
    assert!(
        lines[2].len() <= COLUMNS && lines[3].starts_with("  words"),
        "{wrapped}"
    );
    assert!(lines[3].ends_with("`a b c`"), "{wrapped}");
    assert_eq!(wrapped.replace("\n  ", " "), page.replace("  ", " "));
}

/// All rows of a table, as Markdown.
fn whole(table: &Table) -> String {
    markdown::beginning(table, usize::MAX)
}

#[test]
fn the_page_of_requirements_is_made_from_the_tables() {
    hold("requirements.md", &wrapped(&requirements()));
}

#[test]
fn the_page_of_rules_is_made_from_the_rules() {
    hold("rules.md", &wrapped(&rules()));
}

const DOCUMENTS: [DocumentKind; 9] = [
    DocumentKind::Check,
    DocumentKind::Bench,
    DocumentKind::Scenario,
    DocumentKind::Capacity,
    DocumentKind::Watch,
    DocumentKind::Compare,
    DocumentKind::Audit,
    DocumentKind::Lambda,
    DocumentKind::Fleet,
];

/// The page docs/reference/requirements.md.
fn requirements() -> String {
    let metrics = Rows::of(FIGURES)
        .column("metric", |one: &Figure| code(one.name))
        .column("unit", |one| unit(one.dimension))
        .column("meaning", |one| Text::prose(one.meaning))
        .column("needs", |one| list(one.needs.iter().map(|kind| kind.id())))
        .column("JSON", |one| {
            list([one.json].into_iter().filter(|key| !key.is_empty()))
        })
        .column("commands", |one| commands(one.documents));
    let selectors = Rows::of(SELECTORS)
        .column("selector", |one: &SelectorEntry| code(one.key))
        .column("meaning", |one| Text::prose(one.meaning))
        .column("commands", |one| commands(one.documents));
    let [metrics, selectors] = [metrics.table(), selectors.table()].map(|table| whole(&table));
    let traffic = TRAFFIC.map(|one| format!("`{}`", one.command())).join(", ");
    format!(
        "# Requirements

Generated from the tables in `crates/document/src/requirement/catalogue.rs`; a test compares this page with them.

`--require '{FORM}'` makes a command exit 1 if the requirement is not met. It may be repeated. `op` is one of
`<`, `<=`, `>`, `>=`, `==`, `!=`.

Without a selector, a requirement applies to

- `bench`: every variant, except those that fix the metric (`keepalive=off` fixes `reuse`) and, of `saved`, the baseline; the output names these
- `bench --scenario`: the whole run; `session` and `tag` select parts of it
- `bench --find-max`: every variant
- `watch`, `audit`, `report`: all destinations together
- `watch --fault`: each kind of fault at each destination, except kinds that its connections cannot have
- `compare`: each program except the baseline; counts are of one run

The phases `blocked`, `send`, `wait`, `headers-to-body` and `receive` are those of all exchanges in `bench`. In `watch`, `audit` and `report`, they are
those of reused exchanges where there are any, else of the others.

An unknown metric fails with its reason. A metric with bounds (`2 to 8`, `at least 13`) is met only if every value within them meets the requirement. `needs` is the evidence (`evidence` of `run` in JSON) without which a metric is unknown. `JSON` is where its subject has it, with keys between dots; where only bounds are known it is `null`, and `bounds` of the same object has them. `--require help` lists the metrics of one command.

In the tables *traffic* stands for {}. A *time* has one of the units ns, us, ms, s, min and h; *%* may also be a share from 0 to 1.

```
--require 'keepalive=on: p99 < 50ms'
--require 'host=api.example.com: connections <= 4'
--require 'avoidable == 0'
```

{metrics}{}
",
        traffic,
        selectors.trim_end()
    )
}

/// The page docs/reference/rules.md.
fn rules() -> String {
    let mut out = String::from(
        "# Rules

Generated from the rules (`crates/traffic/src/rules/`, one file each); a test compares this page with them.

A rule is a fold over the events of a ledger, so `watch`, `audit`, `serve` and every other observer get the same findings. A finding states the case, the
evidence, the cost, the remedy and its risk.

**Cost.** A connection is opened *in vain* when more were opened than the peak overlap of requests needs. One in the place of a connection that the server ended is *avoidable by the server*, the others are *avoidable*. [pools](../internals/pools.md) has what counts as idle, and how the cause is found. Each setup in vain belongs to one finding: the rules
claim in this order, the most specific first. A setup costs the mean setup of its destination.

The time of a request without a complete response is *lost*, and belongs to one finding at most. So does the setup of needed connections that requests
waited for (`cold-pool`). The costs of all findings never add up to more than `lost_ms` and the larger of `wasted_ms` and `setup_wait_ms`. Rules that claim
nothing have no cost. An observation gives no causal interval: `intact compare` and `intact bench` do.

**Severity.** An error breaks something. A rule that claims setups gives a warning from 3 connections on, or from 2 on that are half of all. Below that its finding is informational. The cost does not decide, because it changes from run to run.

**Values.** In JSON, `claim`, `evidence`, `fix` and `risk` are sentences. `values` has the numbers and names in these sentences. A number has its unit at the
end of its name (`setup_each_ms`, `idle_limit_ms`, `reused_share`, `carried_bytes`). A count has none (`openings`).

**The client.** If the client's library is known, the finding names its option. The command of the process shows the library, or `User-Agent`, or the idle time after which it closes. The idle times are 4 s (undici), 15 s (aiohttp), 90 s (Go and hyper) and 300 s (OkHttp).

`--require 'findings.RULE == 0'` requires that a run has no finding of a rule; `--fail-on warning` and `--fail-on error` cover all rules.
",
    );
    for rule in intact_traffic::rules::all() {
        let doc = rule.doc();
        let [fix, risk] = [doc.fix, doc.risk].map(|text| text.trim_end_matches('.'));
        let _ = write!(
            out,
            "
## `{}`

{}

- **Evidence**: {}
- **Threshold**: {}
- **False positives**: {}
- **Fix**: {fix}.
- **Risk**: {risk}.
",
            doc.id, doc.what, doc.evidence, doc.threshold, doc.false_positives,
        );
    }
    out
}

/// Names as code; absent where there is none.
fn list<'a>(names: impl Iterator<Item = &'a str>) -> Text {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    Text::prose(&names.join(", "))
}

fn code(name: &str) -> Text {
    Text::prose(&format!("`{name}`"))
}

/// The unit of a figure; the page explains the words.
fn unit(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Count | Dimension::Ratio => "-",
        Dimension::Share => "%",
        Dimension::Time => "time",
        Dimension::Rate | Dimension::Bytes => units(dimension),
    }
}

/// Documents that have most figures in common.
const TRAFFIC: [DocumentKind; 6] = [
    DocumentKind::Bench,
    DocumentKind::Scenario,
    DocumentKind::Watch,
    DocumentKind::Audit,
    DocumentKind::Lambda,
    DocumentKind::Fleet,
];

fn commands(documents: &[DocumentKind]) -> String {
    let has = |one: &DocumentKind| documents.contains(one);
    if DOCUMENTS.iter().all(has) {
        return "all".to_owned();
    }
    let is_traffic = TRAFFIC.iter().all(has);
    let rest = documents
        .iter()
        .filter(|one| !is_traffic || !TRAFFIC.contains(one));
    let named = is_traffic.then_some("*traffic*").into_iter();
    let commands: Vec<&str> = named.chain(rest.map(|one| one.command())).collect();
    commands.join(", ")
}
