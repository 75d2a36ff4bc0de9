//! What can be asked with `--require`, laid out from findings' own tables: a list for a terminal, a page for docs/.

use findings::requirement::{Dimension, Document, METRICS, SELECTORS};
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
pub fn markdown() -> String {
    let mut out = format!(
        "# Requirements

Made from the tables in `crates/findings/src/requirement/catalogue.rs`; a test holds this page to them.

`--require '{FORM}'` makes a command exit 1 when the requirement does not hold; it may be given more than once. `op` is one of
`<`, `<=`, `>`, `>=`, `==`, `!=`. Without a selector it is held against every subject (variant, destination), except those
that fix the metric by what they are (`keepalive=off` fixes `reuse`), which is told. A metric without data fails and says why.
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
