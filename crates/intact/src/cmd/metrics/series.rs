//! The values of a run's metrics: a series for each set of attributes, so many of them and no more. Must not know a format.

use super::table::{Definition, Metric, Shape};
use ledger::Vantage;
use std::collections::BTreeMap;

/// Series of one metric; the limit of OpenTelemetry's SDKs. What comes later shares one.
const SERIES: usize = 2000;
/// The attribute of the series that they share (OpenTelemetry's metrics SDK, cardinality limits).
const OVERFLOW: &str = "otel.metric.overflow";

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    /// Words.
    Text(String),
    /// A number.
    Number(i64),
    /// Yes or no.
    Flag(bool),
}

/// What tells one series from the next.
pub(super) type Attributes = Vec<(&'static str, Value)>;

/// The values of one series, as recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Point {
    /// How many values there were.
    pub(super) count: u64,
    /// Their sum; of counts and levels the value itself.
    pub(super) sum: u64,
    /// The least, zero when there is none.
    pub(super) least: u64,
    /// The greatest.
    pub(super) greatest: u64,
    /// How many lie above the bound before and up to each bound, then above all; empty where the shape has no bounds.
    pub(super) buckets: Vec<u64>,
}

/// The series of one metric.
#[derive(Clone, Debug)]
pub(super) struct Family {
    /// What they are.
    pub(super) definition: Definition,
    /// By their attributes.
    pub(super) series: BTreeMap<Attributes, Point>,
}

impl Family {
    fn add(&mut self, mut attributes: Attributes, value: u64) {
        if self.series.len() >= SERIES && !self.series.contains_key(&attributes) {
            attributes = vec![(OVERFLOW, Value::Flag(true))];
        }
        let definition = self.definition;
        let point = self.series.entry(attributes).or_default();
        if let Shape::Distribution(bounds) = definition.shape {
            let value = definition.unit.scale(value);
            point.buckets.resize(bounds.len() + 1, 0);
            point.buckets[bounds.partition_point(|bound| *bound < value)] += 1;
        }
        if point.count == 0 || value < point.least {
            point.least = value;
        }
        point.greatest = point.greatest.max(value);
        point.count += 1;
        point.sum = point.sum.saturating_add(value);
    }
}

/// All metrics of a run.
#[derive(Clone, Debug)]
pub(super) struct Families(Vec<Family>);

impl Families {
    /// None yet.
    pub(super) fn new(vantage: Vantage) -> Families {
        let family = |metric: Metric| Family {
            definition: metric.definition(vantage),
            series: BTreeMap::new(),
        };
        Families(Metric::ALL.map(family).into())
    }

    /// One more value: 1 of what is counted, nanoseconds of what takes time, bytes of what has a size.
    pub(super) fn add(&mut self, metric: Metric, attributes: Attributes, value: u64) {
        self.0[metric as usize].add(attributes, value);
    }

    /// Those that have values.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Family> {
        self.0.iter().filter(|family| !family.series.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_is_counted_up_to_it() {
        let mut families = Families::new(Vantage::Client);
        for nanos in [5_000_000, 5_000_001, 20_000_000_000] {
            families.add(Metric::Requests, vec![], nanos);
        }
        let family = families.iter().next().unwrap();
        let Shape::Distribution(bounds) = family.definition.shape else {
            panic!("{family:?}");
        };
        let at = bounds.iter().position(|bound| *bound == 0.005).unwrap();
        let buckets = &family.series[&vec![]].buckets;
        assert_eq!(buckets[at..at + 2], [1, 1]);
        assert_eq!(buckets[bounds.len()], 1);
    }

    #[test]
    fn more_series_than_are_kept_share_one_and_lose_no_value() {
        let mut families = Families::new(Vantage::Client);
        for port in 0..5000 {
            families.add(
                Metric::Opened,
                vec![("server.port", Value::Number(port))],
                1,
            );
        }
        let family = families.iter().next().unwrap();
        assert_eq!(family.series.len(), SERIES + 1);
        let sum: u64 = family.series.values().map(|point| point.sum).sum();
        assert_eq!(sum, 5000);
        let shared = vec![(OVERFLOW, Value::Flag(true))];
        assert_eq!(family.series[&shared].sum, 5000 - SERIES as u64);
    }
}
