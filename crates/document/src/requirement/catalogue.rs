//! The names, units and meanings of metrics and selectors, as data: help, documentation and error
//! messages come from these tables.

use super::Dimension;
use intact_ledger::{Evidence, Failure, FaultKind, kinds};

kinds! {
    /// The documents that a requirement can be checked against, one per command that measures.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum DocumentKind, command {
        /// `intact check`
        Check = "check",
        /// `intact check --chain`
        Chain = "check --chain",
        /// `intact bench`
        Bench = "bench",
        /// `intact bench --scenario`
        Scenario = "bench --scenario",
        /// `intact bench --find-max`
        Capacity = "bench --find-max",
        /// `intact watch`
        Watch = "watch",
        /// `intact watch --fault`
        Fault = "watch --fault",
        /// `intact compare`
        Compare = "compare",
        /// `intact audit`
        Audit = "audit",
        /// `intact lambda`
        Lambda = "lambda",
        /// `intact fleet`
        Fleet = "fleet",
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
    /// Whether the text after the dot can be a parameter of the family. Which rules there are, the
    /// document says.
    fn takes(self, text: &str) -> bool {
        match self {
            Self::Kind => Failure::ALL.iter().any(|kind| kind.id() == text),
            Self::Status => matches!(
                text.as_bytes(),
                [b'1'..=b'5', b'x', b'x'] | [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9']
            ),
            Self::Rule => is_rule_id(text),
        }
    }
}

/// Whether this can be the id of a rule.
fn is_rule_id(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(is_part)
}

/// One row of the table of figures.
#[derive(Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name in requirements; a family ends in its parameter: `failed.<kind>`.
    pub name: &'static str,
    /// What follows the dot, where the row is a family.
    pub parameter: Option<Parameter>,
    /// What it is measured in.
    pub dimension: Dimension,
    /// The documents that have it.
    pub documents: &'static [DocumentKind],
    /// What it means, in one line.
    pub meaning: &'static str,
    /// Without which evidence it is unknown.
    pub needs: &'static [Evidence],
    /// Whether more of it is better, or less; absent where neither is.
    pub better: Option<Better>,
    /// The head of its column on pages; the name where that is short enough.
    pub column: &'static str,
    /// Where JSON has it, in the object of a subject: keys between dots. Empty where JSON has it in
    /// no single place.
    pub json: &'static str,
    /// Variants (selector, value) that fix it by what they are, so that an unscoped requirement
    /// leaves them out.
    pub fixed_by: &'static [(&'static str, &'static str)],
}

/// Which direction of a figure is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    More,
    /// Less is better.
    Less,
}

impl Figure {
    /// The row with this name: `avoidable`, `failed.refused`.
    pub fn named(name: &str) -> Option<&'static Figure> {
        FIGURES.iter().find(|figure| match figure.parameter {
            None => figure.name == name,
            Some(parameter) => name
                .strip_prefix(figure.stem())
                .is_some_and(|text| parameter.takes(text)),
        })
    }

    /// The name without its parameter: `failed.` for `failed.<kind>`.
    pub fn stem(&self) -> &'static str {
        self.name.split('<').next().unwrap_or(self.name)
    }

    const fn fixed_by(mut self, fixed_by: &'static [(&'static str, &'static str)]) -> Self {
        self.fixed_by = fixed_by;
        self
    }

    const fn of(mut self, parameter: Parameter) -> Self {
        self.parameter = Some(parameter);
        self
    }

    const fn needs(mut self, needs: &'static [Evidence]) -> Self {
        self.needs = needs;
        self
    }

    const fn column(mut self, column: &'static str) -> Self {
        self.column = column;
        self
    }

    const fn json(mut self, json: &'static str) -> Self {
        self.json = json;
        self
    }

    const fn more(mut self) -> Self {
        self.better = Some(Better::More);
        self
    }

    const fn less(mut self) -> Self {
        self.better = Some(Better::Less);
        self
    }
}

/// One key that subjects are selected by.
#[derive(Debug, PartialEq, Eq)]
pub struct SelectorEntry {
    /// The key, as the option of `bench` is called where there is one.
    pub key: &'static str,
    /// The documents whose subjects have it.
    pub documents: &'static [DocumentKind],
    /// What it selects, in one line.
    pub meaning: &'static str,
    /// The values that there are, where they are fixed: such a selector is written `key` (any) or
    /// `key.value`.
    pub values: &'static [&'static str],
}

impl SelectorEntry {
    const fn of(
        key: &'static str,
        documents: &'static [DocumentKind],
        meaning: &'static str,
    ) -> Self {
        Self {
            key,
            documents,
            meaning,
            values: &[],
        }
    }
}

use Dimension::{Bytes, Count, Rate, Ratio, Share, Time};
use DocumentKind::{
    Audit, Bench, Capacity, Chain, Check, Compare, Fault, Fleet, Lambda, Scenario, Watch,
};

const ALL: &[DocumentKind] = &DocumentKind::ALL;
const TRAFFIC: &[DocumentKind] = &[Bench, Scenario, Watch, Compare, Audit, Lambda, Fleet];
/// What `compare` does not have: it compares runs, and keeps no latencies of requests.
const REQUESTS: &[DocumentKind] = &[Bench, Scenario, Watch, Audit, Lambda, Fleet];
const VERSIONS: &[DocumentKind] = &[Bench, Watch, Audit, Lambda, Fleet];
const HOSTS: &[DocumentKind] = &[Check, Bench, Watch, Fault, Audit, Lambda, Fleet];
const FAILURES: &[DocumentKind] = &[Bench, Scenario, Watch, Fault, Compare, Audit, Lambda, Fleet];
const FAULTS: &[DocumentKind] = &[Fault];
const LOAD: &[DocumentKind] = &[Bench, Lambda, Fleet];
const LOADS: &[DocumentKind] = &[Bench, Scenario, Lambda, Fleet];
const SCHEDULED: &[DocumentKind] = &[Bench, Scenario];
const VARIANTS: &[DocumentKind] = &[Bench, Capacity, Compare, Lambda, Fleet];
const PACED: &[DocumentKind] = &[Bench, Capacity, Lambda, Fleet];
const CARDS: &[DocumentKind] = &[Check, Fleet];
const EXPERIMENTS: &[DocumentKind] = &[Bench, Compare, Lambda, Fleet];
const NO_REUSE: &[(&str, &str)] = &[("keepalive", "off")];
const NO_RESUMPTION: &[(&str, &str)] = &[("resume", "off"), ("tls", "none")];

const fn row(
    name: &'static str,
    dimension: Dimension,
    documents: &'static [DocumentKind],
    meaning: &'static str,
) -> Figure {
    Figure {
        name,
        parameter: None,
        dimension,
        documents,
        meaning,
        needs: &[],
        better: None,
        column: name,
        json: "",
        fixed_by: &[],
    }
}

/// Every figure that can be required.
#[rustfmt::skip] // a table
pub static FIGURES: &[Figure] = &[
    row("requests", Count, TRAFFIC, "exchanges of any outcome").json("requests.total"),
    row("ok", Count, TRAFFIC, "exchanges with a complete response of any status").json("requests.ok").more(),
    row("failed", Count, FAILURES, "exchanges without a complete response, and failed lookups; in `bench` warm-up too; under a fault, requests without a complete response in the end").json("requests.failures").less(),
    row("failed-share", Share, TRAFFIC, "failed exchanges as a share of all; `failed < 0.1 %` is read as this").json("requests.failed_share").less(),
    row("failed.<kind>", Count, TRAFFIC, "exchanges with this kind of failure").of(Parameter::Kind).json("requests.failed").less(),
    row("status.<code>", Count, TRAFFIC, "responses with this status, or of this class").of(Parameter::Status).json("requests.status"),
    row("connections", Count, TRAFFIC, "connections opened").column("opened").fixed_by(NO_REUSE).json("connections.opened"),
    row("connections-failed", Count, TRAFFIC, "connections that could not be opened").column("not opened").json("connections.failures").less().needs(&[Evidence::Attempts]),
    row("needed", Count, TRAFFIC, "connections that the peak overlap of exchanges needs, and one for each that the server ended").json("connections.needed"),
    row("avoidable", Count, TRAFFIC, "connections opened beyond those needed").fixed_by(NO_REUSE).json("avoidable").less(),
    row("avoidable-by-server", Count, TRAFFIC, "connections that a server without its limits would have spared").column("by server").fixed_by(NO_REUSE).json("avoidable_by_server").less().needs(&[Evidence::Ends]),
    row("reused", Count, TRAFFIC, "exchanges on a connection that was already open").fixed_by(NO_REUSE).json("reused").more().needs(&[Evidence::Reuse]),
    row("reuse", Share, TRAFFIC, "reused exchanges as a share of all; `reused > 80 %` is read as this").fixed_by(NO_REUSE).json("reuse").more().needs(&[Evidence::Reuse]),
    row("requests-per-connection", Ratio, TRAFFIC, "exchanges for each connection opened").column("req/conn").fixed_by(NO_REUSE).json("requests_per_connection").more(),
    row("throughput", Rate, LOADS, "exchanges completed per second").column("req/s").json("rate_per_s").more(),
    row("churn", Rate, REQUESTS, "connections opened per second").column("opened/s").fixed_by(NO_REUSE).json("churn_per_s").less(),
    row("typical", Time, &[Bench], "typical latency, by which variants are compared: medians of fresh and reused exchanges of a round, weighted; mean of the rounds").json("typical_ms").less(),
    row("mean", Time, REQUESTS, "mean latency, setup included; unknown if a request timed out").json("latency_ms.mean").less().needs(&[Evidence::Durations]),
    row("p50", Time, REQUESTS, "median latency, setup included; a request that timed out is longer than all others").json("latency_ms.p50").less().needs(&[Evidence::Durations]),
    row("p90", Time, REQUESTS, "90th percentile of the latency, setup included; a request that timed out is longer than all others").json("latency_ms.p90").less().needs(&[Evidence::Durations]),
    row("p99", Time, REQUESTS, "99th percentile of the latency, setup included; a request that timed out is longer than all others").json("latency_ms.p99").less().needs(&[Evidence::Durations]),
    row("p999", Time, REQUESTS, "99.9th percentile of the latency, setup included; a request that timed out is longer than all others").column("p99.9").json("latency_ms.p999").less().needs(&[Evidence::Durations]),
    row("max", Time, REQUESTS, "longest latency, setup included; unknown if a request timed out").json("latency_ms.max").less().needs(&[Evidence::Durations]),
    row("without-setup.mean", Time, REQUESTS, "mean latency without setup").column("without setup").json("latency_without_setup_ms.mean").less().needs(&[Evidence::Durations]),
    row("without-setup.p50", Time, REQUESTS, "median latency without setup").json("latency_without_setup_ms.p50").less().needs(&[Evidence::Durations]),
    row("without-setup.p90", Time, REQUESTS, "90th percentile of the latency without setup").json("latency_without_setup_ms.p90").less().needs(&[Evidence::Durations]),
    row("without-setup.p99", Time, REQUESTS, "99th percentile of the latency without setup").json("latency_without_setup_ms.p99").less().needs(&[Evidence::Durations]),
    row("without-setup.p999", Time, REQUESTS, "99.9th percentile of the latency without setup").json("latency_without_setup_ms.p999").less().needs(&[Evidence::Durations]),
    row("without-setup.max", Time, REQUESTS, "longest latency without setup").json("latency_without_setup_ms.max").less().needs(&[Evidence::Durations]),
    row("dns.mean", Time, REQUESTS, "mean time of the lookup, where there was one").less().needs(&[Evidence::Durations]),
    row("dns.p50", Time, REQUESTS, "median time of the lookup, where there was one").less().needs(&[Evidence::Durations]),
    row("connect.mean", Time, REQUESTS, "mean time to open TCP or QUIC, where it was opened").less().needs(&[Evidence::Durations]),
    row("connect.p50", Time, REQUESTS, "median time to open TCP or QUIC, where it was opened").less().needs(&[Evidence::Durations]),
    row("ssl.mean", Time, REQUESTS, "mean time of the TLS handshake, where there was one").less().needs(&[Evidence::Durations]),
    row("ssl.p50", Time, REQUESTS, "median time of the TLS handshake, where there was one").less().needs(&[Evidence::Durations]),
    row("blocked.mean", Time, REQUESTS, "mean wait for a free connection").less().needs(&[Evidence::Durations]),
    row("blocked.p50", Time, REQUESTS, "median wait for a free connection").less().needs(&[Evidence::Durations]),
    row("send.mean", Time, REQUESTS, "mean time to send the request").less().needs(&[Evidence::Durations]),
    row("send.p50", Time, REQUESTS, "median time to send the request").less().needs(&[Evidence::Durations]),
    row("wait.mean", Time, REQUESTS, "mean time from the request to the first byte").less().needs(&[Evidence::Durations]),
    row("wait.p50", Time, REQUESTS, "median time from the request to the first byte").less().needs(&[Evidence::Durations]),
    row("headers-to-body.mean", Time, REQUESTS, "mean gap between headers and body").less().needs(&[Evidence::Durations]),
    row("headers-to-body.p50", Time, REQUESTS, "median gap between headers and body").less().needs(&[Evidence::Durations]),
    row("receive.mean", Time, REQUESTS, "mean time to receive the body").less().needs(&[Evidence::Durations]),
    row("receive.p50", Time, REQUESTS, "median time to receive the body").less().needs(&[Evidence::Durations]),
    row("client-delay", Share, LOAD, "time that responses waited in the client, as a share of the latency").json("client_delay_ms.share").less(),
    row("cpu-per-request", Time, EXPERIMENTS, "CPU time of the client for each exchange").less(),
    row("server-cpu-per-request", Time, LOAD, "CPU time of the server for each exchange").less(),
    row("schedule.achieved", Share, &[Bench], "requests completed per second as a share of those that fell due per second (`--rate`)").column("achieved").more(),
    row("schedule.error", Time, SCHEDULED, "99 % of the requests started within this time after they were due and a connection was free: the client's own lateness (`--rate`)").column("late p99").less(),
    row("schedule.queued", Share, &[Bench], "requests that were due while every connection was busy, as a share of all (`--rate`)").column("waited").less(),
    row("capacity", Rate, &[Capacity], "highest rate that met the conditions of `--find-max` in fresh runs; its upper bound is the lowest rate that did not").json("capacity_per_s").more(),
    row("recovery", Time, &[Capacity], "from the end of `--overload` until the conditions held again").less(),
    row("throughput-gain", Share, &[Bench], "throughput of a service above that of the first one (`--service`); must hold for the whole interval").more(),
    row("bytes-per-request", Bytes, REQUESTS, "bytes on the wire for each exchange, both ways").less(),
    row("header-bytes-per-request", Bytes, REQUESTS, "bytes of headers for each exchange, both ways").less(),
    row("resumed-share", Share, TRAFFIC, "TLS connections that resumed a session, as a share of all").column("resumed").fixed_by(NO_RESUMPTION).json("resumed_share").more(),
    row("saved", Time, EXPERIMENTS, "latency, or wall time of a program, saved against the baseline; must hold for the whole interval").more(),
    row("saved-share", Share, EXPERIMENTS, "the same, as a share of the baseline").more(),
    row("unlike", Count, &[Bench, Compare], "aspects of connection use that differ from production (`--like`); aspects that one side does not show are not counted").less(),
    row("brought", Count, &[Compare], "what the head of `--commits` has and the base has not: findings from warnings on, failures, avoidable connections, time, memory").less(),
    row("idle-timeout", Time, CARDS, "how long the server keeps an idle connection").json("idle_timeout.measured_s"),
    row("max-requests", Count, CARDS, "how many requests the server takes on one connection").json("max_requests.measured"),
    row("drain.lost", Count, &[Check], "requests without a complete response while the server ended (`--drain`)").json("drain.lost").less(),
    row("drain.refused", Count, &[Check], "requests that the server declared unprocessed while it ended, safe to send again").json("drain.refused").less(),
    row("drain.announced", Share, &[Check], "connections on which the server announced its end, as a share of those on which it could").json("drain.announced").more(),
    row("drain.time", Time, &[Check], "from the signal to the end of the server's process").json("drain.process.ended_ms"),
    row("chain.races", Count, &[Chain], "hops on which the client's idle limit is not clearly the shorter one (`--chain`); a hop with an unknown limit may be one").json("races").less(),
    row("chain.lost", Share, &[Chain], "requests expected to be lost on such hops, as a share of those in the log (`--gaps`)").json("lost_share").less(),
    row("invocations", Count, &[Lambda], "invocations of the function, of any outcome"),
    row("invocations-failed", Count, &[Lambda], "invocations without a response").less(),
    row("connections-per-invocation", Ratio, &[Lambda], "connections opened for each invocation of a warm environment").json("sent.connections_per_invocation"),
    row("cold-start", Time, &[Lambda], "mean of the first calls, the start of the environment included").json("cold_start_ms").less(),
    row("hung", Time, FAULTS, "longest wait of a request on a connection under a fault; a lower bound where no timeout of the program ended it").json("hung_ms").less(),
    row("duplicated", Count, FAULTS, "requests that are not idempotent and were sent again after bytes of them had reached the server").json("duplicated").less(),
    row("recovered", Count, FAULTS, "requests that failed under a fault, and were sent again with success").json("recovered").more(),
    row("truncated", Count, FAULTS, "responses cut short that the program may have taken as complete").json("truncated").less(),
    row("leaked", Count, FAULTS, "connections under a fault that the program did not close before its end").json("leaked").less(),
    row("struck", Count, FAULTS, "connections that the fault was applied to").json("struck"),
    row("findings", Count, ALL, "findings of any severity").less(),
    row("findings.<rule>", Count, ALL, "findings of this rule").of(Parameter::Rule).less(),
    row("warnings", Count, ALL, "findings that are warnings").less(),
    row("errors", Count, ALL, "findings that are errors").less(),
    row("lookups", Count, TRAFFIC, "names looked up").json("lookups.total").less().needs(&[Evidence::Lookups]),
    row("stale", Count, TRAFFIC, "requests sent into a connection that the server was closing").less().needs(&[Evidence::Attempts, Evidence::Ends]),
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
    SelectorEntry::of("side", &[Bench], "inbound or outgoing: of a service (`--service`) the requests of the bench, or its own; without it both are checked"),
    SelectorEntry::of("host", HOSTS, "the host that was called, with its port if that is unusual"),
    SelectorEntry::of("origin", HOSTS, "scheme, host and port"),
    SelectorEntry { values: &FAULT_KINDS, ..SelectorEntry::of("fault", FAULTS, "the kind: `fault.black-hole`; `fault` alone is every kind that suits the program's connections") },
    SelectorEntry::of("scope", FAULTS, "all or one: the connections of a pool that a fault strikes; without it both are checked"),
    SelectorEntry::of("session", &[Scenario], "the session of a scenario, all tags together"),
    SelectorEntry::of("tag", &[Bench, Scenario], "the tag that a scenario gave, in each session; with `--targets` method and path, in each variant"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::Phase;
    use std::collections::HashSet;

    #[test]
    fn names_are_given_once_and_read_as_one_word() {
        let mut seen = HashSet::new();
        for figure in FIGURES {
            assert!(seen.insert(figure.name), "{} twice", figure.name);
            assert!(
                figure
                    .stem()
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b))
            );
            let is_family = figure.parameter.is_some();
            assert_eq!(is_family, figure.name.ends_with('>'), "{}", figure.name);
            assert!(!figure.meaning.is_empty() && !figure.documents.is_empty());
            assert!(is_family || Figure::named(figure.name) == Some(figure));
        }
        for entry in SELECTORS {
            assert!(
                seen.insert(entry.key),
                "{} is a selector and a figure",
                entry.key
            );
        }
    }

    #[test]
    fn another_name_leads_to_a_figure_and_is_none() {
        for (other, figure) in OTHER_NAMES {
            assert!(
                Figure::named(figure).is_some(),
                "{other}: there is no {figure}"
            );
            assert!(Figure::named(other).is_none(), "{other} is a figure");
        }
    }

    #[test]
    fn every_phase_has_its_mean_and_its_median() {
        for phase in Phase::ALL {
            let name = phase.id().replace('_', "-");
            for statistic in ["mean", "p50"] {
                assert!(
                    Figure::named(&format!("{name}.{statistic}")).is_some(),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn a_family_takes_its_parameters_alone() {
        for name in [
            "failed.refused",
            "status.5xx",
            "status.503",
            "findings.stale-reuse",
        ] {
            assert!(Figure::named(name).is_some(), "{name}");
        }
        for name in [
            "failed.no",
            "status.6xx",
            "status.099",
            "status.50",
            "findings.",
            "failed.",
        ] {
            assert!(Figure::named(name).is_none(), "{name}");
        }
    }

    #[test]
    fn what_fixes_a_figure_is_a_selector() {
        for (key, _) in FIGURES.iter().flat_map(|figure| figure.fixed_by) {
            assert!(SELECTORS.iter().any(|s| s.key == *key), "{key}");
        }
    }
}
