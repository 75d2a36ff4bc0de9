//! What can be asked with `--require`, and what the rules say of themselves, laid out from findings' own tables: a list for a
//! terminal, pages for docs/.

use intact_findings::requirement::{Dimension, Document, METRICS, SELECTORS};
use std::fmt::Write;

const FORM: &str = "[selector(,selector)*:] metric op value[unit]";

const DOCUMENTS: [Document; 7] = [
    Document::Check,
    Document::Bench,
    Document::Watch,
    Document::Compare,
    Document::Audit,
    Document::Lambda,
    Document::Fleet,
];

/// What can be asked of one command, as text.
pub fn text(document: Document) -> String {
    let mut out = format!(
        "--require '{FORM}'    op: < <= > >= == !=\n\nMetrics of `{}`:\n",
        document.command()
    );
    for entry in METRICS
        .iter()
        .filter(|entry| entry.documents.contains(&document))
    {
        let _ = writeln!(
            out,
            "  {:<26} {} [{}]",
            entry.name,
            entry.meaning,
            units(entry.dimension)
        );
    }
    out.push_str("\nSelectors (none: all subjects):\n");
    for entry in SELECTORS
        .iter()
        .filter(|entry| entry.documents.contains(&document))
    {
        let _ = writeln!(out, "  {:<26} {}", entry.key, entry.meaning);
    }
    out
}

/// The page docs/requirements.md.
pub fn requirements() -> String {
    let mut out = format!(
        "# Requirements

Made from the tables in `crates/findings/src/requirement/catalogue.rs`; a test holds this page to them.

`--require '{FORM}'` makes a command exit 1 when the requirement does not hold; it may be given more than once. `op` is one of
`<`, `<=`, `>`, `>=`, `==`, `!=`. Without a selector it is held, in `bench`, against every variant except those that fix the metric by
what they are (`keepalive=off` fixes `reuse`), which is told; in `watch`, `audit` and `report` against all destinations together; in
`compare` against each program beside the baseline, counts being those of one run. A metric without data fails and says why.
`--require help` lists what one command knows.

```
--require 'keepalive=on: p99 < 50ms'
--require 'host=api.example.com: connections <= 4'
--require 'avoidable == 0'
```

| metric | unit | meaning | commands |
| --- | --- | --- | --- |
"
    );
    for entry in METRICS {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            entry.name,
            units(entry.dimension),
            entry.meaning,
            commands(entry.documents)
        );
    }
    out.push_str("\n| selector | meaning | commands |\n| --- | --- | --- |\n");
    for entry in SELECTORS {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} |",
            entry.key,
            entry.meaning,
            commands(entry.documents)
        );
    }
    out
}

/// The page docs/rules.md.
pub fn rules() -> String {
    let mut out = String::from(
        "# Rules

Made from the rules themselves (`crates/findings/src/rules/`, a file each); a test holds this page to them.

A rule is a fold over the events of a ledger: `watch`, `audit`, `serve` and every other observer get the same findings. It says what is the case, what
that rests on, what it costs and what to do, and beside it what the remedy can break.

**Cost.** A connection is *avoidable* when more were opened than the peak overlap of requests needs. Each avoidable setup is claimed by one rule, the most
specific, which is why the rules are asked in this order; the cost is so many times the mean setup of that destination, so the costs of all findings never
add up to more than `wasted`. Rules that claim nothing have no cost of their own. Observing gives no causal interval: `intact compare` and `intact bench` do.

**Severity.** An error is something that breaks. A claim is a warning from three connections, or a twentieth of the destination's time, on, else a note.

**The client.** Where the command of the process or the idle time after which it closes (undici 4 s, aiohttp 15 s, Go and hyper 90 s, OkHttp 300 s) tells
which library is at work, the finding names its option.

`--require 'findings.RULE == 0'` holds a run to one of them, `--fail-on warning` or `--fail-on error` to all.
",
    );
    for (nth, rule) in intact_findings::rules::all().iter().enumerate() {
        let doc = rule.doc();
        let _ = write!(
            out,
            "
## {}. `{}`

{}

- **Evidence**: {}
- **Threshold**: {}
- **False positives**: {}
- **Fix**: {}.
- **Risk**: {}.
",
            nth + 1,
            doc.id,
            doc.what,
            doc.evidence,
            doc.threshold,
            doc.false_positives,
            doc.fix.trim_end_matches('.'),
            doc.risk.trim_end_matches('.')
        );
    }
    out
}

fn commands(documents: &[Document]) -> String {
    if DOCUMENTS
        .iter()
        .all(|document| documents.contains(document))
    {
        return "all".to_owned();
    }
    let told: Vec<&str> = documents
        .iter()
        .map(|document| document.command())
        .collect();
    told.join(", ")
}

fn units(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Count | Dimension::Ratio => "a number",
        Dimension::Share => "%, or 0 to 1",
        Dimension::Time => "ns us ms s min h",
        Dimension::Rate => "/s",
        Dimension::Bytes => "B kB MB KiB MiB",
    }
}
