//! Variants held against the first, round by round.

use super::variant::{VariantFacts, mean};
use crate::stats::{Confidence, Interval, paired_difference};
use serde::Serialize;

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

pub(super) fn compare(variants: &[VariantFacts]) -> Vec<Compared> {
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
