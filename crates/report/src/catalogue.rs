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

Generated from the rules (`crates/findings/src/rules/`, one file each); a test compares this page with them.

A rule is a fold over the events of a ledger, so `watch`, `audit`, `serve` and every other observer get the same findings. A finding states the case, the
evidence, the cost, the remedy and its risk.

**Cost.** A connection is *avoidable* when more were opened than the peak overlap of requests needs. Each avoidable setup belongs to one finding: the rules
claim in this order, the most specific first. A setup costs the mean setup of its destination, so the costs of all findings never add up to more than
`wasted`. Rules that claim nothing have no cost. An observation gives no causal interval: `intact compare` and `intact bench` do.

**Severity.** An error breaks something. A rule that claims setups gives a warning from 3 connections or 5 % of the destination's time on. Below that its
finding is informational.

**Values.** In JSON, `claim`, `evidence`, `fix` and `risk` are sentences. `values` has the numbers and names in these sentences: a number has its unit at the
end of its name (`setup_each_ms`, `idle_limit_ms`, `reused_share`, `carried_bytes`), and a count has none (`openings`).

**The client.** The finding names the option of the client's library, where the library is known: by the command of the process, by `User-Agent`, or by the
idle time after which it closes (undici 4 s, aiohttp 15 s, Go and hyper 90 s, OkHttp 300 s).

`--require 'findings.RULE == 0'` requires that a run has no finding of a rule; `--fail-on warning` and `--fail-on error` cover all rules.
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
