//! What a rate has to meet: requirements, separated by commas. Must not judge.

use intact_document::requirement::{DocumentKind, ParseError, Requirement, Unit};
use std::fmt;

/// Requests beyond a percentile that a step needs, so that the percentile has a value.
const BEYOND: f64 = 10.0;
/// Requests of a step whose conditions need no more.
const LEAST_REQUESTS: f64 = 50.0;

/// Figures of a bench that a step at one rate has not: they compare variants or need services, or
/// are of its rounds.
const OF_NO_STEP: [&str; 6] = [
    "resumed-share",
    "typical",
    "saved",
    "saved-share",
    "unlike",
    "throughput-gain",
];
/// Counts of findings, which a step has not either.
const OF_FINDINGS: [&str; 3] = ["findings", "warnings", "errors"];
/// Percentiles, and the share of the requests beyond each.
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.1), ("p99", 0.01), ("p999", 0.001)];

/// Why conditions cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConditionError {
    /// One of them is no requirement.
    #[error(transparent)]
    Requirement(#[from] ParseError),
    /// There is none.
    #[error("there is no condition; write 'p99 < 100ms, failed < 0.1 %'")]
    Empty,
    /// A condition selects variants.
    #[error("{0}: a condition holds for each variant; leave out the part before the colon")]
    Selector(String),
    /// A metric that a step does not have.
    #[error("{0}: a step at one rate has no such figure; use latency (p99), failed or status.5xx")]
    NotOfAStep(String),
}

/// The conditions that a rate has to meet, all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions(Vec<Requirement>);

impl Conditions {
    /// Reads `p99 < 100ms, failed < 0.1 %`.
    ///
    /// # Errors
    /// A part is no requirement, or one that cannot be asked of a step at one rate.
    pub fn read(text: &str) -> Result<Conditions, ConditionError> {
        let parts = text.split(',').map(str::trim).filter(|one| !one.is_empty());
        Conditions::of(parts)
    }

    /// The same of a list.
    ///
    /// # Errors
    /// As [`Conditions::read`].
    pub fn of<'a>(
        expressions: impl IntoIterator<Item = &'a str>,
    ) -> Result<Conditions, ConditionError> {
        let mut all = Vec::new();
        for expression in expressions {
            let one: Requirement = expression.parse()?;
            one.check_for(DocumentKind::Bench, |_| crate::bench::RULES.to_vec())?;
            if !one.selectors().is_empty() {
                return Err(ConditionError::Selector(one.to_string()));
            }
            let name = one.name();
            let is_of_findings = OF_FINDINGS.contains(&name) || name.starts_with("findings.");
            let is_of_a_step = !is_of_findings && !OF_NO_STEP.contains(&name);
            if !is_of_a_step {
                return Err(ConditionError::NotOfAStep(one.to_string()));
            }
            all.push(one);
        }
        match all.is_empty() {
            true => Err(ConditionError::Empty),
            false => Ok(Conditions(all)),
        }
    }

    /// The requirements.
    pub fn requirements(&self) -> &[Requirement] {
        &self.0
    }

    /// As expressions, which read back.
    pub fn expressions(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }

    /// Requests that a step needs, so that each condition can be decided.
    pub fn least_requests(&self) -> u64 {
        let needed = self.0.iter().map(|one| {
            let statistic = one.name();
            let statistic = statistic
                .strip_prefix("without-setup.")
                .unwrap_or(statistic);
            let percentile = PERCENTILES.iter().find(|(name, _)| *name == statistic);
            match percentile {
                Some((_, beyond)) => BEYOND / beyond,
                None if one.value().unit() == Unit::Percent => 1.0 / one.value().base().max(1e-5),
                None => LEAST_REQUESTS,
            }
        });
        needed.fold(LEAST_REQUESTS, f64::max).ceil() as u64
    }

    /// Whether a condition is about failed requests, so that none is assumed.
    pub(super) fn name_failures(&self) -> bool {
        self.0.iter().any(is_about_failures)
    }
}

/// Whether a condition is about failed requests.
pub(super) fn is_about_failures(condition: &Requirement) -> bool {
    let name = condition.name();
    matches!(name, "failed" | "failed-share" | "ok") || name.starts_with("failed.")
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expressions().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_requirements_between_commas() {
        let read = Conditions::read("p99 < 100ms, failed < 0.1 %").unwrap();
        assert_eq!(read.to_string(), "p99 < 100ms, failed-share < 0.1%");
        assert_eq!(read.least_requests(), 1_000);
        assert!(read.name_failures());
        let expressions = read.expressions();
        let again = Conditions::of(expressions.iter().map(String::as_str));
        assert_eq!(again.unwrap(), read);
        let tail = Conditions::read("p999 < 1s").unwrap();
        assert_eq!(
            (tail.least_requests(), tail.name_failures()),
            (10_000, false)
        );
        assert_eq!(Conditions::read("max < 1s").unwrap().least_requests(), 50);
    }

    #[test]
    fn what_no_step_can_meet_is_refused_with_the_remedy() {
        let error = |text: &str| Conditions::read(text).unwrap_err().to_string();
        assert!(error("").contains("p99 < 100ms"));
        assert!(error("keepalive=on: p99 < 1s").contains("before the colon"));
        assert!(error("saved > 1ms").contains("p99"));
        assert!(error("p99 < 100").contains("unit"));
        assert!(error("p98 < 100ms").contains("p98"));
    }
}
