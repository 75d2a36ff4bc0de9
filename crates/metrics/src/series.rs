//! The values of a run's metrics over time: a series for each set of attributes, in slices of time.
//!
//! The number of series and slices is limited for any length of the run and any number of names.
//! Events may arrive in any order. Must not know an output format.

use crate::attributes::{Attributes, Value};
use crate::table::{Definition, Metric, Shape};
use intact_ledger::{Nanos, Vantage};
use std::collections::BTreeMap;

/// Limit of series per metric, as in OpenTelemetry's SDKs. Further attributes share one series.
const SERIES: usize = 2000;
/// Attribute of the shared series (OpenTelemetry's metrics SDK, cardinality limits).
const OVERFLOW: &str = "otel.metric.overflow";
/// Shortest slice, in nanoseconds.
const SHORTEST: u64 = 1_000_000_000;
/// Limit of slices. Above it, slices become twice as long.
const SLICES: u64 = 240;
/// Limit of slices with values over all series; same effect. One slice for each series is below it.
const POINTS: usize = 20_000;

/// The values of a slice, in recorded units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Number of values.
    pub count: u64,
    /// Sum of the values; for counts and levels the value itself.
    pub sum: i64,
    /// Smallest value; 0 if there is none.
    pub least: i64,
    /// Largest value.
    pub greatest: i64,
    /// Number of values per bucket: up to each bound and above the one before, then above all
    /// bounds. Empty if the shape has no bounds.
    pub buckets: Vec<u64>,
}

impl Point {
    fn of(value: i64, definition: &Definition) -> Point {
        let mut buckets = Vec::new();
        if let Shape::Distribution(bounds) = definition.shape {
            let value = definition.unit.scale(value);
            buckets.resize(bounds.len() + 1, 0);
            buckets[bounds.partition_point(|bound| *bound < value)] = 1;
        }
        Point {
            count: 1,
            sum: value,
            least: value,
            greatest: value,
            buckets,
        }
    }

    fn merge(&mut self, other: &Point) {
        if self.count == 0 {
            self.clone_from(other);
            return;
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
        for (ours, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *ours += theirs;
        }
    }
}

/// The values of one set of attributes.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// All values.
    pub total: Point,
    /// The values of each slice with any.
    slices: BTreeMap<u64, Point>,
}

/// The series of one metric.
#[derive(Clone, Debug)]
pub struct Family {
    /// Name, unit and shape.
    pub definition: Definition,
    /// The series by their attributes.
    pub series: BTreeMap<Attributes, Series>,
}

impl Family {
    /// Adds a value. Returns whether the slice had none before.
    fn add(&mut self, mut attributes: Attributes, slice: u64, value: i64) -> bool {
        if self.series.len() >= SERIES && !self.series.contains_key(&attributes) {
            attributes = vec![(OVERFLOW, Value::Flag(true))];
        }
        let point = Point::of(value, &self.definition);
        let series = self.series.entry(attributes).or_default();
        series.total.merge(&point);
        let slice = series.slices.entry(slice).or_default();
        slice.merge(&point);
        slice.count == 1
    }
}

/// All metrics of a run.
#[derive(Clone, Debug)]
pub struct Families {
    families: Vec<Family>,
    /// Length of a slice in nanoseconds.
    width: u64,
    /// Number of slices with values.
    points: usize,
    /// Time of the last value.
    last: Nanos,
}

impl Families {
    /// Creates the metrics without values.
    pub fn new(vantage: Vantage) -> Families {
        let family = |metric: Metric| Family {
            definition: metric.definition(vantage),
            series: BTreeMap::new(),
        };
        Families {
            families: Metric::ALL.map(family).into(),
            width: SHORTEST,
            points: 0,
            last: Nanos(0),
        }
    }

    /// Adds a value: 1 for counts, nanoseconds for durations, bytes for sizes, the change for
    /// levels.
    pub fn add(&mut self, metric: Metric, attributes: Attributes, at: Nanos, value: i64) {
        self.last = self.last.max(at);
        while at.0 / self.width >= SLICES {
            self.coarsen();
        }
        let slice = at.0 / self.width;
        if self.families[metric as usize].add(attributes, slice, value) {
            self.points += 1;
        }
        while self.points > POINTS {
            self.coarsen();
        }
    }

    /// The metrics with values.
    pub fn iter(&self) -> impl Iterator<Item = &Family> {
        self.families
            .iter()
            .filter(|family| !family.series.is_empty())
    }

    /// The state of a series at the end of each slice in which it changed, and at the end of the
    /// run.
    pub fn through_time(&self, series: &Series) -> Vec<(Nanos, Point)> {
        let mut so_far = Point::default();
        let mut points = Vec::with_capacity(series.slices.len() + 1);
        for (slice, point) in &series.slices {
            so_far.merge(point);
            let end = slice.saturating_add(1).saturating_mul(self.width);
            points.push((Nanos(end).min(self.last), so_far.clone()));
        }
        if points.last().is_some_and(|(end, _)| *end < self.last) {
            points.push((self.last, so_far));
        }
        points
    }

    /// Doubles the length of the slices.
    fn coarsen(&mut self) {
        self.width = self.width.saturating_mul(2);
        self.points = 0;
        let all = self.families.iter_mut();
        for series in all.flat_map(|family| family.series.values_mut()) {
            let mut slices: BTreeMap<u64, Point> = BTreeMap::new();
            for (slice, point) in std::mem::take(&mut series.slices) {
                slices.entry(slice / 2).or_default().merge(&point);
            }
            self.points += slices.len();
            series.slices = slices;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_is_counted_up_to_it() {
        let mut families = Families::new(Vantage::Client);
        for nanos in [5_000_000, 5_000_001, 20_000_000_000] {
            families.add(Metric::Requests, vec![], Nanos(0), nanos);
        }
        let family = families.iter().next().unwrap();
        let Shape::Distribution(bounds) = family.definition.shape else {
            panic!("{family:?}");
        };
        let at = bounds.iter().position(|bound| *bound == 0.005).unwrap();
        let buckets = &family.series[&vec![]].total.buckets;
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
                Nanos(0),
                1,
            );
        }
        let family = families.iter().next().unwrap();
        assert_eq!(family.series.len(), SERIES + 1);
        let sum: i64 = family.series.values().map(|one| one.total.sum).sum();
        assert_eq!(sum, 5000);
        let shared = vec![(OVERFLOW, Value::Flag(true))];
        assert_eq!(family.series[&shared].total.sum, 5000 - SERIES as i64);
    }

    #[test]
    fn series_and_slices_are_bounded_together() {
        let mut families = Families::new(Vantage::Client);
        for nth in 0..200_000_u64 {
            let attributes = vec![("server.port", Value::Number(nth as i64 % 3000))];
            families.add(Metric::Opened, attributes, Nanos(nth * SHORTEST), 1);
        }
        assert!(families.points <= POINTS);
        let family = families.iter().next().unwrap();
        let slices = family.series.values().map(|one| one.slices.len());
        assert_eq!(slices.sum::<usize>(), families.points);
        let sums = family.series.values().map(|one| one.total.sum);
        assert_eq!(sums.sum::<i64>(), 200_000);
    }

    proptest::proptest! {
        #[test]
        fn the_order_of_events_changes_nothing_and_the_end_is_the_total(
            events in proptest::collection::vec((0_u64..20_000 * SHORTEST, 0_i64..30_000_000_000), 1..200),
        ) {
            let through_time = |events: &[(u64, i64)]| {
                let mut families = Families::new(Vantage::Client);
                for (at, nanos) in events {
                    families.add(Metric::Requests, vec![], Nanos(*at), *nanos);
                }
                let series = &families.iter().next().unwrap().series[&vec![]];
                (families.through_time(series), series.total.clone(), families.last)
            };
            let (points, total, last) = through_time(&events);
            let mut other = events.clone();
            other.reverse();
            proptest::prop_assert_eq!(&through_time(&other).0, &points);
            proptest::prop_assert!(points.len() as u64 <= SLICES + 1);
            proptest::prop_assert!(points.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1.count <= two[1].1.count));
            proptest::prop_assert_eq!(points.last(), Some(&(last, total)));
            // no point counts a later event
            for (end, point) in &points {
                let until = events.iter().filter(|(at, _)| Nanos(*at) <= *end).count() as u64;
                proptest::prop_assert!(point.count <= until);
            }
        }
    }
}
