//! The names, units and meanings of metrics and selectors, as data: help, documentation and error
//! messages come from these tables.

use super::Dimension;
use super::metric::{
    ChainMetric, DrainMetric, FaultMetric, FindingSelector, InvocationMetric, LoadMetric, Metric,
    PhaseStatistic, Statistic, StatusSelector, TrafficMetric,
};
use crate::finding::Severity;
use intact_ledger::{Failure, FaultKind, Phase};

/// The documents that a requirement can be checked against, one per command that measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Document {
    /// `intact check`
    Check,
    /// `intact check --chain`
    Chain,
    /// `intact bench`
    Bench,
    /// `intact bench --scenario`
    Scenario,
    /// `intact bench --find-max`
    Capacity,
    /// `intact watch`
    Watch,
    /// `intact watch --fault`
    Fault,
    /// `intact compare`
    Compare,
    /// `intact audit`
    Audit,
    /// `intact lambda`
    Lambda,
    /// `intact fleet`
    Fleet,
}

impl Document {
    /// Every document.
    pub const ALL: &[Document] = &[
        Check, Chain, Bench, Scenario, Capacity, Watch, Fault, Compare, Audit, Lambda, Fleet,
    ];

    /// The command that makes it.
    pub fn command(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Chain => "check --chain",
            Self::Bench => "bench",
            Self::Scenario => "bench --scenario",
            Self::Capacity => "bench --find-max",
            Self::Watch => "watch",
            Self::Fault => "watch --fault",
            Self::Compare => "compare",
            Self::Audit => "audit",
            Self::Lambda => "lambda",
            Self::Fleet => "fleet",
        }
    }
}

/// What follows the dot in a metric that is a family, such as `failed.<kind>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// The id of a kind of failure ([`intact_ledger::Failure`]).
    Kind,
    /// A status code such as 503, or a class such as 5xx.
    Status,
    /// The id of a rule that a document applies.
    Rule,
}

impl Parameter {
    /// The metric of the family for the text after the dot.
    fn metric(self, text: &str) -> Option<Metric> {
        match self {
            Self::Kind => Failure::ALL
                .iter()
                .find(|kind| kind.id() == text)
                .map(|kind| Metric::Traffic(TrafficMetric::FailedWith(*kind))),
            Self::Status => StatusSelector::read(text)
                .map(|status| Metric::Traffic(TrafficMetric::Status(status))),
            // which rules there are, the document says
            Self::Rule => {
                is_rule_id(text).then(|| Metric::Findings(FindingSelector::Rule(text.to_owned())))
            }
        }
    }
}

/// Whether this can be the id of a rule.
fn is_rule_id(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(is_part)
}

/// What a row of the catalogue names.
#[derive(Debug, PartialEq, Eq)]
pub enum MetricKey {
    /// One metric.
    One(Metric),
    /// All metrics of a family; the parameter follows the dot.
    Family(Parameter),
}

/// One row of the catalogue.
#[derive(Debug, PartialEq, Eq)]
pub struct MetricEntry {
    /// Its name; a family ends in its parameter: `failed.<kind>`.
    pub name: &'static str,
    /// The metric, or the family.
    pub key: MetricKey,
    /// What it is measured in.
    pub dimension: Dimension,
    /// The documents that have it.
    pub documents: &'static [Document],
    /// What it means, in one line.
    pub meaning: &'static str,
    /// Variants (selector, value) that fix it by what they are, so that an unscoped requirement
    /// leaves them out.
    pub fixed_by: &'static [(&'static str, &'static str)],
}

impl MetricEntry {
    /// The name without its parameter: `failed.` for `failed.<kind>`.
    pub fn stem(&self) -> &'static str {
        self.name.split('<').next().unwrap_or(self.name)
    }

    /// The metric that `name` is in this row, if it is one.
    pub(super) fn metric(&self, name: &str) -> Option<Metric> {
        match &self.key {
            One(metric) => (self.name == name).then(|| metric.clone()),
            Family(parameter) => parameter.metric(name.strip_prefix(self.stem())?),
        }
    }

    const fn fixed_by(mut self, fixed_by: &'static [(&'static str, &'static str)]) -> Self {
        self.fixed_by = fixed_by;
        self
    }
}

/// One key that subjects are selected by.
#[derive(Debug, PartialEq, Eq)]
pub struct SelectorEntry {
    /// The key, as the option of `bench` is called where there is one.
    pub key: &'static str,
    /// The documents whose subjects have it.
    pub documents: &'static [Document],
    /// What it selects, in one line.
    pub meaning: &'static str,
    /// The values that there are, where they are fixed: such a selector is written `key` (any) or
    /// `key.value`.
    pub values: &'static [&'static str],
}

impl SelectorEntry {
    const fn of(key: &'static str, documents: &'static [Document], meaning: &'static str) -> Self {
        Self {
            key,
            documents,
            meaning,
            values: &[],
        }
    }
}

use Dimension::{Bytes, Count, Rate, Ratio, Share, Time};
use Document::{
    Audit, Bench, Capacity, Chain, Check, Compare, Fault, Fleet, Lambda, Scenario, Watch,
};
use MetricKey::{Family, One};

const ALL: &[Document] = Document::ALL;
const TRAFFIC: &[Document] = &[Bench, Scenario, Watch, Compare, Audit, Lambda, Fleet];
/// What `compare` does not have: it compares runs, and keeps no latencies of requests.
const REQUESTS: &[Document] = &[Bench, Scenario, Watch, Audit, Lambda, Fleet];
const VERSIONS: &[Document] = &[Bench, Watch, Audit, Lambda, Fleet];
const HOSTS: &[Document] = &[Check, Bench, Watch, Fault, Audit, Lambda, Fleet];
const FAILURES: &[Document] = &[Bench, Scenario, Watch, Fault, Compare, Audit, Lambda, Fleet];
const FAULTS: &[Document] = &[Fault];
const LOAD: &[Document] = &[Bench, Lambda, Fleet];
const LOADS: &[Document] = &[Bench, Scenario, Lambda, Fleet];
const SCHEDULED: &[Document] = &[Bench, Scenario];
const VARIANTS: &[Document] = &[Bench, Capacity, Compare, Lambda, Fleet];
const PACED: &[Document] = &[Bench, Capacity, Lambda, Fleet];
const CARDS: &[Document] = &[Check, Fleet];
const EXPERIMENTS: &[Document] = &[Bench, Compare, Lambda, Fleet];
const NO_REUSE: &[(&str, &str)] = &[("keepalive", "off")];
const NO_RESUMPTION: &[(&str, &str)] = &[("resume", "off"), ("tls", "none")];

const fn row(
    name: &'static str,
    key: MetricKey,
    dimension: Dimension,
    documents: &'static [Document],
    meaning: &'static str,
) -> MetricEntry {
    MetricEntry {
        name,
        key,
        dimension,
        documents,
        meaning,
        fixed_by: &[],
    }
}

const fn traffic(metric: TrafficMetric) -> MetricKey {
    One(Metric::Traffic(metric))
}

const fn latency(statistic: Statistic) -> MetricKey {
    One(Metric::Latency(statistic))
}

const fn without_setup(statistic: Statistic) -> MetricKey {
    One(Metric::WithoutSetup(statistic))
}

const fn phase(phase: Phase, statistic: PhaseStatistic) -> MetricKey {
    One(Metric::Phase(phase, statistic))
}

const fn load(metric: LoadMetric) -> MetricKey {
    One(Metric::Load(metric))
}

const fn drain(metric: DrainMetric) -> MetricKey {
    One(Metric::Drain(metric))
}

const fn chain(metric: ChainMetric) -> MetricKey {
    One(Metric::Chain(metric))
}

const fn invocation(metric: InvocationMetric) -> MetricKey {
    One(Metric::Invocation(metric))
}

const fn fault(metric: FaultMetric) -> MetricKey {
    One(Metric::Fault(metric))
}

const fn findings(selector: FindingSelector) -> MetricKey {
    One(Metric::Findings(selector))
}

/// Every metric, in the order in which help lists them.
#[rustfmt::skip] // a table is read by its rows
pub static METRICS: &[MetricEntry] = &[
    row("requests", traffic(TrafficMetric::Requests), Count, TRAFFIC, "exchanges of any outcome"),
    row("ok", traffic(TrafficMetric::Ok), Count, TRAFFIC, "exchanges with a complete response of any status"),
    row("failed", traffic(TrafficMetric::Failed), Count, FAILURES, "exchanges without a complete response, and failed lookups; in `bench` warm-up too; under a fault, requests without a complete response in the end"),
    row("failed-share", traffic(TrafficMetric::FailedShare), Share, TRAFFIC, "failed exchanges as a share of all; `failed < 0.1 %` is read as this"),
    row("failed.<kind>", Family(Parameter::Kind), Count, TRAFFIC, "exchanges with this kind of failure"),
    row("status.<code>", Family(Parameter::Status), Count, TRAFFIC, "responses with this status, or of this class"),
    row("connections", traffic(TrafficMetric::Connections), Count, TRAFFIC, "connections opened").fixed_by(NO_REUSE),
    row("connections-failed", traffic(TrafficMetric::ConnectionsFailed), Count, TRAFFIC, "connections that could not be opened"),
    row("needed", traffic(TrafficMetric::Needed), Count, TRAFFIC, "connections that the peak overlap of exchanges needs"),
    row("avoidable", traffic(TrafficMetric::Avoidable), Count, TRAFFIC, "connections opened beyond those needed").fixed_by(NO_REUSE),
    row("reused", traffic(TrafficMetric::Reused), Count, TRAFFIC, "exchanges on a connection that was already open").fixed_by(NO_REUSE),
    row("reuse", traffic(TrafficMetric::Reuse), Share, TRAFFIC, "reused exchanges as a share of all; `reused > 80 %` is read as this").fixed_by(NO_REUSE),
    row("requests-per-connection", traffic(TrafficMetric::RequestsPerConnection), Ratio, TRAFFIC, "exchanges for each connection opened").fixed_by(NO_REUSE),
    row("throughput", load(LoadMetric::Throughput), Rate, LOADS, "exchanges completed per second"),
    row("churn", traffic(TrafficMetric::Churn), Rate, REQUESTS, "connections opened per second").fixed_by(NO_REUSE),
    row("typical", load(LoadMetric::Typical), Time, &[Bench], "typical latency, by which variants are compared: medians of fresh and reused exchanges of a round, weighted; mean of the rounds"),
    row("mean", latency(Statistic::Mean), Time, REQUESTS, "mean latency, setup included; unknown if a request timed out"),
    row("p50", latency(Statistic::P50), Time, REQUESTS, "median latency, setup included; a request that timed out is longer than all others"),
    row("p90", latency(Statistic::P90), Time, REQUESTS, "90th percentile of the latency, setup included; a request that timed out is longer than all others"),
    row("p99", latency(Statistic::P99), Time, REQUESTS, "99th percentile of the latency, setup included; a request that timed out is longer than all others"),
    row("p999", latency(Statistic::P999), Time, REQUESTS, "99.9th percentile of the latency, setup included; a request that timed out is longer than all others"),
    row("max", latency(Statistic::Max), Time, REQUESTS, "longest latency, setup included; unknown if a request timed out"),
    row("without-setup.mean", without_setup(Statistic::Mean), Time, REQUESTS, "mean latency without setup"),
    row("without-setup.p50", without_setup(Statistic::P50), Time, REQUESTS, "median latency without setup"),
    row("without-setup.p90", without_setup(Statistic::P90), Time, REQUESTS, "90th percentile of the latency without setup"),
    row("without-setup.p99", without_setup(Statistic::P99), Time, REQUESTS, "99th percentile of the latency without setup"),
    row("without-setup.p999", without_setup(Statistic::P999), Time, REQUESTS, "99.9th percentile of the latency without setup"),
    row("without-setup.max", without_setup(Statistic::Max), Time, REQUESTS, "longest latency without setup"),
    row("dns.mean", phase(Phase::Dns, PhaseStatistic::Mean), Time, REQUESTS, "mean time of the lookup, where there was one"),
    row("dns.p50", phase(Phase::Dns, PhaseStatistic::P50), Time, REQUESTS, "median time of the lookup, where there was one"),
    row("connect.mean", phase(Phase::Connect, PhaseStatistic::Mean), Time, REQUESTS, "mean time to open TCP or QUIC, where it was opened"),
    row("connect.p50", phase(Phase::Connect, PhaseStatistic::P50), Time, REQUESTS, "median time to open TCP or QUIC, where it was opened"),
    row("ssl.mean", phase(Phase::Ssl, PhaseStatistic::Mean), Time, REQUESTS, "mean time of the TLS handshake, where there was one"),
    row("ssl.p50", phase(Phase::Ssl, PhaseStatistic::P50), Time, REQUESTS, "median time of the TLS handshake, where there was one"),
    row("blocked.mean", phase(Phase::Blocked, PhaseStatistic::Mean), Time, REQUESTS, "mean wait for a free connection"),
    row("blocked.p50", phase(Phase::Blocked, PhaseStatistic::P50), Time, REQUESTS, "median wait for a free connection"),
    row("send.mean", phase(Phase::Send, PhaseStatistic::Mean), Time, REQUESTS, "mean time to send the request"),
    row("send.p50", phase(Phase::Send, PhaseStatistic::P50), Time, REQUESTS, "median time to send the request"),
    row("wait.mean", phase(Phase::Wait, PhaseStatistic::Mean), Time, REQUESTS, "mean time from the request to the first byte"),
    row("wait.p50", phase(Phase::Wait, PhaseStatistic::P50), Time, REQUESTS, "median time from the request to the first byte"),
    row("headers-to-body.mean", phase(Phase::HeadersToBody, PhaseStatistic::Mean), Time, REQUESTS, "mean gap between headers and body"),
    row("headers-to-body.p50", phase(Phase::HeadersToBody, PhaseStatistic::P50), Time, REQUESTS, "median gap between headers and body"),
    row("receive.mean", phase(Phase::Receive, PhaseStatistic::Mean), Time, REQUESTS, "mean time to receive the body"),
    row("receive.p50", phase(Phase::Receive, PhaseStatistic::P50), Time, REQUESTS, "median time to receive the body"),
    row("client-delay", load(LoadMetric::ClientDelay), Share, LOAD, "time that responses waited in the client, as a share of the latency"),
    row("cpu-per-request", One(Metric::CpuPerRequest), Time, EXPERIMENTS, "CPU time of the client for each exchange"),
    row("server-cpu-per-request", load(LoadMetric::ServerCpuPerRequest), Time, LOAD, "CPU time of the server for each exchange"),
    row("schedule.achieved", load(LoadMetric::Achieved), Share, &[Bench], "requests completed per second as a share of those that fell due per second (`--rate`)"),
    row("schedule.error", load(LoadMetric::SchedulingError), Time, SCHEDULED, "99 % of the requests started within this time after they were due and a connection was free: the client's own lateness (`--rate`)"),
    row("schedule.queued", load(LoadMetric::Queued), Share, &[Bench], "requests that were due while every connection was busy, as a share of all (`--rate`)"),
    row("capacity", load(LoadMetric::Capacity), Rate, &[Capacity], "highest rate that met the conditions of `--find-max` in fresh runs; its upper bound is the lowest rate that did not"),
    row("recovery", load(LoadMetric::Recovery), Time, &[Capacity], "from the end of `--overload` until the conditions held again"),
    row("throughput-gain", load(LoadMetric::Gain), Share, &[Bench], "throughput of a service above that of the first one (`--service`); the lower end of the interval"),
    row("bytes-per-request", traffic(TrafficMetric::BytesPerRequest), Bytes, REQUESTS, "bytes on the wire for each exchange, both ways"),
    row("header-bytes-per-request", traffic(TrafficMetric::HeaderBytesPerRequest), Bytes, REQUESTS, "bytes of headers for each exchange, both ways"),
    row("resumed-share", traffic(TrafficMetric::ResumedShare), Share, TRAFFIC, "TLS connections that resumed a session, as a share of all").fixed_by(NO_RESUMPTION),
    row("saved", One(Metric::Saved), Time, EXPERIMENTS, "latency, or wall time of a program, saved against the baseline; the lower end of the interval"),
    row("saved-share", One(Metric::SavedShare), Share, EXPERIMENTS, "the same, as a share of the baseline"),
    row("unlike", One(Metric::Unlike), Count, &[Bench, Compare], "aspects of connection use that differ from production (`--like`); aspects that one side does not show are not counted"),
    row("idle-timeout", One(Metric::IdleTimeout), Time, CARDS, "how long the server keeps an idle connection"),
    row("max-requests", One(Metric::MaxRequests), Count, CARDS, "how many requests the server takes on one connection"),
    row("drain.lost", drain(DrainMetric::Lost), Count, &[Check], "requests without a complete response while the server ended (`--drain`)"),
    row("drain.refused", drain(DrainMetric::Refused), Count, &[Check], "requests that the server declared unprocessed while it ended, safe to send again"),
    row("drain.announced", drain(DrainMetric::Announced), Share, &[Check], "connections on which the server announced its end, as a share of those on which it could"),
    row("drain.time", drain(DrainMetric::Time), Time, &[Check], "from the signal to the end of the server's process"),
    row("chain.races", chain(ChainMetric::Races), Count, &[Chain], "hops on which the client's idle limit is not clearly the shorter one (`--chain`); a hop with an unknown limit may be one"),
    row("chain.lost", chain(ChainMetric::Lost), Share, &[Chain], "requests expected to be lost on such hops, as a share of those in the log (`--gaps`)"),
    row("invocations", invocation(InvocationMetric::Invocations), Count, &[Lambda], "invocations of the function, of any outcome"),
    row("invocations-failed", invocation(InvocationMetric::Failed), Count, &[Lambda], "invocations without a response"),
    row("connections-per-invocation", invocation(InvocationMetric::ConnectionsPerInvocation), Ratio, &[Lambda], "connections opened for each invocation of a warm environment"),
    row("cold-start", invocation(InvocationMetric::ColdStart), Time, &[Lambda], "mean of the first calls, the start of the environment included"),
    row("hung", fault(FaultMetric::Hung), Time, FAULTS, "longest wait of a request on a connection under a fault; a lower bound where no timeout of the program ended it"),
    row("duplicated", fault(FaultMetric::Duplicated), Count, FAULTS, "requests that are not idempotent and were sent again after bytes of them had reached the server"),
    row("recovered", fault(FaultMetric::Recovered), Count, FAULTS, "requests that failed under a fault, and were sent again with success"),
    row("truncated", fault(FaultMetric::Truncated), Count, FAULTS, "responses cut short that the program may have taken as complete"),
    row("leaked", fault(FaultMetric::Leaked), Count, FAULTS, "connections under a fault that the program did not close before its end"),
    row("struck", fault(FaultMetric::Struck), Count, FAULTS, "connections that the fault was applied to"),
    row("findings", findings(FindingSelector::All), Count, ALL, "findings of any severity"),
    row("findings.<rule>", Family(Parameter::Rule), Count, ALL, "findings of this rule"),
    row("warnings", findings(FindingSelector::Severity(Severity::Warning)), Count, ALL, "findings that are warnings"),
    row("errors", findings(FindingSelector::Severity(Severity::Error)), Count, ALL, "findings that are errors"),
    row("lookups", traffic(TrafficMetric::Lookups), Count, TRAFFIC, "names looked up"),
    row("stale", traffic(TrafficMetric::Stale), Count, TRAFFIC, "requests sent into a connection that the server was closing"),
];

/// Names that other tools have for a metric, and the metric to suggest instead.
#[rustfmt::skip] // as above
pub(super) static OTHER_NAMES: &[(&str, &str)] = &[
    ("latency", "mean"), ("average", "mean"), ("avg", "mean"), ("duration", "mean"), ("response-time", "mean"),
    ("median", "p50"), ("p95", "p90"), ("p99.9", "p999"), ("slowest", "max"), ("ttfb", "wait.p50"),
    ("rps", "throughput"), ("qps", "throughput"), ("rate", "throughput"), ("requests-per-second", "throughput"),
    ("error-rate", "failed-share"), ("failures", "failed"), ("failure-rate", "failed-share"), ("timeouts", "failed.timeout"),
    ("conns", "connections"), ("sockets", "connections"), ("opened", "connections"), ("handshakes", "connections"),
    ("req/s", "throughput"), ("req/conn", "requests-per-connection"), ("opened/s", "churn"),
    ("reuse-rate", "reuse"), ("wasted", "avoidable"), ("waste", "avoidable"), ("resumption", "resumed-share"),
    ("cpu", "cpu-per-request"), ("keep-alive", "idle-timeout"), ("keepalive-timeout", "idle-timeout"),
];

/// The ids of all kinds of faults, in their order.
const FAULT_KINDS: [&str; FaultKind::ALL.len()] = {
    let mut ids = [""; FaultKind::ALL.len()];
    let mut nth = 0;
    while nth < ids.len() {
        ids[nth] = FaultKind::ALL[nth].id();
        nth += 1;
    }
    ids
};

/// Every key that subjects are selected by.
#[rustfmt::skip] // as above
pub static SELECTORS: &[SelectorEntry] = &[
    SelectorEntry::of("variant", VARIANTS, "the variant's name"),
    SelectorEntry::of("keepalive", PACED, "on or off"),
    SelectorEntry::of("http", VERSIONS, "the version: 1.0, 1.1, 2, 3"),
    SelectorEntry::of("tls", VERSIONS, "the version: none, 1.2, 1.3"),
    SelectorEntry::of("resume", LOAD, "on or off"),
    SelectorEntry::of("dns", &[Bench], "system, cached, per-connection"),
    SelectorEntry::of("concurrency", PACED, "exchanges at a time (-c)"),
    SelectorEntry::of("streams", LOAD, "streams on one connection"),
    SelectorEntry::of("rate", &[Bench], "the requested rate as given (--rate 500/s), or closed"),
    SelectorEntry::of("host", HOSTS, "the host that was called, with its port if that is unusual"),
    SelectorEntry::of("origin", HOSTS, "scheme, host and port"),
    SelectorEntry { values: &FAULT_KINDS, ..SelectorEntry::of("fault", FAULTS, "the kind: `fault.black-hole`; `fault` alone is every kind that suits the program's connections") },
    SelectorEntry::of("session", &[Scenario], "the session of a scenario, all tags together"),
    SelectorEntry::of("tag", &[Scenario], "the tag that a scenario gave, in each session"),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_given_once_and_read_as_one_word() {
        let mut seen = HashSet::new();
        for entry in METRICS {
            assert!(seen.insert(entry.name), "{} twice", entry.name);
            assert!(
                entry
                    .stem()
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b))
            );
            assert_eq!(
                matches!(entry.key, Family(_)),
                entry.name.ends_with('>'),
                "{}",
                entry.name
            );
            assert!(!entry.meaning.is_empty() && !entry.documents.is_empty());
        }
        for entry in SELECTORS {
            assert!(
                seen.insert(entry.key),
                "{} is a selector and a metric",
                entry.key
            );
        }
    }

    #[test]
    fn another_name_leads_to_a_metric_and_is_none() {
        let is_metric = |name: &str| METRICS.iter().any(|entry| entry.metric(name).is_some());
        for (other, metric) in OTHER_NAMES {
            assert!(is_metric(metric), "{other}: there is no {metric}");
            assert!(!is_metric(other), "{other} is a metric");
        }
    }

    #[test]
    fn every_metric_has_one_row() {
        for (nth, entry) in METRICS.iter().enumerate() {
            let others = &METRICS[..nth];
            assert!(
                others.iter().all(|other| other.key != entry.key),
                "{}",
                entry.name
            );
            if let One(metric) = &entry.key {
                assert_eq!(entry.metric(entry.name).as_ref(), Some(metric));
            }
        }
        for phase in Phase::ALL {
            for statistic in [PhaseStatistic::Mean, PhaseStatistic::P50] {
                let key = One(Metric::Phase(phase, statistic));
                let name = phase.id().replace('_', "-");
                let row = METRICS.iter().find(|entry| entry.key == key);
                assert!(row.is_some_and(|row| row.name.starts_with(&name)), "{name}");
            }
        }
    }

    #[test]
    fn what_fixes_a_metric_is_a_selector() {
        for (key, _) in METRICS.iter().flat_map(|entry| entry.fixed_by) {
            assert!(SELECTORS.iter().any(|s| s.key == *key), "{key}");
        }
    }
}
