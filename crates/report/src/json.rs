//! JSON documents: `schema`, `run`, then the facts as they are.

use crate::inputs::InputFacts;
use findings::answers::AnswerFacts;
use findings::bench::BenchFacts;
use findings::compare::CompareFacts;
use findings::observe::{ObservedFacts, Step};
use ledger::{Host, Run};
use serde::Serialize;

/// The schema of a bench's document.
pub const BENCH_SCHEMA: &str = "intact.bench/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'a str,
    run: &'a Run,
    environment: Environment<'a>,
    #[serde(flatten)]
    facts: &'a BenchFacts,
}

#[derive(Serialize)]
struct Environment<'a> {
    #[serde(flatten)]
    host: &'a Host,
    sockets: &'a [ledger::Sockets],
}

impl<'a> Document<'a> {
    fn new(run: &'a Run, facts: &'a BenchFacts) -> Document<'a> {
        Document {
            schema: BENCH_SCHEMA,
            run,
            environment: Environment {
                host: &run.host,
                sockets: &facts.sockets,
            },
            facts,
        }
    }
}

/// The document of a bench, pretty-printed, with a newline at its end.
pub fn bench(run: &Run, facts: &BenchFacts) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(&Document::new(run, facts))?;
    text.push('\n');
    Ok(text)
}

/// The same without a blank too many, to be put into a page.
pub(crate) fn bench_compact(run: &Run, facts: &BenchFacts) -> serde_json::Result<String> {
    serde_json::to_string(&Document::new(run, facts))
}

#[derive(Serialize)]
struct Observed<'a> {
    schema: String,
    run: &'a Run,
    #[serde(flatten)]
    facts: &'a ObservedFacts,
}

impl<'a> Observed<'a> {
    fn new(run: &'a Run, facts: &'a ObservedFacts) -> Observed<'a> {
        Observed {
            schema: format!("intact.{}/1", run.producer),
            run,
            facts,
        }
    }
}

/// The same without a blank too many, to be put into a page.
pub(crate) fn observed_compact(run: &Run, facts: &ObservedFacts) -> serde_json::Result<String> {
    serde_json::to_string(&Observed::new(run, facts))
}

/// The document of an observed run, `intact.watch/1`, `intact.audit/1` and so on after its producer, pretty-printed, with a newline at its end.
pub fn observed(run: &Run, facts: &ObservedFacts) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(&Observed::new(run, facts))?;
    text.push('\n');
    Ok(text)
}

#[derive(Serialize)]
struct Audit<'a> {
    #[serde(flatten)]
    observed: Observed<'a>,
    inputs: &'a [InputFacts],
    answers: &'a [AnswerFacts],
    change: Option<&'a Step>,
}

/// The document of an audit: that of an observed run, what was read of each input, how answers came, what changed over time.
pub fn audit(
    run: &Run,
    facts: &ObservedFacts,
    inputs: &[InputFacts],
    answers: &[AnswerFacts],
    change: Option<&Step>,
) -> serde_json::Result<String> {
    let document = Audit {
        observed: Observed::new(run, facts),
        inputs,
        answers,
        change,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

/// The schema of a comparison's document.
pub const COMPARE_SCHEMA: &str = "intact.compare/1";

#[derive(Serialize)]
struct Compare<'a> {
    schema: &'a str,
    run: &'a Run,
    #[serde(flatten)]
    facts: &'a CompareFacts,
}

/// The document of a comparison, pretty-printed, with a newline at its end.
pub fn compare(run: &Run, facts: &CompareFacts) -> serde_json::Result<String> {
    let document = Compare {
        schema: COMPARE_SCHEMA,
        run,
        facts,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}
