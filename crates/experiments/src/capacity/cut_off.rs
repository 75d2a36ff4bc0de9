//! What the steps of a search show that ended before fresh runs confirmed a rate. Must not judge a
//! step.

use super::{CapacityInterval, StepFigures};
use intact_experiment::{Ceiling, StepOutcome};

/// What the steps of a search that ended early show: the highest rate that met the conditions below
/// all that missed them.
pub(super) fn so_far(steps: &[StepFigures]) -> Option<CapacityInterval> {
    // a limit of the client or its machine is no upper end, and says nothing of the rates above it
    let missed = steps
        .iter()
        .filter(|step| step.step_outcome() == StepOutcome::Missed);
    let high = missed.map(|step| step.rate_per_s).reduce(f64::min);
    let below = |rate: &f64| high.is_none_or(|high| *rate < high);
    let met = steps.iter().filter(|step| step.is_met());
    let low = met
        .map(|step| step.rate_per_s)
        .filter(below)
        .reduce(f64::max)?;
    Some(CapacityInterval { low, high })
}

/// What bounded the search from above, if it was not the server: the limit of the lowest step above
/// the rate that was found. Of several steps at one rate, one that the server missed comes first.
pub(super) fn limit(
    steps: &[StepFigures],
    found: Option<CapacityInterval>,
) -> Option<&'static str> {
    let above = |step: &&StepFigures| found.is_none_or(|found| step.rate_per_s > found.low);
    let unmet = steps.iter().filter(|step| !step.is_met()).filter(above);
    let other = |step: &StepFigures| step.step_outcome().other_limit();
    let lowest = unmet.min_by(|a, b| {
        let rates = a.rate_per_s.total_cmp(&b.rate_per_s);
        rates.then(other(a).is_some().cmp(&other(b).is_some()))
    })?;
    other(lowest).map(Ceiling::as_str)
}
