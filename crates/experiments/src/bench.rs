//! What a bench found out: figures of each variant, comparisons with intervals, sentences. From a
//! run's head, its tally and the first rows of each variant; the same for a live run and for a
//! stored ledger.

mod baseline;
mod caveats;
mod charts;
mod compare;
mod computed;
mod effects;
mod findings;
mod machine;
mod measured_latency;
mod measured_rounds;
mod open_loop;
mod populations;
mod ports;
mod remedies;
mod saturation;
mod service;
mod subjects;
mod targets;
mod variant;

pub use crate::time_difference::{TimeDifference, TimeStatistic};
pub use baseline::{Baseline, BaselineChange};
pub use charts::{Charts, LatencyPanel, Level, PerConnection, Sweep, SweepPoint};
pub use compare::compare;
pub use computed::{CacheShare, ModelBounds};
pub use effects::{Effect, EffectResult};
pub(crate) use findings::{failure_kinds, no_success_claim, not_2xx};
pub use intact_document::error_responses::ErrorResponses;
pub use intact_document::figures::{Latency, PhaseTime, TrafficCounts};
pub use intact_document::finding::{Finding, Severity};
pub use intact_document::first_calls::{FirstCallTier, FirstCallTiers, TierCause};
pub use machine::MachineFacts;
pub(crate) use machine::{SERVER_UNKNOWN, SHARED, explains};
pub(crate) use measured_latency::CLIENT_LATE;
pub use open_loop::OpenLoopFacts;
pub(crate) use populations::modes;
pub use ports::PortLimit;
pub use remedies::Acted;
pub use saturation::Saturation;
pub use service::{NOT_OBSERVED, OutgoingRound, SERVICE_ENDED, ServiceFacts};
pub(crate) use variant::no_success;
pub use variant::{
    BytesPerRequest, ClientDelay, FirstCall, Mode, RoundFigures, VariantFacts, Warmup,
};

use crate::likeness::{ConnectionBehaviour, Likeness};
use crate::traffic::{avoidable, of_client, sum};
use intact_document::traffic_readings::TrafficReadings;
use intact_document::unobserved::Unobserved;
use intact_document::{Claim, Claims};
use intact_experiment::AxisError;
use intact_ledger::{Caveat, Exchange, Host, Run, Sockets, Tally};
use serde::Serialize;

/// The ids of the findings that a bench can have.
pub const RULES: &[&str] = &[
    "bytes-after-response",
    "failed-requests",
    "not-2xx",
    "ports-running-out",
    "server-closes-early",
    "slower-when-reused",
];

/// Everything that a report of a bench lays out. Times are in milliseconds where the name says so.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BenchFacts {
    /// The machine of the client.
    pub environment: Environment,
    /// What failed, the comparison of typical latencies that matters most, and up to two more; or
    /// why nothing succeeded.
    pub verdict: Claims,
    /// What each setting saves, the largest share first; empty if each comparison has a sentence
    /// of `verdict`. In a run with remedies other than keep-alive: what each variant saves
    /// against the baseline.
    pub effects: Vec<Effect>,
    /// The variants that `effects` are compared with: a new connection per request, with a full
    /// handshake. Empty where `effects` are of single settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects_baseline: Vec<String>,
    /// What the model says of the first baseline: half the distance, and a cache whose entries are
    /// all fresh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelBounds>,
    /// The variants, in the run's order.
    pub variants: Vec<VariantFacts>,
    /// Variants that differ in one axis.
    pub comparisons: Vec<TimeDifference>,
    /// What stands out.
    pub findings: Vec<Finding>,
    /// What limits the figures.
    pub caveats: Vec<Caveat>,
    /// Requests and connections of the whole run, measured ones.
    #[serde(flatten)]
    pub traffic: TrafficReadings,
    /// What was counted of them, whatever is missing.
    #[serde(skip)]
    pub counted: TrafficCounts,
    /// The machine's sockets before and after.
    pub sockets: Vec<Sockets>,
    /// The client's ephemeral ports, and when they run out; absent where they are not known.
    pub ports: Option<PortLimit>,
    /// Rounds that every variant has completed.
    pub rounds: u32,
    /// An earlier run, where one was named.
    pub baseline: Option<Baseline>,
    /// How the variants use connections, compared with production, where its ledger was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<Likeness>,
    /// What services of the person's own did while they were benched (`--service`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceFacts>,
    /// Responses with an error status that the user did not name.
    #[serde(skip)]
    pub errors: ErrorResponses,
}

/// The machine of a bench.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Environment {
    #[serde(flatten)]
    host: Host,
    /// Its sockets before and after.
    sockets: Vec<Sockets>,
}

/// The share of failed requests of a variant from which on they are the headline.
const MANY_FAILED: f64 = 0.1;

fn many_failed(variants: &[VariantFacts], all: &TrafficCounts) -> Option<f64> {
    let share = |counts: &TrafficCounts| {
        let requests = &counts.requests;
        requests.failures() as f64 / requests.total.max(1) as f64
    };
    let mut variants = variants.iter();
    let is_any = variants.any(|variant| share(&variant.counted) >= MANY_FAILED);
    is_any.then(|| share(all))
}

impl BenchFacts {
    /// Computes the facts. `first` holds the first exchanges of the variants, in the order in which
    /// they ended. An axis of a variant that cannot be read is an error: a default in its place
    /// would hide a damaged ledger.
    pub fn new(run: &Run, tally: &Tally, first: &[Exchange]) -> Result<BenchFacts, AxisError> {
        let variants = run
            .variants
            .iter()
            .enumerate()
            .map(|(index, variant)| {
                let index = index as u32;
                let calls = first.iter().filter(|one| one.variant == Some(index));
                VariantFacts::new(index, variant, tally, calls, run.expect)
            })
            .collect::<Result<Vec<VariantFacts>, AxisError>>()?;
        let comparisons = compare(run, &variants);
        let effects = effects::effects(run, &variants, &comparisons);
        let effects_baseline = remedies::baselines(run)
            .into_iter()
            .map(|index| variants[index].name.clone())
            .collect();
        let counted = sum(variants.iter().map(|one| &one.counted));
        let rounds = variants
            .iter()
            .filter(|variant| !variant.rounds.is_empty())
            .map(|variant| variant.rounds.len() as u32)
            .min()
            .unwrap_or(0);
        let mut caveats = tally.caveats.clone();
        // the table has what fresh entries save
        let is_computed = effects.iter().any(|one| one.computed.is_some());
        caveats.retain(|one| !is_computed || one.id != "cache-fresh");
        caveats.extend(caveats::caveats(&variants, rounds));
        let errors = ErrorResponses::among(&counted.requests.status, run.expect);
        let nothing = no_success_claim(&counted, &errors, tally, first);
        let verdict = nothing.map_or_else(
            || {
                // the table of effects has the others
                let most = if effects.is_empty() { usize::MAX } else { 1 };
                let compared = compare::claims(run, &variants, &comparisons, rounds, most);
                let failed = findings::many_failed(&variants, &counted).into_iter();
                let failed = failed.chain(findings::failed_lookups(&variants));
                let errors = findings::errors_in(&variants, &errors);
                Claims::ranked(failed.chain(errors).chain(compared))
            },
            |nothing| Claims::ranked([nothing]),
        );
        let mut facts = BenchFacts {
            environment: Environment {
                host: run.host.clone(),
                sockets: tally.sockets.clone(),
            },
            verdict,
            effects,
            effects_baseline,
            model: computed::bounds(run, &variants),
            findings: findings::findings(&variants, run, tally),
            errors,
            variants,
            comparisons,
            caveats,
            traffic: TrafficReadings::default(),
            counted,
            sockets: tally.sockets.clone(),
            ports: PortLimit::of(run),
            rounds,
            baseline: None,
            like: None,
            services: Vec::new(),
        };
        facts.read();
        Ok(facts)
    }

    /// Adds what limits the figures, which may make bounds of them.
    pub fn add_caveats(&mut self, caveats: impl IntoIterator<Item = Caveat>) {
        self.caveats.extend(caveats);
        self.read();
    }

    /// Makes the readings: of what was counted, without what the caveats report as missing.
    fn read(&mut self) {
        let missing = Unobserved::by_caveats(&self.caveats);
        self.variants.iter_mut().for_each(|one| one.read(&missing));
        let variants = || self.variants.iter();
        let avoidable = variants().map(|one| avoidable(&one.counted)).sum();
        let unsent = variants().map(VariantFacts::unsent).sum();
        self.traffic = of_client(&self.counted, avoidable, unsent, &missing);
        if !self.is_measured() {
            self.traffic = self.traffic.unmeasured(&variant::NO_ROUND);
        }
        for variant in &self.variants {
            self.traffic.add_failures(&variant.warmup.failed);
        }
    }

    /// Whether any round was measured: else all that was sent was the preflight.
    pub fn is_measured(&self) -> bool {
        self.variants.iter().any(|one| !one.rounds.is_empty())
    }

    /// Compares how the variants use connections with production.
    pub fn compare_with_production(&mut self, production: ConnectionBehaviour) {
        let tests = self.variants.iter().map(VariantFacts::behaviour);
        let like = Likeness::new(production, tests.collect());
        self.add_claims(like.claims());
        self.like = Some(like);
    }

    fn add_claims(&mut self, claims: impl IntoIterator<Item = Claim>) {
        self.verdict = self.verdict.clone().with(claims);
    }

    /// The share of the requests that failed, where it is so large that the latency of the others
    /// is no headline.
    pub fn many_failed(&self) -> Option<f64> {
        many_failed(&self.variants, &self.counted)
    }

    /// The comparison that the first verdict is about.
    pub fn headline(&self) -> Option<&TimeDifference> {
        compare::by_weight(&self.variants, &self.comparisons)
            .first()
            .copied()
    }

    /// Whether the first verdict's comparison is one of keep-alive that no request used.
    pub fn headline_is_without_reuse(&self) -> bool {
        let headline = self.headline();
        headline.is_some_and(|one| compare::without_reuse(one, &self.variants).is_some())
    }

    /// Whether the first verdict's comparison shows the opposite by the mean.
    pub fn headline_is_contradicted(&self) -> bool {
        let headline = self.headline();
        headline.is_some_and(|one| compare::opposite_mean(one, &self.comparisons).is_some())
    }
}
