//! What each setting of a bench saves per request, ordered by effect: the verdict of a run with
//! many variants. Must not compare.

use super::compare::{
    by_weight, did_not_act, is_about_load, keep_widest_loads, other_settings, setting,
    without_reuse,
};
use super::computed::{self, CacheShare};
use super::remedies::{self, Acted};
use super::variant::VariantFacts;
use crate::time_difference::TimeDifference;
use intact_ledger::Run;
use intact_statistics::Interval;
use serde::Serialize;
use std::collections::BTreeMap;

/// Comparisons that have a sentence each. More are in the table.
const SENTENCES: usize = 3;

/// What one setting saves per request where the other settings are the same.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Effect {
    /// The setting, such as `keep-alive` or `http=2 instead of 1.1`; of a remedy what it has that
    /// the baseline has not, such as `keep-alive + HTTP/2`.
    pub setting: String,
    /// The other settings, such as `-c 10 http=2`.
    pub at: String,
    /// What the reference of a remedy has that the baseline has not, such as `HTTP/2` for gRPC;
    /// absent where the reference is the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
    /// Whether a saving was shown.
    pub result: EffectResult,
    /// Typical latency without the setting, or of the baseline, in milliseconds; the mean of the
    /// rounds.
    pub reference_ms: f64,
    /// What the setting saves, in milliseconds; negative if it costs.
    pub saved_ms: f64,
    /// The 95 % interval of `saved_ms`. Absent with fewer than 8 rounds.
    pub interval_ms: Option<Interval>,
    /// `saved_ms` as a share of `reference_ms`.
    pub saved_share: Option<Interval>,
    /// The risk of each remedy of the setting; empty where settings are compared, and not remedies
    /// with a baseline.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub risks: BTreeMap<&'static str, &'static str>,
    /// How often each remedy of the setting acted; remedies that nothing counts are missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub acted: Vec<Acted>,
    /// How the saving was computed; absent where it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computed: Option<CacheShare>,
    /// What a remedy was to do, and never did in this run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inactive: Vec<&'static str>,
}

/// Whether a setting was shown to save time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EffectResult {
    /// It saves time.
    Saves,
    /// It costs time.
    Costs,
    /// Fewer than 8 rounds, or rounds that vary too much for an interval.
    NoInterval,
    /// It was computed, not measured.
    Computed,
    /// The rounds show no difference.
    NotShown,
    /// No request reused a connection, so that keep-alive could not act.
    NothingReused,
    /// It never acted, as early data that no server accepted.
    NothingActed,
}

/// The effects of more comparisons than have a sentence: those that were shown first, the largest
/// share first.
pub(super) fn effects(
    run: &Run,
    variants: &[VariantFacts],
    comparisons: &[TimeDifference],
) -> Vec<Effect> {
    let mut compared = by_weight(variants, comparisons);
    let mut of_remedies = remedies::effects(run, variants, comparisons);
    if !of_remedies.is_empty() {
        of_remedies.extend(computed::fresh_entries(run, variants));
        return order(of_remedies);
    }
    keep_widest_loads(variants, &mut compared);
    let has_sentences_only = compared.len() <= SENTENCES;
    // the number of connections is a load, no setting to choose
    compared.retain(|one| !is_about_load(one));
    if has_sentences_only {
        return Vec::new();
    }
    let compared = compared.into_iter();
    order(compared.map(|one| effect(run, variants, one)).collect())
}

/// Those that were shown first, the largest share first.
fn order(mut effects: Vec<Effect>) -> Vec<Effect> {
    let share = |one: &Effect| one.saved_ms / one.reference_ms;
    effects.sort_by(|a, b| {
        let by_result = a.result.cmp(&b.result);
        by_result.then_with(|| match a.result {
            EffectResult::NotShown | EffectResult::NothingReused | EffectResult::NothingActed => {
                a.setting.cmp(&b.setting)
            }
            _ => share(b).abs().total_cmp(&share(a).abs()),
        })
    });
    effects
}

fn effect(run: &Run, variants: &[VariantFacts], one: &TimeDifference) -> Effect {
    let of_b = one.indices.1;
    let axis = one.axis.as_deref().unwrap_or_default();
    let concurrency = format!("-c {}", variants[of_b].concurrency);
    let mut at = other_settings(run, of_b, axis);
    at.insert(0, concurrency);
    let result = match without_reuse(one, variants) {
        Some(_) => EffectResult::NothingReused,
        None if did_not_act(one, variants).is_some() => EffectResult::NothingActed,
        None => EffectResult::of(one),
    };
    Effect {
        at: at.join(" "),
        ..Effect::new(setting(run, variants, one), result, one)
    }
}

/// The result of a variant that is compared with the baseline.
pub(super) fn result_of(one: &TimeDifference, variant: &VariantFacts) -> EffectResult {
    match variant.keepalive && variant.counted.requests.ok > 0 && variant.counted.reused == 0 {
        true => EffectResult::NothingReused,
        false => EffectResult::of(one),
    }
}

impl EffectResult {
    fn of(one: &TimeDifference) -> EffectResult {
        match one.significant {
            None => EffectResult::NoInterval,
            Some(false) => EffectResult::NotShown,
            Some(true) if one.a_ms >= one.b_ms => EffectResult::Saves,
            Some(true) => EffectResult::Costs,
        }
    }
}

impl Effect {
    /// The effect of a setting by its comparison.
    pub(super) fn new(setting: String, result: EffectResult, one: &TimeDifference) -> Effect {
        Effect {
            setting,
            at: String::new(),
            with: None,
            result,
            reference_ms: one.a_ms,
            saved_ms: one.a_ms - one.b_ms,
            interval_ms: one.saved_ms,
            saved_share: one.saved_share,
            risks: BTreeMap::new(),
            acted: Vec::new(),
            computed: None,
            inactive: Vec::new(),
        }
    }
}
