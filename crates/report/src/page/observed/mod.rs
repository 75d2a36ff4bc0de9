//! The page of an observed run (`watch`, `audit`, a server's ledger): what setup was wasted, where, why, and what to change.

mod figures;
mod method;
mod tables;

use super::download::Download;
use super::parts::sentence;
use super::{Assessment, Fact, FindingGroup, Headline, Section};
use crate::cpu;
use crate::inputs::InputFacts;
use crate::json;
use crate::number::reuse;
use intact_findings::Severity;
use intact_findings::traffic::{Charts, Figures, ObservedFacts};
use intact_ledger::Run;
use intact_units::number::{count, whole_percent};

/// One observed run, as findings understand it.
#[derive(Clone, Copy)]
pub struct ObservedRun<'a> {
    /// The head of its ledger.
    pub run: &'a Run,
    /// Its facts.
    pub facts: &'a ObservedFacts,
    /// What its pictures show.
    pub pictures: &'a Charts,
    /// The files that it was read from; none when it was seen live.
    pub inputs: &'a [InputFacts],
}

pub(super) fn chapter(one: ObservedRun<'_>, prefix: String) -> serde_json::Result<Section> {
    let ObservedRun { run, facts, .. } = one;
    let mut verdict = facts.verdict.iter().map(|words| sentence(words));
    let words = verdict.next().unwrap_or_default();
    let document = Download::json(
        &format!("{}.json", run.producer),
        "everything as JSON",
        &json::observed_compact(run, facts)?,
    );
    let mut caveats: Vec<String> = facts
        .caveats
        .iter()
        .map(|caveat| sentence(&caveat.message))
        .collect();
    if !facts.totals.inferred.is_empty() {
        let reasons = facts.totals.inferred.join("; ");
        caveats.push(format!(
            "Figures with ~ are worked out and not seen: {reasons}."
        ));
    }
    Ok(Section {
        prefix,
        heading: None,
        headline: headline(facts, words),
        further: verdict.chain(processor_time(facts)).collect(),
        facts: sums(facts),
        findings: FindingGroup::all(&facts.findings),
        figures: figures::all(one),
        tables: tables::all(facts, one.inputs),
        caveats,
        method: method::method(run),
        downloads: vec![document, tables::destinations_csv(facts)],
    })
}

fn processor_time(facts: &ObservedFacts) -> Vec<String> {
    let lines = facts.cpu.as_ref().map(cpu::lines).unwrap_or_default();
    let sentences = lines.iter();
    sentences
        .map(|line| sentence(&format!("Processor time, {line}")))
        .collect()
}

/// A mark before what was worked out.
pub(super) fn about(figures: &Figures) -> &'static str {
    if figures.inferred.is_empty() { "" } else { "~" }
}

fn headline(facts: &ObservedFacts, words: String) -> Headline {
    let totals = &facts.totals;
    let grave = facts
        .findings
        .iter()
        .any(|finding| finding.severity > Severity::Info);
    let unobserved = &totals.unobserved;
    let is_complete = unobserved.has_all_connections()
        && unobserved.has_all_requests()
        && totals.reuse_range.is_none();
    let standing = match (grave, is_complete && facts.any_success()) {
        (true, _) => Assessment::Bad,
        (false, true) => Assessment::Good,
        (false, false) => Assessment::Neutral,
    };
    let about = about(totals);
    let wasted = totals.wasted_share.filter(|share| *share > 0.0);
    let (number, standing, caption) = match (wasted, totals.reuse) {
        (Some(share), _) => (
            whole_percent(share),
            standing,
            "of the time was setup of connections that were not needed".to_owned(),
        ),
        (None, Some(reuse)) => (
            match totals.reuse_range {
                Some([low, high]) => {
                    format!("{}-{}", whole_percent(low), whole_percent(high))
                }
                None => format!("{about}{}", whole_percent(reuse)),
            },
            standing,
            format!(
                "of {} requests reused a connection",
                count(totals.requests.total)
            ),
        ),
        _ => (
            count(totals.connections.opened),
            Assessment::Neutral,
            "connections; whether they were reused cannot be seen".to_owned(),
        ),
    };
    Headline {
        number,
        standing,
        caption,
        sentences: words,
    }
}

fn sums(facts: &ObservedFacts) -> Vec<Fact> {
    let totals = &facts.totals;
    let about = about(totals);
    let connections = &totals.connections;
    let mut sums = vec![
        Fact::new(
            "requests",
            format!("{about}{}", count(totals.requests.total)),
        ),
        Fact::new("connections opened", count(connections.opened)),
        Fact::new("needed", format!("{about}{}", count(connections.needed))),
        Fact::new(
            "reused",
            format!("{about}{}", reuse(totals.reuse, totals.reuse_range)),
        ),
        Fact::new("destinations", count(facts.destinations.len() as u64)),
    ];
    let failures = totals.requests.failures();
    if failures > 0 {
        sums.push(Fact::alarm("requests failed", count(failures)));
    }
    let dials: u64 = connections.failed.values().sum();
    if dials > 0 {
        sums.push(Fact::alarm("dials failed", count(dials)));
    }
    if totals.lookups.failed > 0 {
        sums.push(Fact::alarm("lookups failed", count(totals.lookups.failed)));
    }
    sums
}
