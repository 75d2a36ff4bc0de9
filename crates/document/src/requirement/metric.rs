//! What a requirement is about: the metrics as types. Their names, units and meanings are in
//! [`super::catalogue`].

use super::{Measured, NoData};
use crate::finding::{Finding, Severity};
use crate::unobserved::Unobserved;
use intact_ledger::Evidence;
use intact_ledger::{Failure, Phase};

/// One metric; families carry their parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metric {
    /// Requests and connections, which every document about traffic has.
    Traffic(TrafficMetric),
    /// Latency, setup included.
    Latency(Statistic),
    /// Latency without setup.
    WithoutSetup(Statistic),
    /// One phase, over the exchanges that had it.
    Phase(Phase, PhaseStatistic),
    /// Figures of a load.
    Load(LoadMetric),
    /// CPU time of the client for each exchange.
    CpuPerRequest,
    /// Latency saved against the baseline.
    Saved,
    /// The same as a share of the baseline.
    SavedShare,
    /// How long the server keeps an idle connection.
    IdleTimeout,
    /// How many requests the server takes on one connection.
    MaxRequests,
    /// The end of the server's process.
    Drain(DrainMetric),
    /// The idle limits along a path.
    Chain(ChainMetric),
    /// Invocations of a function.
    Invocation(InvocationMetric),
    /// What a program did when a kept connection failed.
    Fault(FaultMetric),
    /// Aspects in which connections are used otherwise than in production.
    Unlike,
    /// A count of findings.
    Findings(FindingSelector),
}

/// Requests and connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrafficMetric {
    /// `requests`
    Requests,
    /// `ok`
    Ok,
    /// `failed`
    Failed,
    /// `failed-share`
    FailedShare,
    /// `failed.<kind>`
    FailedWith(Failure),
    /// `stale`
    Stale,
    /// `status.<code>`
    Status(StatusSelector),
    /// `connections`
    Connections,
    /// `connections-failed`
    ConnectionsFailed,
    /// `needed`
    Needed,
    /// `avoidable`
    Avoidable,
    /// `reused`
    Reused,
    /// `reuse`
    Reuse,
    /// `requests-per-connection`
    RequestsPerConnection,
    /// `churn`
    Churn,
    /// `bytes-per-request`
    BytesPerRequest,
    /// `header-bytes-per-request`
    HeaderBytesPerRequest,
    /// `resumed-share`
    ResumedShare,
    /// `lookups`
    Lookups,
}

/// A statistic of a latency distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the statistics")]
pub enum Statistic {
    Mean,
    P50,
    P90,
    P99,
    P999,
    Max,
}

/// A statistic of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the statistics")]
pub enum PhaseStatistic {
    Mean,
    P50,
}

/// Figures that only a load has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadMetric {
    /// `throughput`
    Throughput,
    /// `typical`
    Typical,
    /// `client-delay`
    ClientDelay,
    /// `server-cpu-per-request`
    ServerCpuPerRequest,
    /// `schedule.achieved`
    Achieved,
    /// `schedule.error`
    SchedulingError,
    /// `schedule.queued`
    Queued,
    /// `capacity`
    Capacity,
    /// `recovery`
    Recovery,
    /// `throughput-gain`
    Gain,
}

/// Invocations of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvocationMetric {
    /// `invocations`
    Invocations,
    /// `invocations-failed`
    Failed,
    /// `connections-per-invocation`
    ConnectionsPerInvocation,
    /// `cold-start`
    ColdStart,
}

/// The end of a server's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainMetric {
    /// `drain.lost`
    Lost,
    /// `drain.refused`
    Refused,
    /// `drain.announced`
    Announced,
    /// `drain.time`
    Time,
}

/// The idle limits along a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainMetric {
    /// `chain.races`
    Races,
    /// `chain.lost`
    Lost,
}

/// What a program did when a kept connection failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultMetric {
    /// `hung`
    Hung,
    /// `duplicated`
    Duplicated,
    /// `recovered`
    Recovered,
    /// `truncated`
    Truncated,
    /// `leaked`
    Leaked,
    /// `struck`
    Struck,
}

/// Responses by their status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusSelector {
    /// One status, such as 503.
    Code(u16),
    /// A class by its first digit: 5 for `5xx`.
    Class(u8),
}

impl StatusSelector {
    /// Reads `503` or `5xx`.
    pub(super) fn read(text: &str) -> Option<Self> {
        match text.as_bytes() {
            [class @ b'1'..=b'5', b'x', b'x'] => Some(Self::Class(class - b'0')),
            [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'] => text.parse().ok().map(Self::Code),
            _ => None,
        }
    }

    /// Whether `status` is selected.
    pub fn selects(self, status: u16) -> bool {
        match self {
            Self::Code(code) => status == code,
            Self::Class(class) => status / 100 == u16::from(class),
        }
    }
}

/// Which findings are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingSelector {
    /// Those of any severity.
    All,
    /// Those of one rule, by its id.
    Rule(String),
    /// Those of one severity.
    Severity(Severity),
}

impl FindingSelector {
    /// How many of `findings` are counted; more may be in what was not observed. `needs`: the
    /// evidence that a rule needs.
    pub fn count<'a>(
        &self,
        findings: impl IntoIterator<Item = &'a Finding>,
        unobserved: &Unobserved,
        needs: fn(&str) -> &'static [Evidence],
    ) -> Result<Measured, NoData> {
        let selects = |one: &&Finding| match self {
            Self::All => true,
            Self::Rule(id) => id == one.rule,
            Self::Severity(wanted) => *wanted == one.severity,
        };
        let count = findings.into_iter().filter(selects).count();
        match self {
            Self::Rule(id) => unobserved.findings_of(needs(id), count),
            Self::All | Self::Severity(_) => Ok(unobserved.findings(count)),
        }
    }
}

impl Metric {
    /// The text after the dot, for the metrics of a family: `refused` in `failed.refused`.
    pub(super) fn parameter(&self) -> Option<String> {
        match self {
            Self::Traffic(TrafficMetric::FailedWith(kind)) => Some(kind.id().to_owned()),
            Self::Traffic(TrafficMetric::Status(StatusSelector::Code(code))) => {
                Some(code.to_string())
            }
            Self::Traffic(TrafficMetric::Status(StatusSelector::Class(class))) => {
                Some(format!("{class}xx"))
            }
            Self::Findings(FindingSelector::Rule(id)) => Some(id.clone()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_selects_its_hundred_and_a_code_itself() {
        let class = StatusSelector::read("5xx").unwrap();
        assert!(class.selects(500) && class.selects(599) && !class.selects(404));
        let code = StatusSelector::read("503").unwrap();
        assert!(code.selects(503) && !code.selects(500));
        for wrong in ["6xx", "099", "50", "5x", "5xxx", ""] {
            assert_eq!(StatusSelector::read(wrong), None, "{wrong}");
        }
    }
}
