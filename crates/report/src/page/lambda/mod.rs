//! The page of a function: what an invocation costs, what it does on the network, what freezes kill.

mod figures;
mod tables;

use super::download::Download;
use super::environment::environment;
use super::parts::{FindingGroup, sentence};
use super::{Assessment, Fact, Headline, Method, Section, when};
use crate::json;
use crate::number::maybe_percent;
use intact_findings::lambda::{FreezeEffect, FrozenConnection, LambdaFacts};
use intact_ledger::Run;
use intact_units::number::{count, time};

/// One function's run, as findings understand it.
#[derive(Clone, Copy)]
pub struct LambdaRun<'a> {
    /// The head of its ledger.
    pub run: &'a Run,
    /// Its facts.
    pub facts: &'a LambdaFacts,
}

pub(super) fn chapter(one: LambdaRun<'_>, prefix: String) -> serde_json::Result<Section> {
    let LambdaRun { run, facts } = one;
    let mut verdict = facts.verdict.iter().map(|words| sentence(words));
    let words = verdict.next().unwrap_or_default();
    // the invocations are there as CSV, in a fifth of the room
    let figures = LambdaFacts {
        invocations: Vec::new(),
        ..facts.clone()
    };
    let document = Download::json(
        "lambda.json",
        "the figures as JSON",
        &json::lambda_compact(run, &figures)?,
    );
    Ok(Section {
        prefix,
        heading: None,
        headline: headline(facts, words),
        further: verdict.collect(),
        facts: sums(facts),
        findings: FindingGroup::all(&facts.findings),
        figures: figures::all(facts),
        tables: tables::all(facts),
        caveats: facts
            .caveats
            .iter()
            .map(|one| sentence(&one.message))
            .collect(),
        method: method(run, facts),
        downloads: vec![document, tables::invocations(run, facts)],
    })
}

/// What the best variant saves; with one variant, what a later call takes.
fn headline(facts: &LambdaFacts, words: String) -> Headline {
    let saved = facts
        .comparisons
        .iter()
        .filter_map(|one| Some((one, one.saved_ms?)))
        .max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let (number, standing, caption) = match saved {
        Some((one, saved)) if saved.low > 0.0 => (
            format!("−{}", time(saved.value)),
            Assessment::Good,
            format!(
                "for each invocation with {} (95 % interval {} to {})",
                one.b,
                time(saved.low),
                time(saved.high)
            ),
        ),
        Some(_) => (
            "no difference".to_owned(),
            Assessment::Neutral,
            "between the variants that could be shown to save anything".to_owned(),
        ),
        None if facts.counts.ok < facts.counts.total => (
            format!(
                "{} of {}",
                count(facts.counts.total - facts.counts.ok),
                count(facts.counts.total)
            ),
            Assessment::Bad,
            "invocations were not answered".to_owned(),
        ),
        None => {
            let mean = facts.variants.first().and_then(|one| one.warm_ms.mean);
            (
                mean.map_or_else(|| "–".to_owned(), time),
                Assessment::Neutral,
                "a call that finds its environment there".to_owned(),
            )
        }
    };
    Headline {
        number,
        standing,
        caption,
        sentences: words,
    }
}

fn sums(facts: &LambdaFacts) -> Vec<Fact> {
    let mut sums = vec![Fact::new("invocations", count(facts.counts.total))];
    let failed = facts.counts.total - facts.counts.ok;
    if failed > 0 {
        sums.push(Fact::alarm("not answered", count(failed)));
    }
    let environments: u64 = facts.variants.iter().map(|one| one.environments).sum();
    sums.push(Fact::new("environments", count(environments)));
    if let Some(connections) = &facts.connections {
        sums.push(Fact::new("connections opened", count(connections.opened)));
    }
    if let Some(requests) = &facts.requests {
        sums.push(Fact::new("requests sent", count(requests.total)));
        sums.push(Fact::new("reused", maybe_percent(facts.reuse)));
    }
    let pauses = || {
        facts
            .invocations
            .iter()
            .filter_map(|one| one.freeze.as_ref())
    };
    let died: usize = pauses()
        .map(|pause| {
            pause
                .connection_states
                .iter()
                .filter(|case| FrozenConnection::is_death(**case))
                .count()
        })
        .sum();
    if died > 0 {
        sums.push(Fact::alarm("died in a freeze", count(died as u64)));
        let failed = pauses()
            .filter(|pause| pause.effect == FreezeEffect::Failed)
            .count();
        sums.push(Fact::alarm(
            "invocations failed of it",
            count(failed as u64),
        ));
    }
    sums
}

fn method(run: &Run, facts: &LambdaFacts) -> Method {
    let first = "Each environment was a process with a Runtime API of its own; a round of a variant began with a new one. The time of an invocation is the function's own: from \
         the moment at which it runs and its event is there until its answer is complete. The start of the environment is told apart.";
    let second = "Variants ran in interleaved rounds and are compared round by round, without cold and failed invocations, so that what both met in the same minute \
         cancels out. Intervals are 95 % t intervals over rounds.";
    let third = "Connections were followed by a relay, as intact watch does it, and belong to the invocation during which they were opened.";
    let mut paragraphs = vec![first.to_owned()];
    if facts.variants.len() > 1 {
        paragraphs.push(second.to_owned());
    }
    if facts.connections.is_some() {
        paragraphs.push(third.to_owned());
    }
    let mut told = vec![
        ("Command", run.argv.join(" ")),
        ("Started", when(&run.started)),
    ];
    told.extend(environment(run));
    told.retain(|(_, words)| !words.trim().is_empty());
    Method {
        paragraphs,
        facts: told,
    }
}
