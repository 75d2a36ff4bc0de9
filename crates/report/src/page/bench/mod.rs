//! The page of a bench: what a new connection per request costs, in words, one number, pictures and tables.

mod figures;
mod method;
mod tables;

use super::download::Download;
use super::parts::sentence;
use super::{Assessment, Fact, FindingGroup, Headline, Section};
use crate::json;
use intact_findings::bench::{BenchFacts, Charts, TimeDifference};
use intact_ledger::Run;
use intact_units::number::{count, percent, time, whole_percent};

/// Sentences that stand below the verdict.
const FURTHER: usize = 7;

/// One bench, as findings understand it.
#[derive(Clone, Copy)]
pub struct BenchRun<'a> {
    /// The head of its ledger.
    pub run: &'a Run,
    /// Its facts.
    pub facts: &'a BenchFacts,
    /// What its pictures show.
    pub pictures: &'a Charts,
}

pub(super) fn chapter(one: BenchRun<'_>, prefix: String) -> serde_json::Result<Section> {
    let BenchRun { run, facts, .. } = one;
    let mut verdicts = facts.verdict.iter().map(|words| sentence(words));
    let words = verdicts.next();
    let mut further: Vec<String> = verdicts.by_ref().take(FURTHER).collect();
    let more = verdicts.count();
    if more > 0 {
        further.push(format!("{more} more: see the table of comparisons."));
    }
    let document = Download::json(
        "bench.json",
        "everything as JSON",
        &json::bench_compact(run, facts)?,
    );
    Ok(Section {
        prefix,
        heading: None,
        headline: headline(facts, words),
        further,
        facts: sums(facts),
        findings: FindingGroup::all(&facts.findings),
        figures: figures::all(&one),
        tables: tables::all(&one),
        caveats: facts
            .caveats
            .iter()
            .map(|caveat| sentence(&caveat.message))
            .collect(),
        method: method::method(run, facts),
        downloads: vec![document, tables::rounds(facts), tables::first_calls(facts)],
    })
}

fn headline(facts: &BenchFacts, words: Option<String>) -> Headline {
    if facts.requests.ok > 0 && !facts.any_success() {
        return Headline {
            number: facts.errors.names(),
            standing: Assessment::Bad,
            caption: "is the status of every response".to_owned(),
            sentences: words.unwrap_or_default(),
        };
    }
    if let Some(compared) = facts.headline() {
        return of_comparison(compared, words.unwrap_or_default());
    }
    let only = facts.variants.first();
    let mean = only.and_then(|variant| variant.latency_ms.mean);
    match (mean, only) {
        (Some(mean), Some(variant)) => Headline {
            number: time(mean),
            standing: Assessment::Neutral,
            caption: format!("mean of {} requests", count(variant.requests.ok)),
            sentences: format!(
                "{}: one variant, so there is nothing to compare it with. {}",
                variant.name,
                words.unwrap_or_default()
            )
            .trim_end()
            .to_owned(),
        },
        _ => Headline {
            number: format!("0 of {}", count(facts.requests.total)),
            standing: Assessment::Bad,
            caption: "requests answered".to_owned(),
            sentences: words
                .unwrap_or_else(|| "Nothing was answered: there is nothing to compare.".to_owned()),
        },
    }
}

/// What the first verdict says as a number; its words come along.
fn of_comparison(compared: &TimeDifference, words: String) -> Headline {
    let share = |share: f64| whole_percent(share.abs());
    let end = |share: f64| percent(share.abs());
    let (number, standing, caption) = match (compared.significant, compared.saved_share) {
        (Some(true), Some(saved)) => {
            let (number, standing, what) = if saved.value >= 0.0 {
                (format!("−{}", share(saved.value)), Assessment::Good, "less")
            } else {
                (format!("+{}", share(saved.value)), Assessment::Bad, "more")
            };
            let mut ends = [saved.low.abs(), saved.high.abs()];
            ends.sort_by(f64::total_cmp);
            (
                number,
                standing,
                format!(
                    "{what} time per request (95 % interval {} to {}): {} instead of {}",
                    end(ends[0]),
                    end(ends[1]),
                    time(compared.b_ms),
                    time(compared.a_ms)
                ),
            )
        }
        (Some(false), _) => (
            "no difference".to_owned(),
            Assessment::Neutral,
            format!(
                "that could be shown: {} and {} per request",
                time(compared.a_ms),
                time(compared.b_ms)
            ),
        ),
        _ => (
            format!("{} → {}", time(compared.a_ms), time(compared.b_ms)),
            Assessment::Neutral,
            "per request, without an interval: too few rounds".to_owned(),
        ),
    };
    Headline {
        number,
        standing,
        caption,
        sentences: words,
    }
}

fn sums(facts: &BenchFacts) -> Vec<Fact> {
    let mut sums = vec![
        Fact::new("requests measured", count(facts.requests.total)),
        Fact::new("connections opened", count(facts.connections.opened)),
        Fact::new("variants", facts.variants.len().to_string()),
        Fact::new("interleaved rounds", facts.rounds.to_string()),
    ];
    let failures = facts.requests.failures();
    if failures > 0 {
        sums.push(Fact::alarm("requests failed", count(failures)));
    } else {
        sums.push(Fact::new("requests failed", "0"));
    }
    let dials: u64 = facts.connections.failed.values().sum();
    if dials > 0 {
        sums.push(Fact::alarm("dials failed", count(dials)));
    }
    sums
}
