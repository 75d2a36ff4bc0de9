//! What invocations of a function found out: cold against hot, what became of them after each kind of pause, and variants held
//! against each other round by round. From the calls alone. Must not run anything.

use crate::figures::{Latency, Requests};
use crate::stats::{Confidence, Interval, paired_difference};
use ledger::{Caveat, Histogram, Run};
use serde::Serialize;
use std::collections::BTreeMap;

/// One invocation. Times in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Call {
    /// Index into the run's variants.
    pub variant: usize,
    /// The round, from 1; each begins with a new environment.
    pub round: u32,
    /// The environment that took it, unique in the run.
    pub environment: u64,
    /// When it was invoked, since the start of the run.
    pub at_ms: f64,
    /// The function's own time, without the start of the environment.
    pub ms: f64,
    /// From the start of the process until it asked for its first event; `None`: the environment was there (hot).
    pub init_ms: Option<f64>,
    /// How long the environment was frozen before; `None`: it was not.
    pub frozen_ms: Option<f64>,
    /// `answered`, `error`, `timeout`, `crash`, `no-start`, `unanswered`, `never-asked-again`.
    pub outcome: &'static str,
    /// What the function or the system said of it.
    pub detail: Option<String>,
    /// Answers after the first, all refused.
    pub answered_again: u32,
}

impl Call {
    /// Whether the function answered; an error that it reports is none.
    pub fn is_ok(&self) -> bool {
        self.outcome == "answered"
    }
}

/// Invocations that have something in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kind {
    /// `cold`, `hot`, or `frozen 30s`.
    pub name: String,
    /// How many.
    pub count: u64,
    /// Of these, not answered.
    pub failed: u64,
    /// The function's own time of those answered.
    pub latency_ms: Latency,
    /// The start of the environment; of cold ones only.
    pub init_ms: Option<Latency>,
    /// What those said that failed, each with how often; the most frequent first, ten at most.
    pub failures: Vec<(String, u64)>,
}

/// One round of a variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoundMean {
    /// From 1.
    pub round: u32,
    /// Mean of the function's own time, answered and not cold, in milliseconds.
    pub mean_ms: f64,
}

/// One variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantFacts {
    /// Its name.
    pub name: String,
    /// Invocations by outcome.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Environments that were started.
    pub environments: u64,
    /// The mean of the first calls, the start of the environment included, in milliseconds.
    pub first_ms: Option<f64>,
    /// The function's own time of all that were answered and not cold.
    pub warm_ms: Latency,
    /// Cold, hot, and after each pause.
    pub kinds: Vec<Kind>,
    /// Rounds.
    pub rounds: Vec<RoundMean>,
}

/// What a variant saves against the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The first variant.
    pub a: String,
    /// The one that might save something.
    pub b: String,
    /// Mean of the rounds' means, in milliseconds.
    pub a_ms: f64,
    /// See `a_ms`.
    pub b_ms: f64,
    /// `a - b` per invocation, in milliseconds; absent with fewer than 8 rounds.
    pub saved_ms: Option<Interval>,
    /// Why there is no interval.
    pub refused: Option<String>,
}

/// Everything that a report of a function lays out.
#[derive(Clone, Debug, Serialize)]
pub struct LambdaFacts {
    /// Sentences, the one that matters most first.
    pub verdict: Vec<String>,
    /// The variants, the one held against first.
    pub variants: Vec<VariantFacts>,
    /// Each against the first.
    pub comparisons: Vec<Compared>,
    /// As in every document: invocations; `failed` by outcome.
    pub requests: Requests,
    /// What limits the figures.
    pub caveats: Vec<Caveat>,
    /// Every invocation.
    pub invocations: Vec<Call>,
}

impl LambdaFacts {
    /// Works the facts out.
    pub fn new(run: &Run, calls: Vec<Call>, caveats: Vec<Caveat>) -> LambdaFacts {
        let each = run.variants.iter().enumerate();
        let variants: Vec<VariantFacts> = each
            .map(|(index, variant)| {
                let ours: Vec<&Call> = calls.iter().filter(|call| call.variant == index).collect();
                VariantFacts::new(&variant.name, &ours)
            })
            .collect();
        let comparisons = compare(&variants);
        let mut requests = Requests::default();
        for call in &calls {
            requests.total += 1;
            if call.is_ok() {
                requests.ok += 1;
            } else {
                *requests.failed.entry(call.outcome).or_default() += 1;
            }
        }
        LambdaFacts {
            verdict: verdict(&variants, &comparisons),
            variants,
            comparisons,
            requests,
            caveats,
            invocations: calls,
        }
    }
}

impl VariantFacts {
    fn new(name: &str, calls: &[&Call]) -> VariantFacts {
        let mut outcomes = BTreeMap::new();
        let mut kinds: Vec<(String, Vec<&Call>)> = Vec::new();
        for &call in calls {
            *outcomes.entry(call.outcome).or_default() += 1;
            let name = kind(call);
            match kinds.iter_mut().find(|(known, _)| *known == name) {
                Some((_, of_it)) => of_it.push(call),
                None => kinds.push((name, vec![call])),
            }
        }
        let warm = |call: &&&Call| call.init_ms.is_none() && call.is_ok();
        let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for call in calls.iter().filter(warm) {
            rounds.entry(call.round).or_default().push(call.ms);
        }
        let first = calls.iter().filter(|call| call.is_ok());
        let first: Vec<f64> = first
            .filter_map(|call| Some(call.init_ms? + call.ms))
            .collect();
        let environments: std::collections::BTreeSet<u64> =
            calls.iter().map(|call| call.environment).collect();
        VariantFacts {
            name: name.to_owned(),
            outcomes,
            environments: environments.len() as u64,
            first_ms: mean(&first),
            warm_ms: latency(calls.iter().filter(warm).map(|call| call.ms)),
            kinds: kinds
                .into_iter()
                .map(|(name, calls)| Kind::new(name, &calls))
                .collect(),
            rounds: rounds
                .into_iter()
                .filter_map(|(round, times)| {
                    let mean_ms = mean(&times)?;
                    Some(RoundMean { round, mean_ms })
                })
                .collect(),
        }
    }
}

impl Kind {
    fn new(name: String, calls: &[&Call]) -> Kind {
        let ok = || calls.iter().filter(|call| call.is_ok());
        let mut failures: BTreeMap<String, u64> = BTreeMap::new();
        for call in calls.iter().filter(|call| !call.is_ok()) {
            let words = match &call.detail {
                Some(detail) => format!("{}: {detail}", call.outcome),
                None => call.outcome.to_owned(),
            };
            *failures.entry(words).or_default() += 1;
        }
        let mut failures: Vec<(String, u64)> = failures.into_iter().collect();
        failures.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        failures.truncate(10);
        let init: Vec<f64> = calls.iter().filter_map(|call| call.init_ms).collect();
        Kind {
            name,
            count: calls.len() as u64,
            failed: (calls.len() - ok().count()) as u64,
            latency_ms: latency(ok().map(|call| call.ms)),
            init_ms: (!init.is_empty()).then(|| latency(init.into_iter())),
            failures,
        }
    }
}

/// Pauses are told apart to a tenth of a second: the machine adds a few milliseconds to each.
fn kind(call: &Call) -> String {
    match (call.init_ms, call.frozen_ms) {
        (Some(_), _) => "cold".to_owned(),
        (None, None) => "hot".to_owned(),
        (None, Some(ms)) => format!("frozen {} s", (ms / 100.0).round() / 10.0),
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn latency(values: impl Iterator<Item = f64>) -> Latency {
    let mut histogram = Histogram::new();
    for ms in values {
        histogram.record((ms * 1e6) as u64);
    }
    Latency::of(&histogram)
}

fn compare(variants: &[VariantFacts]) -> Vec<Compared> {
    let Some((a, others)) = variants.split_first() else {
        return Vec::new();
    };
    let held = others.iter().filter_map(|b| {
        let pairs = a.rounds.iter().filter_map(|ours| {
            let theirs = b.rounds.iter().find(|theirs| theirs.round == ours.round)?;
            Some((ours.mean_ms, theirs.mean_ms))
        });
        let (of_a, of_b): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let difference = paired_difference(&of_a, &of_b, Confidence::P95);
        Some(Compared {
            a: a.name.clone(),
            b: b.name.clone(),
            a_ms: mean(&of_a)?,
            b_ms: mean(&of_b)?,
            saved_ms: difference.as_ref().ok().map(|held| held.interval()),
            refused: difference.err().map(|refusal| refusal.to_string()),
        })
    });
    held.collect()
}

fn verdict(variants: &[VariantFacts], comparisons: &[Compared]) -> Vec<String> {
    let mut sentences: Vec<String> = comparisons.iter().map(sentence).collect();
    for variant in variants {
        let whose = if variants.len() > 1 {
            format!("{}: ", variant.name)
        } else {
            String::new()
        };
        for kind in &variant.kinds {
            if let (true, Some((words, count))) = (kind.failed > 0, kind.failures.first()) {
                sentences.push(format!(
                    "{whose}{} of {} {} invocations failed, {count} of them: {words}",
                    kind.failed, kind.count, kind.name
                ));
            }
        }
        if comparisons.is_empty()
            && let (Some(first), Some(warm)) = (variant.first_ms, variant.warm_ms.mean)
        {
            sentences.push(format!(
                "{whose}a first call takes {first:.1} ms with the start of its environment, later ones {warm:.1} ms"
            ));
        }
    }
    sentences
}

fn sentence(compared: &Compared) -> String {
    let Compared { a, b, a_ms, .. } = compared;
    match compared.saved_ms {
        None => format!(
            "{b} takes {:.2} ms per invocation, {a} {a_ms:.2} ms (no interval: {})",
            compared.b_ms,
            compared.refused.as_deref().unwrap_or_default()
        ),
        Some(saved) if saved.low <= 0.0 && saved.high >= 0.0 => format!(
            "{b} against {a}: no difference shown; it lies between {:.2} and {:.2} ms of {a_ms:.2} ms per invocation",
            saved.low, saved.high
        ),
        Some(saved) => {
            let (verb, sign) = if saved.value > 0.0 {
                ("saves", 1.0)
            } else {
                ("costs", -1.0)
            };
            let mut ends = [saved.low * sign, saved.high * sign];
            ends.sort_by(f64::total_cmp);
            format!(
                "{b} {verb} {:.2} ms ({:.2}-{:.2}) against the {a_ms:.2} ms per invocation of {a}",
                saved.value * sign,
                ends[0],
                ends[1]
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::{Vantage, Variant};

    fn run(names: &[&str]) -> Run {
        let mut run = Run::new(
            "lambda",
            "0",
            Vantage::Client,
            jiff::Timestamp::UNIX_EPOCH,
            1,
            &[],
        );
        run.variants = names
            .iter()
            .map(|name| Variant {
                name: (*name).to_owned(),
                axes: BTreeMap::new(),
            })
            .collect();
        run
    }

    fn call(variant: usize, round: u32, init_ms: Option<f64>, ms: f64) -> Call {
        Call {
            variant,
            round,
            environment: u64::from(round),
            at_ms: 0.0,
            ms,
            init_ms,
            frozen_ms: None,
            outcome: "answered",
            detail: None,
            answered_again: 0,
        }
    }

    #[test]
    fn cold_calls_are_kept_out_of_what_is_compared() {
        let mut calls = Vec::new();
        for round in 1..=8 {
            let drift = f64::from(round) / 10.0;
            for (variant, ms) in [(0, 90.0 + drift), (1, 30.0)] {
                calls.push(call(variant, round, Some(500.0), 1000.0));
                calls.push(call(variant, round, None, ms));
            }
        }
        let facts = LambdaFacts::new(&run(&["off", "on"]), calls, Vec::new());
        let saved = facts.comparisons[0].saved_ms.unwrap();
        assert!((saved.value - 60.45).abs() < 0.01, "{saved:?}");
        assert_eq!(facts.variants[0].first_ms, Some(1500.0));
        assert!(
            facts.verdict[0].starts_with("on saves 60.45 ms"),
            "{:?}",
            facts.verdict
        );
    }

    #[test]
    fn what_fails_after_a_pause_is_told_by_the_pause() {
        let mut late = call(0, 1, None, 1.0);
        late.frozen_ms = Some(3012.0);
        late.outcome = "error";
        late.detail = Some("Error: socket hang up".to_owned());
        let calls = vec![call(0, 1, Some(1.0), 1.0), call(0, 1, None, 1.0), late];
        let facts = LambdaFacts::new(&run(&["it"]), calls, Vec::new());
        let kinds: Vec<(&str, u64)> = facts.variants[0]
            .kinds
            .iter()
            .map(|kind| (kind.name.as_str(), kind.failed))
            .collect();
        assert_eq!(kinds, [("cold", 0), ("hot", 0), ("frozen 3 s", 1)]);
        let words = "1 of 1 frozen 3 s invocations failed, 1 of them: error: Error: socket hang up";
        assert!(
            facts.verdict.contains(&words.to_owned()),
            "{:?}",
            facts.verdict
        );
        assert_eq!((facts.requests.ok, facts.requests.failed["error"]), (2, 1));
    }

    #[test]
    fn few_rounds_give_no_interval() {
        let calls = vec![call(0, 1, None, 2.0), call(1, 1, None, 1.0)];
        let facts = LambdaFacts::new(&run(&["a", "b"]), calls, Vec::new());
        assert!(facts.comparisons[0].saved_ms.is_none());
        assert!(facts.comparisons[0].refused.is_some());
    }
}
