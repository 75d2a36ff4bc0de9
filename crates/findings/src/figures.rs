//! The figures that every document has: requests, connections, latency, phases. Must not know who measured them.

use crate::requirement::{NoData, PhaseStatistic, Statistic, StatusSelector};
use intact_ledger::{Failure, Histogram};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

pub(crate) const NANOS_PER_MS: f64 = 1e6;

/// Counts of requests (`requests` in every JSON document).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Requests {
    /// Measured exchanges, however they ended.
    pub total: u64,
    /// Complete answers of any status (or as `--expect` says).
    pub ok: u64,
    /// The others by kind.
    pub failed: BTreeMap<&'static str, u64>,
    /// Final status codes of complete answers, warm-up included.
    pub status: BTreeMap<u16, u64>,
}

impl Requests {
    /// How many failed.
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    /// How many failed in this way.
    pub(crate) fn failed_with(&self, kind: Failure) -> u64 {
        self.failed.get(kind.id()).copied().unwrap_or(0)
    }

    /// Responses with a status or of a class.
    pub(crate) fn of_status(&self, wanted: StatusSelector) -> u64 {
        self.status
            .iter()
            .filter(|(status, _)| wanted.selects(**status))
            .map(|(_, count)| count)
            .sum()
    }

    pub(crate) fn add(&mut self, other: &Requests) {
        self.total += other.total;
        self.ok += other.ok;
        for (&kind, count) in &other.failed {
            *self.failed.entry(kind).or_default() += count;
        }
        for (&status, count) in &other.status {
            *self.status.entry(status).or_default() += count;
        }
    }
}

/// Counts of connections (`connections` in every JSON document).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Connections {
    /// Transport established, in the measured rounds.
    pub opened: u64,
    /// Dials that failed, by kind.
    pub failed: BTreeMap<&'static str, u64>,
    /// Who ended them.
    pub ended_by: BTreeMap<&'static str, u64>,
    /// How many the peak overlap needs: connections open anew each round.
    pub needed: u64,
}

impl Connections {
    pub(crate) fn add(&mut self, other: &Connections) {
        self.opened += other.opened;
        self.needed += other.needed;
        for (&kind, count) in &other.failed {
            *self.failed.entry(kind).or_default() += count;
        }
        for (&by, count) in &other.ended_by {
            *self.ended_by.entry(by).or_default() += count;
        }
    }
}

/// A latency distribution in milliseconds; a percentile with fewer than ten exchanges beyond it is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Latency {
    /// Exact mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Exact maximum.
    pub max: Option<f64>,
}

impl Latency {
    /// A statistic in nanoseconds, of `had` exchanges.
    pub(crate) fn nanos(&self, statistic: Statistic, had: u64) -> Result<f64, NoData> {
        // ten beyond the quantile are needed
        let (value, needed) = match statistic {
            Statistic::Mean => (self.mean, 1),
            Statistic::Max => (self.max, 1),
            Statistic::P50 => (self.p50, 20),
            Statistic::P90 => (self.p90, 100),
            Statistic::P99 => (self.p99, 1_000),
            Statistic::P999 => (self.p999, 10_000),
        };
        value.map(|ms| ms * NANOS_PER_MS).ok_or(match had {
            0 => NoData::NothingHappened,
            had => NoData::TooFew { had, needed },
        })
    }

    pub(crate) fn of(histogram: &Histogram) -> Latency {
        let ms = |nanos: f64| nanos / NANOS_PER_MS;
        let at = |q| histogram.supported_quantile(q).map(ms);
        Latency {
            mean: histogram.mean().map(ms),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max().map(|max| ms(max as f64)),
        }
    }
}

/// One phase over the exchanges that had it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PhaseTime {
    /// Mean, in milliseconds.
    pub mean: f64,
    /// Median, in milliseconds; absent with fewer than ten exchanges on each side of it.
    pub p50: Option<f64>,
    /// Exchanges that had it.
    pub count: u64,
}

impl PhaseTime {
    /// A statistic in nanoseconds.
    pub(crate) fn nanos(&self, statistic: PhaseStatistic) -> Result<f64, NoData> {
        match statistic {
            PhaseStatistic::Mean => Ok(self.mean * NANOS_PER_MS),
            PhaseStatistic::P50 => self.p50.map(|ms| ms * NANOS_PER_MS).ok_or(NoData::TooFew {
                had: self.count,
                needed: 20,
            }),
        }
    }

    pub(crate) fn of(histogram: &Histogram) -> Option<PhaseTime> {
        Some(PhaseTime {
            mean: histogram.mean()? / NANOS_PER_MS,
            p50: histogram
                .supported_quantile(0.5)
                .map(|nanos| nanos / NANOS_PER_MS),
            count: histogram.count(),
        })
    }
}
