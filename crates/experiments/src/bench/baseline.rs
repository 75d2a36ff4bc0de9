//! A stored bench compared with this one. Two runs at two times are no experiment: the change is
//! reported without an interval.

use super::BenchFacts;
use intact_document::{Claim, ClaimKind};
use intact_ledger::Run;
use intact_units::number::{signed_percent, time};
use serde::Serialize;

/// This run compared with an earlier one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Baseline {
    /// The earlier run's id.
    pub run: String,
    /// When it was started.
    pub started: String,
    /// Variants that both have, by name.
    pub variants: Vec<BaselineChange>,
    /// Variants that only one of them has.
    pub unmatched: Vec<String>,
}

/// One variant then and now.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BaselineChange {
    /// Its name.
    pub name: String,
    /// Typical latency then, in milliseconds.
    pub then_ms: Option<f64>,
    /// Typical latency now, in milliseconds.
    pub now_ms: Option<f64>,
    /// (now - then) / then.
    pub change: Option<f64>,
    /// Share of reused exchanges then.
    pub then_reuse: Option<f64>,
    /// Share of reused exchanges now.
    pub now_reuse: Option<f64>,
}

impl BenchFacts {
    /// Compares this run with an earlier one.
    pub fn compare_with_baseline(&mut self, then_run: &Run, then: &BenchFacts) {
        let baseline = Baseline::new(then_run, then, self);
        let claim = baseline.sentence();
        self.add_claims(claim.map(|sentence| Claim::new(ClaimKind::Time, 0.0, sentence)));
        self.baseline = Some(baseline);
    }
}

impl Baseline {
    /// The variant that changed most.
    fn sentence(&self) -> Option<String> {
        let changed = self
            .variants
            .iter()
            .filter_map(|one| Some((one, one.change?)));
        let (most, change) = changed.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
        Some(format!(
            "Compared with the earlier run, a typical request of {} takes {} instead of {} ({}); runs at two times are no experiment",
            most.name,
            time(most.now_ms?),
            time(most.then_ms?),
            signed_percent(change)
        ))
    }

    /// Compares `now` with `then`.
    fn new(then_run: &Run, then: &BenchFacts, now: &BenchFacts) -> Baseline {
        let mut variants = Vec::new();
        let mut unmatched = Vec::new();
        for ours in &now.variants {
            let Some(theirs) = then.variants.iter().find(|theirs| theirs.name == ours.name) else {
                unmatched.push(ours.name.clone());
                continue;
            };
            let (then_ms, now_ms) = (theirs.typical_ms.value(), ours.typical_ms.value());
            variants.push(BaselineChange {
                name: ours.name.clone(),
                then_ms,
                now_ms,
                change: then_ms
                    .zip(now_ms)
                    .filter(|(then, _)| *then > 0.0)
                    .map(|(then, now)| (now - then) / then),
                then_reuse: theirs.traffic.reuse.value(),
                now_reuse: ours.traffic.reuse.value(),
            });
        }
        let known = |name: &String| now.variants.iter().any(|ours| ours.name == *name);
        let gone = then.variants.iter().map(|theirs| theirs.name.clone());
        unmatched.extend(gone.filter(|name| !known(name)));
        Baseline {
            run: then_run.id.clone(),
            started: then_run.started.clone(),
            variants,
            unmatched,
        }
    }
}
