//! The page of a check: the card of a server, its limits, and what to set clients to.

mod tables;

use super::download::Download;
use super::environment::environment;
use super::parts::sentence;
use super::populations::{phase_words, tone_of_phase};
use super::{Assessment, Fact, Figure, FindingGroup, Headline, Method, Section, when};
use crate::json;
use crate::svg::{self, Tone};
use intact_findings::Severity;
use intact_findings::check::{CheckFacts, PHASES, SmallSample};
use intact_ledger::Run;
use intact_units::number::{count, tick, time, timer};
use std::collections::BTreeMap;

/// One check, as findings understand it.
#[derive(Clone, Copy)]
pub struct CheckRun<'a> {
    /// The head of its ledger.
    pub run: &'a Run,
    /// Its facts.
    pub facts: &'a CheckFacts,
}

pub(super) fn chapter(one: CheckRun<'_>, prefix: String) -> serde_json::Result<Section> {
    let CheckRun { run, facts } = one;
    let mut verdict = facts.verdict.iter().map(|words| sentence(words));
    let words = verdict.next().unwrap_or_default();
    let document = Download::json(
        "check.json",
        "everything as JSON",
        &json::check_compact(run, facts)?,
    );
    let told: Vec<_> = facts
        .findings
        .iter()
        .filter(|one| one.rule != "unreachable")
        .cloned()
        .collect();
    let caveats = facts.caveats.iter().map(|caveat| sentence(&caveat.message));
    let skipped = facts
        .skipped
        .iter()
        .map(|one| sentence(&format!("not probed: {} ({})", one.probe, one.why)));
    Ok(Section {
        prefix,
        heading: None,
        headline: headline(facts, words),
        further: verdict.collect(),
        facts: sums(facts),
        findings: FindingGroup::all(&told),
        figures: [waterfall(facts), handshakes(facts)]
            .into_iter()
            .flatten()
            .collect(),
        tables: tables::all(facts),
        caveats: caveats.chain(skipped).collect(),
        method: method(run, facts),
        downloads: vec![document],
    })
}

/// How long a connection is kept, or that it is not.
fn headline(facts: &CheckFacts, words: String) -> Headline {
    let grave = facts
        .findings
        .iter()
        .any(|finding| finding.severity > Severity::Info);
    let standing = if grave {
        Assessment::Bad
    } else {
        Assessment::Good
    };
    let idle = facts.idle_timeout.as_ref();
    let limit = idle.and_then(|idle| idle.measured_s.or(idle.at_least_s));
    if facts.errors.is_all() {
        return Headline {
            number: facts.errors.names(),
            standing: Assessment::Bad,
            caption: "is the status of every response".to_owned(),
            sentences: words,
        };
    }
    let (number, standing, caption) = match (facts.any_success(), facts.keeps(), limit) {
        (false, ..) => ("no answer", Assessment::Bad, "to the first request"),
        (true, Some(false), _) => ("closed", Assessment::Bad, "after every answer"),
        (true, kept, None) => (
            if kept.is_some() { "kept" } else { "answered" },
            standing,
            "connections; how long they may idle was not measured",
        ),
        (true, _, Some(limit)) => {
            let least = if idle.is_some_and(|idle| idle.measured_s.is_none()) {
                "≥ "
            } else {
                ""
            };
            return Headline {
                number: format!("{least}{}", timer(limit * 1e3)),
                standing,
                caption: "is how long an idle connection is kept".to_owned(),
                sentences: words,
            };
        }
    };
    Headline {
        number: number.to_owned(),
        standing,
        caption: caption.to_owned(),
        sentences: words,
    }
}

fn sums(facts: &CheckFacts) -> Vec<Fact> {
    let mut sums = Vec::new();
    if let Some(status) = facts.target.as_ref().and_then(|target| target.status) {
        sums.push(Fact::new("status", status.to_string()));
    }
    sums.push(Fact::new("requests", count(facts.requests.total)));
    sums.push(Fact::new(
        "connections opened",
        count(facts.connections.opened),
    ));
    let announced = facts
        .idle_timeout
        .as_ref()
        .and_then(|idle| idle.announced_s);
    if let Some(announced) = announced {
        sums.push(Fact::new("idle limit announced", format!("{announced} s")));
    }
    sums
}

/// The first request on a connection against the next ones.
fn waterfall(facts: &CheckFacts) -> Option<Figure> {
    let fall = &facts.phases_ms;
    let rows = [("first request", &fall.fresh), ("next ones", &fall.reused)];
    let stacks: Vec<svg::Stack> = rows
        .iter()
        .filter_map(|(name, phases)| {
            let total = phases.get("total")?.as_ref()?;
            Some(svg::Stack {
                name: (*name).to_owned(),
                words: format!("{}, the middle one of {}", time(total.median), total.count),
                segments: segments(phases),
            })
        })
        .collect();
    if stacks.is_empty() {
        return None;
    }
    let notes = vec![
        "The middle value of each phase: on new connections, and on the same ones after that. What the first request waits for and the next ones do not is what a kept connection saves."
            .to_owned(),
    ];
    let csv = rows.iter().flat_map(|(name, phases)| {
        phases.iter().filter_map(|(phase, few)| {
            let few = few.as_ref()?;
            let figures = [few.median, few.mean, few.min, few.max].map(|ms| ms.to_string());
            let mut row = vec![(*name).to_owned(), (*phase).to_owned()];
            row.extend(figures);
            row.push(few.count.to_string());
            Some(row)
        })
    });
    let head = [
        "request",
        "phase",
        "middle_ms",
        "mean_ms",
        "min_ms",
        "max_ms",
        "count",
    ];
    let file = Download::csv("phases.csv", &head, csv);
    let picture = svg::Stacks {
        stacks,
        label: tick,
    };
    let title = "One request, phase by phase";
    Some(Figure::new("waterfall", title, picture, notes).with_file(file))
}

fn segments(phases: &BTreeMap<&'static str, Option<SmallSample>>) -> Vec<svg::Segment> {
    PHASES
        .iter()
        .filter(|phase| !matches!(**phase, "total" | "without_setup"))
        .filter_map(|phase| {
            let few = phases.get(phase)?.as_ref()?;
            Some(svg::Segment {
                name: phase_words(phase).0.to_owned(),
                tone: tone_of_phase(phase),
                value: few.median,
            })
        })
        .collect()
}

/// What a handshake takes in full, and resumed.
fn handshakes(facts: &CheckFacts) -> Option<Figure> {
    let mut bars = Vec::new();
    for tls in &facts.tls {
        bars.push(bar(
            format!("TLS {}", tls.version),
            Tone::Fresh,
            tls.handshake_ms,
        ));
        let again = facts
            .resumption
            .iter()
            .find(|one| one.version == tls.version);
        if let Some(again) = again.filter(|again| again.accepted) {
            let name = format!("TLS {} resumed", tls.version);
            bars.push(bar(name, Tone::Reused, again.handshake_ms));
        }
    }
    if bars.is_empty() {
        return None;
    }
    let notes = vec!["One handshake of each kind, beside the setup of TCP.".to_owned()];
    let picture = svg::Bars { bars, label: tick };
    let title = "What a TLS handshake takes";
    Some(Figure::new("handshakes", title, picture, notes))
}

fn bar(name: String, tone: Tone, ms: f64) -> svg::Bar {
    svg::Bar {
        name,
        tone,
        value: ms,
        interval: None,
        words: time(ms),
    }
}

fn method(run: &Run, facts: &CheckFacts) -> Method {
    let paragraphs = vec![
        "Probes ran one after the other, each on connections of its own, within a budget that was said first. Idle time runs from the kernel's receive stamp of the last byte of an answer to that of the server's end; a limit that was not reached is a lower bound.".to_owned(),
        "The middle one of five or ten values is shown: so few support no percentile.".to_owned(),
    ];
    let server = facts.target.as_ref().and_then(|one| one.server.clone());
    let mut told = vec![
        ("Command", run.argv.join(" ")),
        ("Started", when(&run.started)),
        ("Server", server.unwrap_or_default()),
    ];
    told.extend(environment(run));
    told.retain(|(_, words)| !words.trim().is_empty());
    Method {
        paragraphs,
        facts: told,
    }
}
