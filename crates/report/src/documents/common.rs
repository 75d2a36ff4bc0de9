//! What the pages of all runs have in common: title, method, lists of what was left out.

use crate::page::*;
use intact_document::{Claims, Facts, Finding};
use intact_experiments::bench::PortLimit;
use intact_ledger::{Caveat, Rows, Run};
use intact_units::Quantity;
use intact_units::plural::counted;

/// Series, panels or variants in one chart.
pub(super) const GROUPS: usize = 8;

/// A page with the title of a run, its verdict and what limits its figures; `subject` where its
/// header has none.
pub(super) fn page<'a>(run: &Run, facts: &dyn Facts, subject: impl FnOnce() -> String) -> Page<'a> {
    let subject = run.subject.clone().unwrap_or_else(subject);
    Page {
        command: run.producer.as_str().to_owned(),
        subject: match &run.link {
            Some(link) => format!("{subject} behind {link}"),
            None => subject,
        },
        started: run.started.clone(),
        version: run.version.clone(),
        verdict: claims(run, facts.verdict()),
        caveats: caveats(facts.caveats()),
        ..Page::default()
    }
}

/// A page about no run: its version is that of this program.
pub(super) fn page_without_run<'a>(command: &str, subject: String) -> Page<'a> {
    Page {
        command: command.to_owned(),
        subject,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Page::default()
    }
}

/// The seed of a run's random order.
pub(super) fn seed(run: &Run) -> String {
    run.seed.unwrap_or(0).to_string()
}

/// The parts of all, each behind what it is a part of: the rounds of variants.
pub(super) fn each_part<'a, T, U>(
    all: &'a [T],
    parts: impl Fn(&'a T) -> &'a [U],
) -> Vec<(&'a T, &'a U)> {
    let each = all.iter();
    each.flat_map(|one| parts(one).iter().map(move |part| (one, part)))
        .collect()
}

/// The first in a chart, each with its tone.
pub(super) fn in_chart<T>(all: &[T]) -> impl Iterator<Item = (Tone, &T)> {
    let tones = (0..).map(Tone::Series);
    tones.zip(all.iter().take(GROUPS))
}

/// The command line of a wrapped program: it follows the dashes.
pub(super) fn program(run: &Run) -> String {
    let words = run.argv.iter().skip_while(|word| *word != "--").skip(1);
    words.cloned().collect::<Vec<String>>().join(" ")
}

/// The headline where no request had a response; `None` where none was sent.
pub(super) fn no_response(requests: u64) -> Option<Headline> {
    let caption = text!("of {} had no response", counted(requests, "request"));
    Headline::all_failed(caption).filter(|_| requests > 0)
}

/// The claims of a verdict. One that begins with the name of a variant, which may be a command,
/// begins as it does.
fn claims(run: &Run, claims: &Claims) -> Vec<Text> {
    let is_name = |words: &str| {
        let mut variants = run.variants.iter();
        variants.any(|one| words.starts_with(&*one.name))
    };
    let claim = |words: &str| match is_name(words) {
        true => Text::prose(&format!("{words}.")),
        false => sentence(words),
    };
    claims.sentences().map(claim).collect()
}

/// What limits the figures, in the words of the JSON document.
pub(super) fn caveats(caveats: &[Caveat]) -> Vec<Text> {
    caveats.iter().map(caveat).collect()
}

/// The same without those that are in a sentence of the verdict already.
pub(super) fn caveats_beyond(verdict: &Claims, caveats: &[Caveat]) -> Vec<Text> {
    let is_said = |one: &&Caveat| verdict.sentences().any(|said| said.contains(&*one.message));
    let others = caveats.iter().filter(|one| !is_said(one));
    others.map(caveat).collect()
}

fn caveat(one: &Caveat) -> Text {
    let end = if one.message.ends_with('.') { "" } else { "." };
    Text::prose(&format!("{}{end}", one.message))
}

/// At which rate of new connections the client's ports run out.
pub(super) fn ports_run_out(limit: &PortLimit) -> Text {
    let words = "Ports run out at {} new connections/s to one address of another machine, if the client closes them first: {} ephemeral ports, each in TIME_WAIT for 60 s. On loopback a port is free again after 1 s: {}/s.";
    text!(
        words,
        Quantity::Rate(limit.run_out_per_s),
        limit.ports,
        Quantity::Rate(limit.run_out_on_loopback_per_s)
    )
}

/// What stands out; `own` is the subject that the page has already.
pub(super) fn findings(findings: &[Finding], own: &str) -> Section {
    stand_out(FindingGroup::all(findings, own))
}

/// The same without costs.
pub(super) fn findings_without_costs(findings: &[Finding]) -> Section {
    let mut groups = FindingGroup::all(findings, "");
    let cases = groups.iter_mut().flat_map(|group| &mut group.cases);
    cases.for_each(|case| case.cost = None);
    stand_out(groups)
}

/// The same, with evidence and remedy of every finding on every page.
pub(super) fn findings_in_full(findings: &[Finding], own: &str) -> Section {
    let mut groups = FindingGroup::all(findings, own);
    groups.iter_mut().for_each(|group| group.is_note = false);
    stand_out(groups)
}

fn stand_out(groups: Vec<FindingGroup>) -> Section {
    Section::new("findings", "What stands out, and what to change").summary(groups)
}

/// How a run was measured: paragraphs, then facts, `further` ones included.
pub(super) fn method(
    run: &Run,
    paragraphs: &[Text],
    further: Vec<(&'static str, Text)>,
) -> Section {
    let host = &run.host;
    let cpus = host
        .cpus
        .map_or_else(String::new, |cpus| format!(", {cpus} processors"));
    let maybe = |words: &Option<String>| Text::plain(words.clone().unwrap_or_default());
    let io = run.io.as_ref().map_or_else(String::new, |io| {
        let reason = io.reason.iter().map(|reason| format!(", because {reason}"));
        format!("{}{}", io.backend, reason.collect::<String>())
    });
    let rows = match run.rows {
        Rows::All => "all",
        Rows::Sample => "a sample; counts are complete",
    };
    let mut facts = vec![
        ("Command", Text::plain(run.argv.join(" "))),
        ("Started", when(&run.started).into()),
    ];
    facts.extend(further);
    facts.extend([
        (
            "Machine",
            Text::plain(format!("{} {}{cpus}", host.os, host.arch)),
        ),
        ("Kernel", maybe(&host.kernel)),
        ("TCP congestion control", maybe(&host.congestion_control)),
        ("I/O of the client", Text::plain(io)),
        (
            "Link",
            Text::plain(run.link.as_deref().unwrap_or("as it is")),
        ),
        ("Rows in the ledger", rows.into()),
        ("Run", Text::plain(&run.id)),
    ]);
    facts.retain(|(_, words)| !words.to_string().trim().is_empty());
    let mut section = Section::new("method", "How it was measured");
    for paragraph in paragraphs {
        section = section.full(paragraph.clone());
    }
    section.blocks.push((Depth::Full, Block::Facts(facts)));
    section
}

/// A note on what a chart leaves out, if anything.
pub(super) fn first_of(shown: usize, all: usize, what: &str) -> Option<Text> {
    (all > shown).then(|| text!("The first {} of {} {}.", shown, all, what))
}

/// A line through these points.
pub(super) fn line(name: &str, tone: Tone, points: impl Iterator<Item = (f64, f64)>) -> Line {
    let point = |(x, y)| LinePoint {
        x,
        y,
        interval: None,
    };
    Line {
        name: name.to_owned(),
        tone,
        points: points.map(point).collect(),
        reach: None,
    }
}

/// The line of a variant, by round and milliseconds.
pub(super) fn round_line(tone: Tone, name: &str, rounds: impl Iterator<Item = (u32, f64)>) -> Line {
    let points = rounds.map(|(round, ms)| (f64::from(round), ms));
    line(name, tone, points)
}

/// A run at least as long as this, in seconds, has dates on its axes.
const DATED_S: f64 = 10.0;

/// The axis of a run over this span: dates, or the time since the start where the run is short.
pub(super) fn time_axis(run: &Run, span_s: f64) -> Axis {
    match run.started.parse() {
        Ok(zero) if span_s >= DATED_S => Axis::Date {
            zero,
            span_ms: (span_s * 1e3) as u64,
        },
        _ => Axis::Time,
    }
}

/// A run round by round.
pub(super) fn by_round(lines: Vec<Line>, marks: Vec<Mark>) -> Lines {
    Lines {
        lines,
        marks,
        scale: ScaleKind::Linear,
        x: Axis::Count,
        y: Axis::Time,
    }
}

/// Whether a difference is significant, where there is an interval.
pub(super) fn significance(significant: Option<bool>) -> &'static str {
    match significant {
        Some(true) => "differs",
        Some(false) => "not shown",
        None => "no interval",
    }
}

/// Counts by kind: `client 40, server 3`.
pub(super) fn by_kind<'a>(counts: impl IntoIterator<Item = (&'a &'static str, &'a u64)>) -> String {
    let counts = counts.into_iter();
    let words = counts.map(|(kind, count)| format!("{kind} {}", Quantity::Count(*count)));
    words.collect::<Vec<String>>().join(", ")
}
