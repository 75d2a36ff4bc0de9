//! Many profiles of one server from one place, put together: what they agree in, and how far they
//! differ.
//!
//! A fold: of each profile only its figures are kept.

use intact_document::finding::Severity;
use intact_reading::Reading;
use intact_servers::check::CheckFacts;
use serde::Serialize;
use std::collections::BTreeMap;

/// Takes profiles, one after the other.
#[derive(Clone, Debug, Default)]
pub struct ProfileMerge {
    count: u64,
    answered: u64,
    kept: u64,
    not_kept: u64,
    requests: u64,
    failed: BTreeMap<&'static str, u64>,
    idle_s: Vec<f64>,
    idle_at_least_s: Vec<f64>,
    idle_announced_s: Vec<f64>,
    max_requests: Vec<f64>,
    max_requests_at_least: Vec<f64>,
    cold_ms: Vec<f64>,
    warm_ms: Vec<f64>,
    findings: BTreeMap<(std::cmp::Reverse<Severity>, &'static str), (u64, String)>,
    skipped: BTreeMap<(String, String), u64>,
}

/// What many profiles say together.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CardsFacts {
    /// Checks with a result.
    #[serde(rename = "cards")]
    pub profiles: u64,
    /// Those whose first request was answered.
    pub answered: u64,
    /// How the first request of the others failed, by kind.
    pub failed: BTreeMap<&'static str, u64>,
    /// Those that found connections kept alive.
    pub kept: u64,
    /// Those that found them closed after each response.
    pub not_kept: u64,
    /// Requests of all checks.
    pub requests: u64,
    /// How long an idle connection is kept, in seconds.
    pub idle_timeout_s: Option<Spread>,
    /// So long one stood where the limit was not reached, in seconds.
    pub idle_timeout_at_least_s: Option<Spread>,
    /// `Keep-Alive: timeout=`, in seconds.
    pub idle_timeout_announced_s: Option<Spread>,
    /// How many requests a connection takes.
    pub max_requests: Option<Spread>,
    /// Requests that it took without reaching the limit.
    pub max_requests_at_least: Option<Spread>,
    /// A request on a new connection, in milliseconds: of each profile the median.
    pub fresh_ms: Option<Spread>,
    /// A request on a connection that was open, in milliseconds: of each profile the median.
    pub reused_ms: Option<Spread>,
    /// What stands out, the worst first.
    pub findings: Vec<CommonFinding>,
    /// Probes that did not run, with the reason and the number of profiles.
    pub skipped: Vec<(String, String, u64)>,
}

/// A figure over the profiles that have it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The median; of an even count the upper one.
    pub median: f64,
    /// The largest.
    pub max: f64,
    /// How many profiles have it.
    #[serde(rename = "cards")]
    pub profiles: u64,
}

/// A finding of some profiles.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommonFinding {
    /// The rule's stable id.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// How many profiles have it.
    #[serde(rename = "cards")]
    pub profiles: u64,
    /// What one of them says.
    pub claim: String,
}

impl Spread {
    fn of(values: &[f64]) -> Option<Spread> {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        Some(Spread {
            min: *values.first()?,
            median: values[values.len() / 2],
            max: *values.last()?,
            profiles: values.len() as u64,
        })
    }
}

/// Adds what is known of a limit: its value, or the lower bound.
fn add(limit: &Reading, known: &mut Vec<f64>, at_least: &mut Vec<f64>) {
    match limit.value() {
        Some(value) => known.push(value),
        None => at_least.extend(Some(limit.low()).filter(|low| low.is_finite())),
    }
}

impl ProfileMerge {
    /// Takes a profile.
    pub fn add(&mut self, facts: &CheckFacts) {
        self.count += 1;
        self.requests += facts.counted.requests.total;
        self.answered += u64::from(facts.any_success());
        if let Some(kind) = facts.target.as_ref().and_then(|target| target.failed) {
            *self.failed.entry(kind).or_default() += 1;
        }
        match facts.keeps() {
            Some(true) => self.kept += 1,
            Some(false) => self.not_kept += 1,
            None => {}
        }
        if let Some(idle) = &facts.idle_timeout {
            add(
                &idle.measured_s,
                &mut self.idle_s,
                &mut self.idle_at_least_s,
            );
            self.idle_announced_s
                .extend(idle.announced_s.map(f64::from));
        }
        if let Some(max) = &facts.max_requests {
            let known = &mut self.max_requests;
            add(&max.measured, known, &mut self.max_requests_at_least);
        }
        let waterfall = &facts.phases_ms;
        self.cold_ms
            .extend(waterfall.cold("total").map(|few| few.median));
        self.warm_ms
            .extend(waterfall.warm("total").map(|few| few.median));
        for finding in &facts.findings {
            let key = (std::cmp::Reverse(finding.severity), finding.rule);
            let common = self.findings.entry(key);
            common.or_insert_with(|| (0, finding.claim.to_string())).0 += 1;
        }
        for skipped in &facts.skipped {
            let key = (skipped.probe.clone(), skipped.why.clone());
            *self.skipped.entry(key).or_default() += 1;
        }
    }

    /// What they say together.
    pub fn facts(&self) -> CardsFacts {
        CardsFacts {
            profiles: self.count,
            answered: self.answered,
            failed: self.failed.clone(),
            kept: self.kept,
            not_kept: self.not_kept,
            requests: self.requests,
            idle_timeout_s: Spread::of(&self.idle_s),
            idle_timeout_at_least_s: Spread::of(&self.idle_at_least_s),
            idle_timeout_announced_s: Spread::of(&self.idle_announced_s),
            max_requests: Spread::of(&self.max_requests),
            max_requests_at_least: Spread::of(&self.max_requests_at_least),
            fresh_ms: Spread::of(&self.cold_ms),
            reused_ms: Spread::of(&self.warm_ms),
            findings: self
                .findings
                .iter()
                .map(|(&(severity, rule), (profiles, claim))| CommonFinding {
                    rule,
                    severity: severity.0,
                    profiles: *profiles,
                    claim: claim.clone(),
                })
                .collect(),
            skipped: self
                .skipped
                .iter()
                .map(|((probe, why), &profiles)| (probe.clone(), why.clone(), profiles))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::server_profile::{IdleLimits, IdleWait, RequestLimit, ServerProfile};
    use intact_ledger::{Nanos, Protocol, Span, Tally};

    fn profile(answered: u32, idle_s: u64, ended: bool) -> CheckFacts {
        let ended = ended.then_some(intact_ledger::server_profile::Ended {
            by: None,
            how: intact_ledger::CloseKind::Fin,
            announced: false,
            unsolicited_status: None,
            error: None,
        });
        let profile = ServerProfile {
            requests: Some(RequestLimit {
                http: Protocol::Http11,
                answered,
                wanted: 110,
                announced: None,
                last_announced: answered < 110,
                ended: None,
                failed: None,
                lasted: None,
                rested: None,
            }),
            idle: Some(IdleLimits {
                http: Protocol::Http11,
                announced_s: Some(5),
                between: Some(IdleWait {
                    span: Span::new(Nanos(0), Nanos(idle_s * 1_000_000_000)),
                    ended,
                    next: None,
                }),
                samples: Vec::new(),
                before_first: None,
                answers_others: None,
            }),
            ..ServerProfile::default()
        };
        CheckFacts::of(&profile, &Tally::new(), &[])
    }

    #[test]
    fn limits_that_were_reached_stay_apart_from_lower_bounds() {
        let mut profiles = ProfileMerge::default();
        for facts in [
            profile(110, 5, true),
            profile(100, 7, true),
            profile(110, 90, false),
        ] {
            profiles.add(&facts);
        }
        let facts = profiles.facts();
        assert_eq!(facts.profiles, 3);
        let spread = |min, middle, max, profiles| {
            Some(Spread {
                min,
                median: middle,
                max,
                profiles,
            })
        };
        assert_eq!(facts.idle_timeout_s, spread(5.0, 7.0, 7.0, 2));
        assert_eq!(facts.idle_timeout_at_least_s, spread(90.0, 90.0, 90.0, 1));
        assert_eq!(facts.idle_timeout_announced_s, spread(5.0, 5.0, 5.0, 3));
        assert_eq!(facts.max_requests, spread(100.0, 100.0, 100.0, 1));
        assert_eq!(facts.max_requests_at_least, spread(110.0, 110.0, 110.0, 2));
        assert_eq!(facts.fresh_ms, None);
    }

    #[test]
    fn nothing_is_said_of_no_cards() {
        let facts = ProfileMerge::default().facts();
        assert_eq!((facts.profiles, facts.idle_timeout_s), (0, None));
    }
}
