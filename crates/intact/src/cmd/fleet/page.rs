//! What `fleet` prints.

use super::cards::Checks;
use crate::cmd::page::{PageFile, write_all};
use anyhow::Context;
use intact_experiment::AxisError;
use intact_findings::bench::{BenchFacts, Charts};
use intact_findings::fleet::{Measured, Outlier, outliers};
use intact_findings::timeline::Timeline;
use intact_fleet::{Campaign, Counts, Group, Kind, Plan};
use intact_report::documents::{self, BenchRun, CheckRun, Source};
use intact_report::page::Page;
use intact_report::terminal::TerminalOptions;
use intact_units::number;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// Dead letters that the page names; the JSON has all.
const NAMED: usize = 10;

/// What a plan will send.
pub(super) fn plan(plan: &Plan) -> String {
    let estimate = plan.estimate();
    let mut page = format!("plan {}\n", plan.id);
    let mut line = |words: String| {
        let _ = writeln!(page, "  {words}");
    };
    let of = |kind| {
        let targets = plan.targets.iter();
        targets.filter(|target| target.measure == kind).count()
    };
    line(format!("{} messages", number::count(estimate.messages)));
    if of(Kind::Bench) > 0 {
        line(format!(
            "benches: {} targets x {} labels x {} variants x {} repetitions x {} slices of {}",
            of(Kind::Bench),
            plan.labels.len(),
            plan.variants.len(),
            plan.repetitions,
            plan.slices,
            number::long_time(Duration::from_millis(plan.slice_ms)),
        ));
    }
    let checks = plan.targets.iter();
    let checks = checks.filter(|target| target.measure == Kind::Check);
    if let Some(longest) = checks.map(|target| plan.ms_of(target)).max() {
        line(format!(
            "checks: {} targets x {} labels x {} repetitions, each within {}",
            of(Kind::Check),
            plan.labels.len(),
            plan.repetitions,
            number::long_time(Duration::from_millis(longest)),
        ));
    }
    line(format!(
        "to each target: at most {} requests/s; up to {} requests, {} at the very most if every message is delivered {} times",
        estimate.rate_per_target,
        number::count(estimate.requests_per_target),
        number::count(estimate.most_per_target),
        plan.limits.deliveries,
    ));
    if estimate.capped {
        line("the cap on requests ends messages before their time is over".to_owned());
    }
    line(format!(
        "{} {} with {} workers",
        // a check ends when it knows enough
        if of(Kind::Check) > 0 {
            "at most"
        } else {
            "about"
        },
        number::long_time(estimate.duration),
        plan.limits.workers
    ));
    for target in &plan.targets {
        line(format!(
            "target {}: {}, acknowledged{}",
            target.name,
            intact_ledger::redact::url(&target.url),
            if target.measure == Kind::Check {
                ", checked"
            } else {
                ""
            }
        ));
    }
    page
}

/// The same as JSON.
pub(super) fn plan_json(plan: &Plan) -> anyhow::Result<String> {
    let estimate = plan.estimate();
    let variants: Vec<&str> = plan
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    pretty(&json!({
        "schema": "intact.fleet-plan/1",
        "plan": plan.id,
        "estimate": estimate,
        "duration_s": estimate.duration.as_secs_f64(),
        "variants": variants,
        "labels": plan.labels,
    }))
}

/// How far a queue is.
pub(super) fn status(counts: &Counts, as_json: bool) -> anyhow::Result<String> {
    if as_json {
        return pretty(&json!({"schema": "intact.fleet-status/1", "queue": counts}));
    }
    let maybe =
        |count: Option<u64>| count.map_or("not told by this queue".to_owned(), number::count);
    Ok(format!(
        "waiting    {}\nwith a worker  {}\nfinished   {}\ndead letters   {}\n",
        number::count(counts.waiting),
        number::count(counts.claimed),
        maybe(counts.done),
        maybe(counts.dead)
    ))
}

/// One target from one label, with what findings make of it.
pub(super) struct Chapter<'a> {
    pub(super) group: &'a Group,
    pub(super) facts: BenchFacts,
    charts: Charts,
}

impl Chapter<'_> {
    fn page(&self) -> Page<'_> {
        let run = BenchRun {
            run: &self.group.run,
            facts: &self.facts,
            charts: &self.charts,
        };
        Source::Bench(run).page()
    }
}

/// The chapters of a campaign's report, in the plan's order.
pub(super) fn chapters(campaign: &Campaign) -> Result<Vec<Chapter<'_>>, AxisError> {
    let groups = campaign.groups.iter();
    groups
        .map(|group| {
            let facts = BenchFacts::new(&group.run, &group.tally, &[])?;
            // results hold counts and no single exchanges: the page has no timeline
            let timeline = Timeline::of_variants();
            let charts = Charts::new(&group.run, &group.tally, &facts, &timeline);
            Ok(Chapter {
                group,
                facts,
                charts,
            })
        })
        .collect()
}

/// Writes the page: a chapter per target and label. Of checks it has the first card of each; all of them together are in the terminal's
/// report and in the JSON.
pub(super) fn write(
    files: &[PageFile],
    chapters: &[Chapter<'_>],
    checks: &[Checks],
) -> anyhow::Result<()> {
    let cards = checks.iter().filter_map(|one| one.first.as_ref());
    let cards = cards.map(|(run, facts)| Source::Check(CheckRun { run, facts }).page());
    let pages: Vec<Page<'_>> = chapters.iter().map(Chapter::page).chain(cards).collect();
    if pages.is_empty() && !files.is_empty() {
        anyhow::bail!("--report: there is no result yet");
    }
    write_all(files, &pages)
}

/// The report of a campaign.
pub(super) fn report(
    campaign: &Campaign,
    chapters: &[Chapter<'_>],
    checks: &[Checks],
    paper: TerminalOptions,
) -> String {
    let progress = &campaign.progress;
    let mut page = format!(
        "intact fleet {}\n  {} of {} messages have a result",
        campaign.plan.id,
        number::count(progress.finished),
        number::count(progress.planned)
    );
    if progress.missing > 0 {
        let _ = write!(page, ", {} are missing", number::count(progress.missing));
    }
    if progress.duplicates > 0 {
        let _ = write!(
            page,
            "; {} results of further deliveries are not counted",
            number::count(progress.duplicates)
        );
    }
    page.push_str(".\n");
    if !progress.dead.is_empty() {
        let _ = writeln!(page, "  {} were given up:", progress.dead.len());
        for letter in progress.dead.iter().take(NAMED) {
            let _ = writeln!(page, "    {}: {}", letter.message, letter.reason);
        }
    }
    for outlier in outliers(&measured(campaign)) {
        let _ = writeln!(
            page,
            "  worker {} stands out: {} of its {} messages took {:.1} times the median of their kind (a cold function, a noisy host?)",
            outlier.worker, outlier.far, outlier.messages, outlier.factor
        );
    }
    for chapter in chapters {
        let group = chapter.group;
        let _ = writeln!(page, "\n{} from {}", group.target, group.label);
        page.push_str(&intact_report::terminal::write(&chapter.page(), paper));
    }
    for one in checks {
        let subject = format!("{} from {}", one.target, one.label);
        let cards = documents::cards(&one.facts, subject);
        page.push('\n');
        page.push_str(&intact_report::terminal::write(&cards, paper));
    }
    page
}

/// The same as JSON.
pub(super) fn report_json(
    campaign: &Campaign,
    chapters: &[Chapter<'_>],
    checks: &[Checks],
) -> anyhow::Result<String> {
    let found: Vec<Outlier> = outliers(&measured(campaign));
    let mut groups = Vec::new();
    for Chapter { group, facts, .. } in chapters {
        let bench = intact_report::json::bench_value(&group.run, facts)?;
        groups.push(json!({"target": group.target, "label": group.label, "bench": bench}));
    }
    let checks: Vec<Value> = checks
        .iter()
        .map(|one| json!({"target": one.target, "label": one.label, "cards": one.facts}))
        .collect();
    pretty(&json!({
        "schema": "intact.fleet/1",
        "plan": campaign.plan.id,
        "messages": campaign.progress,
        "outliers": found,
        "groups": groups,
        "checks": checks,
    }))
}

fn measured(campaign: &Campaign) -> Vec<Measured> {
    campaign
        .messages
        .iter()
        .map(|message| Measured {
            worker: message.worker.clone(),
            kind: message.of.clone(),
            mean_ms: message.mean_ms,
        })
        .collect()
}

fn pretty(value: &Value) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(value).context("JSON")?;
    text.push('\n');
    Ok(text)
}
