//! What a run with remedies shows of remedies that it does not measure.
//!
//! A fresh cache entry costs no request. So it saves what a request costs, times the share of the
//! requests that find one. The model has the bounds of distance and caching. Must not compare
//! variants.

use super::effects::{Effect, EffectResult};
use super::remedies::{baselines, load_of};
use super::variant::VariantFacts;
use intact_document::figures::PhaseTimes;
use intact_ledger::{Phase, Run};
use intact_model::{Counting, MeasuredCall, Remedy, Reuse, Tls, WhatIf, predict, what_if};
use intact_statistics::{Interval, typical_difference};
use serde::Serialize;
use std::collections::BTreeMap;

/// The share of the requests that find a fresh entry.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CacheShare {
    /// The share.
    pub share: f64,
    /// How long the server lets a cache use its response without a request, in seconds: the least
    /// `max-age` of a stored response.
    pub max_age_s: u64,
    /// Requests a second for this URL: of an open loop the measured rate, else that of the
    /// baseline, which is an assumption; absent where entries are fetched ahead, so that each
    /// request is assumed to find one.
    pub requests_per_s: Option<f64>,
    /// Whether `requests_per_s` is the rate of an open loop.
    pub rate_is_measured: bool,
}

/// The savings of the model for the baseline, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelBounds {
    /// The variant.
    pub variant: String,
    /// Its round-trip time: the mean of the transport handshakes.
    pub rtt_ms: f64,
    /// Its predicted mean latency.
    pub predicted_ms: f64,
    /// Its measured mean latency.
    pub measured_ms: f64,
    /// Half the distance, and a cache whose entries are all fresh.
    pub what_if: Vec<WhatIf>,
}

const RISK: (&str, &str) = (
    "fresh cache entries",
    "a change is visible only when the entry is stale; only for responses that may be stored",
);
const RISK_AHEAD: (&str, &str) = (
    "pre-fetching",
    "the server gets requests whose response no one wants; an entry is up to its max-age old",
);

/// What fresh cache entries save against the baseline of each load, and entries that are fetched
/// before they are stale. Nothing where no variant has a cache.
pub(super) fn fresh_entries(run: &Run, variants: &[VariantFacts]) -> Vec<Effect> {
    let of_baseline = |base: usize| {
        let variant = &variants[base];
        let at = load_of(run, base);
        let mut caches = variants.iter().enumerate().filter(|(index, one)| {
            one.not_modified.is_some() && load_of(run, *index) == at && !one.rounds.is_empty()
        });
        let (_, cache) = caches.next()?;
        let rounds = variant.rounds.iter();
        let rounds: Vec<f64> = rounds.filter_map(|round| round.typical_ms).collect();
        let cost = variant.typical_ms.value()?;
        let nothing = vec![0.0; rounds.len()];
        let interval = typical_difference(&rounds, &nothing).ok();
        let effect = Effect {
            setting: RISK.0.to_owned(),
            at,
            with: None,
            result: EffectResult::NothingActed,
            reference_ms: cost,
            saved_ms: 0.0,
            interval_ms: None,
            saved_share: None,
            risks: BTreeMap::from([RISK]),
            acted: Vec::new(),
            computed: None,
            inactive: Vec::new(),
        };
        let Some(max_age_s) = cache.fresh_for_s else {
            let inactive = vec!["no response had a max-age"];
            return Some(vec![Effect { inactive, ..effect }]);
        };
        let rate = variant.rate_per_s.value()?;
        // one request in a lifetime and the requests in it
        let hits = rate * max_age_s as f64;
        let share = hits / (1.0 + hits);
        let of = |share: f64, requests_per_s, (name, risk): (&'static str, &'static str)| Effect {
            setting: name.to_owned(),
            result: EffectResult::Computed,
            saved_ms: cost * share,
            interval_ms: interval.map(|one| one.interval().map(|ms| ms * share)),
            saved_share: Some(Interval {
                value: share,
                low: share,
                high: share,
            }),
            risks: BTreeMap::from([(name, risk)]),
            computed: Some(CacheShare {
                share,
                max_age_s,
                requests_per_s,
                rate_is_measured: requests_per_s.is_some() && variant.open_loop.is_some(),
            }),
            ..effect.clone()
        };
        Some(vec![of(share, Some(rate), RISK), of(1.0, None, RISK_AHEAD)])
    };
    let all = baselines(run).into_iter().filter_map(of_baseline);
    all.flatten().collect()
}

/// The bounds for the first baseline; absent where its round trip or its time is not known.
pub(super) fn bounds(run: &Run, variants: &[VariantFacts]) -> Option<ModelBounds> {
    let variant = &variants[*baselines(run).first()?];
    let mean = |phases: &PhaseTimes, phase: Phase| {
        let time = phases.get(phase.id())?.as_ref()?;
        time.mean.value()
    };
    let mean = |phase| mean(&variant.phases_ms, phase);
    let rtt_ms = mean(Phase::Connect)?;
    let tls = match variant.tls.as_deref() {
        None => Tls::None,
        Some("1.2") => Tls::Tls12,
        Some(_) => Tls::Tls13,
    };
    let call = MeasuredCall {
        dns_ms: mean(Phase::Dns),
        rtt_ms,
        ssl_ms: mean(Phase::Ssl),
        without_setup_ms: variant.latency_without_setup_ms.mean.value()?,
        tls,
        reuse: 0.0,
    };
    let chain = call.chain();
    let mut what_if = what_if(&chain, Counting::Tcp);
    what_if.retain(|one| matches!(one.remedy, Remedy::HalveDistance | Remedy::CacheResponses));
    Some(ModelBounds {
        variant: variant.name.clone(),
        rtt_ms,
        predicted_ms: predict(&chain, Counting::Tcp, Reuse::Configured).total_ms,
        measured_ms: variant.latency_ms.mean.value()?,
        what_if,
    })
}
