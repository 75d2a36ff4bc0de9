//! The metrics and selectors that there are, as data: help, documentation and error messages come from these tables.

use super::Dimension;

/// The documents that a requirement can be held against, one per command that measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Document {
    /// `intact check`
    Check,
    /// `intact bench`
    Bench,
    /// `intact watch`
    Watch,
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
    /// The command that makes it.
    pub fn command(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Bench => "bench",
            Self::Watch => "watch",
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
    /// The id of a rule, in kebab-case.
    Rule,
}

/// One row of the catalogue.
#[derive(Debug, PartialEq, Eq)]
pub struct MetricEntry {
    /// Its name; a family ends in its parameter: `failed.<kind>`.
    pub name: &'static str,
    /// What follows the dot, in a family.
    pub parameter: Option<Parameter>,
    /// What it is measured in.
    pub dimension: Dimension,
    /// The documents that have it.
    pub documents: &'static [Document],
    /// What it means, in one line.
    pub meaning: &'static str,
    /// Variants (selector, value) that fix it by what they are, so that an unscoped requirement leaves them out.
    pub fixed_by: &'static [(&'static str, &'static str)],
}

impl MetricEntry {
    /// The name without its parameter: `failed.` for `failed.<kind>`.
    pub fn stem(&self) -> &'static str {
        self.name.split('<').next().unwrap_or(self.name)
    }

    const fn of(self, parameter: Parameter) -> Self {
        Self {
            parameter: Some(parameter),
            ..self
        }
    }

    const fn fixed_by(self, fixed_by: &'static [(&'static str, &'static str)]) -> Self {
        Self { fixed_by, ..self }
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
}

use Dimension::{Bytes, Count, Rate, Ratio, Share, Time};
use Document::{Audit, Bench, Check, Compare, Fleet, Lambda, Watch};

const ALL: &[Document] = &[Check, Bench, Watch, Compare, Audit, Lambda, Fleet];
const TRAFFIC: &[Document] = &[Bench, Watch, Compare, Audit, Lambda, Fleet];
const LOAD: &[Document] = &[Bench, Lambda, Fleet];
const CARDS: &[Document] = &[Check, Fleet];
const EXPERIMENTS: &[Document] = &[Bench, Compare, Lambda, Fleet];
const NO_REUSE: &[(&str, &str)] = &[("keepalive", "off")];
const NO_RESUMPTION: &[(&str, &str)] = &[("resume", "off"), ("tls", "none")];

const fn row(
    name: &'static str,
    dimension: Dimension,
    documents: &'static [Document],
    meaning: &'static str,
) -> MetricEntry {
    MetricEntry {
        name,
        parameter: None,
        dimension,
        documents,
        meaning,
        fixed_by: &[],
    }
}

/// Every metric, in the order in which help tells them.
#[rustfmt::skip] // a table is read by its rows
pub static METRICS: &[MetricEntry] = &[
    row("requests", Count, TRAFFIC, "exchanges, whatever became of them"),
    row("ok", Count, TRAFFIC, "exchanges that got a complete response of any status"),
    row("failed", Count, TRAFFIC, "exchanges that did not"),
    row("failed.<kind>", Count, TRAFFIC, "exchanges that failed in this way").of(Parameter::Kind),
    row("status.<code>", Count, TRAFFIC, "responses with this status, or of this class").of(Parameter::Status),
    row("connections", Count, TRAFFIC, "connections opened").fixed_by(NO_REUSE),
    row("connections-failed", Count, TRAFFIC, "connections that could not be opened"),
    row("needed", Count, TRAFFIC, "connections that the peak overlap of exchanges needs"),
    row("avoidable", Count, TRAFFIC, "connections opened beyond those needed").fixed_by(NO_REUSE),
    row("reused", Count, TRAFFIC, "exchanges on a connection that was already open").fixed_by(NO_REUSE),
    row("reuse", Share, TRAFFIC, "reused exchanges as a share of all").fixed_by(NO_REUSE),
    row("requests-per-connection", Ratio, TRAFFIC, "exchanges for each connection opened").fixed_by(NO_REUSE),
    row("rate", Rate, LOAD, "exchanges completed per second"),
    row("churn", Rate, TRAFFIC, "connections opened per second").fixed_by(NO_REUSE),
    row("mean", Time, TRAFFIC, "mean latency, setup included"),
    row("p50", Time, TRAFFIC, "median latency, setup included"),
    row("p90", Time, TRAFFIC, "latency that 90 % stay within, setup included"),
    row("p99", Time, TRAFFIC, "latency that 99 % stay within, setup included"),
    row("p999", Time, TRAFFIC, "latency that 99.9 % stay within, setup included"),
    row("max", Time, TRAFFIC, "longest latency, setup included"),
    row("without-setup.mean", Time, TRAFFIC, "mean latency without setup"),
    row("without-setup.p50", Time, TRAFFIC, "median latency without setup"),
    row("without-setup.p90", Time, TRAFFIC, "latency without setup that 90 % stay within"),
    row("without-setup.p99", Time, TRAFFIC, "latency without setup that 99 % stay within"),
    row("without-setup.p999", Time, TRAFFIC, "latency without setup that 99.9 % stay within"),
    row("without-setup.max", Time, TRAFFIC, "longest latency without setup"),
    row("dns.mean", Time, TRAFFIC, "mean time to look the name up, where it was"),
    row("dns.p50", Time, TRAFFIC, "median time to look the name up, where it was"),
    row("connect.mean", Time, TRAFFIC, "mean time to open TCP or QUIC, where it was opened"),
    row("connect.p50", Time, TRAFFIC, "median time to open TCP or QUIC, where it was opened"),
    row("ssl.mean", Time, TRAFFIC, "mean time of the TLS handshake, where there was one"),
    row("ssl.p50", Time, TRAFFIC, "median time of the TLS handshake, where there was one"),
    row("blocked.mean", Time, TRAFFIC, "mean wait for a free connection"),
    row("blocked.p50", Time, TRAFFIC, "median wait for a free connection"),
    row("send.mean", Time, TRAFFIC, "mean time to send the request"),
    row("send.p50", Time, TRAFFIC, "median time to send the request"),
    row("wait.mean", Time, TRAFFIC, "mean time from the request to the first byte"),
    row("wait.p50", Time, TRAFFIC, "median time from the request to the first byte"),
    row("headers-to-body.mean", Time, TRAFFIC, "mean gap between headers and body"),
    row("headers-to-body.p50", Time, TRAFFIC, "median gap between headers and body"),
    row("receive.mean", Time, TRAFFIC, "mean time to receive the body"),
    row("receive.p50", Time, TRAFFIC, "median time to receive the body"),
    row("client-delay", Share, LOAD, "time that answers waited in our own client, as a share of the latency"),
    row("cpu-per-request", Time, EXPERIMENTS, "CPU time of the client for each exchange"),
    row("server-cpu-per-request", Time, LOAD, "CPU time of the server for each exchange"),
    row("bytes-per-request", Bytes, TRAFFIC, "bytes on the wire for each exchange, both ways"),
    row("header-bytes-per-request", Bytes, TRAFFIC, "bytes of headers for each exchange, both ways"),
    row("resumed-share", Share, TRAFFIC, "TLS connections that resumed a session, as a share of all").fixed_by(NO_RESUMPTION),
    row("saved", Time, EXPERIMENTS, "latency saved against the baseline; the end of the interval that saves least"),
    row("saved-share", Share, EXPERIMENTS, "the same as a share of the baseline"),
    row("idle-timeout", Time, CARDS, "how long the server keeps an idle connection"),
    row("max-requests", Count, CARDS, "how many requests the server takes on one connection"),
    row("invocations", Count, &[Lambda], "invocations of the function, whatever became of them"),
    row("invocations-failed", Count, &[Lambda], "invocations that were not answered"),
    row("connections-per-invocation", Ratio, &[Lambda], "connections opened for each invocation that found its environment there"),
    row("cold-start", Time, &[Lambda], "mean of the first calls, the start of the environment included"),
    row("findings", Count, ALL, "findings of any severity"),
    row("findings.<rule>", Count, ALL, "findings of this rule").of(Parameter::Rule),
    row("warnings", Count, ALL, "findings that are warnings"),
    row("errors", Count, ALL, "findings that are errors"),
    row("lookups", Count, TRAFFIC, "names looked up"),
    row("stale", Count, TRAFFIC, "requests sent into a connection that the server was closing"),
];

/// Every key that subjects are selected by.
#[rustfmt::skip] // as above
pub static SELECTORS: &[SelectorEntry] = &[
    SelectorEntry { key: "variant", documents: EXPERIMENTS, meaning: "the variant's name" },
    SelectorEntry { key: "keepalive", documents: EXPERIMENTS, meaning: "on or off" },
    SelectorEntry { key: "http", documents: TRAFFIC, meaning: "the version: 1.0, 1.1, 2, 3" },
    SelectorEntry { key: "tls", documents: TRAFFIC, meaning: "the version: none, 1.2, 1.3" },
    SelectorEntry { key: "resume", documents: LOAD, meaning: "on or off" },
    SelectorEntry { key: "concurrency", documents: LOAD, meaning: "exchanges at a time (-c)" },
    SelectorEntry { key: "streams", documents: LOAD, meaning: "streams on one connection" },
    SelectorEntry { key: "host", documents: ALL, meaning: "the host that was called, with its port if that is unusual" },
    SelectorEntry { key: "origin", documents: ALL, meaning: "scheme, host and port" },
    SelectorEntry { key: "tag", documents: TRAFFIC, meaning: "the tag that a scenario gave" },
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
                entry.parameter.is_some(),
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
    fn what_fixes_a_metric_is_a_selector() {
        for (key, _) in METRICS.iter().flat_map(|entry| entry.fixed_by) {
            assert!(SELECTORS.iter().any(|s| s.key == *key), "{key}");
        }
    }
}
