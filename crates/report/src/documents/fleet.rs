//! The pages of a campaign: its messages and workers, then the bench and the merged checks of each
//! target and label.

use super::bench;
use super::check::{self, CheckPart, CheckRun};
use crate::page::*;
use intact_document::Severity;
use intact_experiments::bench::Charts;
use intact_findings::fleet::{CampaignFacts, CardsFacts, CommonFinding, Outlier, Spread};
use intact_ledger::CampaignProgress;
use intact_units::Quantity::{Count, Mean, Time, Timer};

/// The campaign, then a page for each target and label; `charts` are those of the benches.
pub fn campaign<'a>(facts: &'a CampaignFacts, charts: &'a [Charts]) -> Vec<Page<'a>> {
    let place = |target: &str, label: &str| format!("{target} from {label}");
    let benches = facts.benches.iter().zip(charts).map(|(one, charts)| {
        let (run, facts) = (&one.run, &one.facts);
        let mut page = bench::page(run, facts, charts);
        page.subject = format!("{}: {}", place(&one.target, &one.label), page.subject);
        page
    });
    let checks = facts.checks.iter();
    let checks = checks.map(|one| profiles(&one.facts, place(&one.target, &one.label)));
    let all = std::iter::once(overview(facts))
        .chain(benches)
        .chain(checks);
    all.collect()
}

/// The first check of each target and label, which files have after the pages of [`campaign`].
pub fn first_checks(facts: &CampaignFacts) -> Vec<Page<'_>> {
    let first = facts.checks.iter().filter_map(|one| one.first.as_ref());
    first
        .map(|(run, facts)| check::page(CheckRun { run, facts }, CheckPart::All))
        .collect()
}

fn overview(facts: &CampaignFacts) -> Page<'_> {
    let checks = facts.checks.iter();
    let first = checks.filter_map(|one| Some(&one.first.as_ref()?.0));
    let mut runs = facts.benches.iter().map(|one| &one.run).chain(first);
    let (started, version) = runs.next().map_or_else(Default::default, |run| {
        (run.started.clone(), run.version.clone())
    });
    let messages = &facts.messages;
    let words = "{} of {} messages have a result.";
    let mut page = Page {
        command: "fleet".to_owned(),
        subject: facts.plan.clone(),
        started,
        version,
        verdict: vec![text!(words, messages.finished, messages.planned)],
        facts: states(messages),
        ..Page::default()
    };
    let dead = Rows::of(&messages.dead)
        .column("message", |one| &one.message)
        .column("reason", |one| &one.reason)
        .table();
    page.section(Section::new("dead-letters", "Messages that failed too often").summary(dead));
    page.section(
        Section::new("workers", "Workers that stand out").summary(workers(&facts.outliers)),
    );
    page
}

fn states(messages: &CampaignProgress) -> Vec<Fact> {
    let states = [
        ("missing", messages.missing),
        ("in the dead letters", messages.dead.len() as u64),
        ("unreadable", messages.unreadable),
        ("delivered again and not counted", messages.duplicates),
    ];
    let seen = states.into_iter().filter(|(_, count)| *count > 0);
    seen.map(|(name, count)| Fact::new(name, count)).collect()
}

fn workers(outliers: &[Outlier]) -> Option<Table> {
    let table = Rows::of(outliers)
        .column("worker", |one| &one.worker)
        .column("messages", |one| one.messages)
        .about("that can be compared")
        .column("slow", |one| Cell::failed(one.far))
        .about("messages far above the median of their kind")
        .column("times the median", |one| Mean(one.factor))
        .about("median of the slow messages")
        .table();
    let words = "Possible reasons: a cold function, a noisy host.";
    (!outliers.is_empty()).then(|| table.note(words))
}

/// The merged checks of one target from one label.
pub fn profiles(facts: &CardsFacts, subject: String) -> Page<'_> {
    let mut page = Page {
        command: "check".to_owned(),
        subject,
        verdict: verdict(facts),
        facts: vec![
            Fact::counted(facts.profiles, "check"),
            Fact::counted(facts.requests, "request"),
        ],
        ..Page::default()
    };
    let found = facts.findings.iter().map(|one| finding(one, facts));
    let found = found.collect::<Vec<FindingGroup>>();
    page.section(Section::new("findings", "What stands out").summary(found));
    page.section(Section::new("figures", "All profiles").summary(figures(facts)));
    let skipped = Rows::of(&facts.skipped)
        .column("probe", |one| &one.0)
        .column("reason", |one| &one.1)
        .column("profiles", |one| one.2)
        .table();
    page.section(Section::new("skipped", "Not probed").summary(skipped));
    page
}

fn verdict(facts: &CardsFacts) -> Vec<Text> {
    if facts.profiles == 0 {
        return vec!["No check has a result.".into()];
    }
    let of = |profiles| of_all(profiles, facts);
    let kept = match (facts.kept, facts.not_kept) {
        (0, 0) => None,
        (_, 0) => Some("Connections are kept alive.".into()),
        (0, _) => Some("Connections are closed after each response.".into()),
        (kept, not_kept) => Some(text!(
            "Connections are kept alive in {} and closed after each response in {}: the servers behind this name differ.",
            of(kept),
            of(not_kept)
        )),
    };
    let times = facts.fresh_ms.zip(facts.reused_ms).map(|(fresh, reused)| {
        let [fresh, reused] = [fresh, reused].map(|one| Time(one.median));
        let words = "A request takes {} on a new connection, {} on a reused one.";
        text!(words, fresh, reused)
    });
    let failed = facts
        .failed
        .iter()
        .map(|(kind, profiles)| text!("The first request failed in {}: {}.", of(*profiles), *kind));
    kept.into_iter().chain(times).chain(failed).collect()
}

/// `3 of 4 profiles`.
fn of_all(profiles: u64, facts: &CardsFacts) -> String {
    if profiles == facts.profiles {
        "all profiles".to_owned()
    } else {
        format!("{} of {} profiles", Count(profiles), Count(facts.profiles))
    }
}

fn figures(facts: &CardsFacts) -> Table {
    let time: fn(f64) -> Quantity = Time;
    let seconds: fn(f64) -> Quantity = |seconds| Timer(seconds * 1e3);
    let count: fn(f64) -> Quantity = |count| Count(count as u64);
    let figures = [
        ("idle limit", facts.idle_timeout_s, seconds),
        (
            "idle limit, at least",
            facts.idle_timeout_at_least_s,
            seconds,
        ),
        (
            "idle limit, announced",
            facts.idle_timeout_announced_s,
            seconds,
        ),
        ("requests per connection", facts.max_requests, count),
        ("the same, at least", facts.max_requests_at_least, count),
        ("request on a new connection", facts.fresh_ms, time),
        ("request on a reused connection", facts.reused_ms, time),
    ];
    let known = figures.into_iter().filter_map(|(name, spread, quantity)| {
        Some(Figure {
            name,
            spread: spread?,
            quantity,
        })
    });
    let figures: Vec<Figure> = known.collect();
    Rows::of(&figures)
        .column("figure", |one| one.name)
        .column("median", |one| (one.quantity)(one.spread.median))
        .ranked(1, "smallest", |one| (one.quantity)(one.spread.min))
        .ranked(1, "largest", |one| (one.quantity)(one.spread.max))
        .ranked(2, "profiles", |one| one.spread.profiles)
        .about("that have the figure")
        .table()
}

/// A figure over the profiles that have it.
struct Figure {
    name: &'static str,
    spread: Spread,
    quantity: fn(f64) -> Quantity,
}

/// A finding with the profiles that have it in the place of its subject.
fn finding(one: &CommonFinding, facts: &CardsFacts) -> FindingGroup {
    FindingGroup {
        severity: one.severity,
        rule: one.rule,
        cases: vec![Case {
            subject: of_all(one.profiles, facts),
            claim: sentence(&one.claim),
            evidence: Text::default(),
            cost: None,
            places: Vec::new(),
        }],
        count: 1,
        fix: Text::default(),
        risk: None,
        is_note: one.severity == Severity::Info,
    }
}
