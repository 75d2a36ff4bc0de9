//! A mergeable log-linear histogram of nanoseconds (an HDR histogram: Tene, HdrHistogram, 2012).
//!
//! Values below 256 are exact. Above, each power of two has 256 buckets, and a value is reported as
//! the middle of its bucket. So a quantile is off by at most 0.2 % of its value. Count, sum,
//! minimum and maximum are exact. Powers of two without values take no memory, and a complete
//! histogram can be [packed](Histogram::pack).

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// log2 of the buckets per power of two.
const SUB_BITS: u32 = 8;
/// Buckets per power of two.
const SUB: usize = 1 << SUB_BITS;
/// Blocks: one for the exact values, one per power of two from 2^8 to 2^63.
const BLOCKS: usize = 64 - SUB_BITS as usize + 1;

/// A histogram of nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    blocks: Vec<Option<Box<[u64; SUB]>>>,
    /// The filled buckets in order, while there are no blocks: the distance from the index before
    /// and the count, as [`put`] writes them.
    packed: Arc<[u8]>,
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Histogram) -> bool {
        let figures = |one: &Histogram| (one.count, one.sum, one.min, one.max);
        figures(self) == figures(other) && self.filled().eq(other.filled())
    }
}

impl Eq for Histogram {}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram::default()
    }

    /// Adds one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Adds one value `times` times.
    #[inline]
    pub fn record_many(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let (block, sub) = place(value);
        let bucket = self.bucket(block, sub);
        *bucket = bucket.saturating_add(times);
        if self.count == 0 || value < self.min {
            self.min = value;
        }
        self.max = self.max.max(value);
        self.count = self.count.saturating_add(times);
        self.sum = self.sum.saturating_add(value.saturating_mul(times));
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        for (index, count) in unpacked(&other.packed) {
            let bucket = self.bucket(index / SUB, index % SUB);
            *bucket = bucket.saturating_add(count);
        }
        for (at, theirs) in other.blocks.iter().enumerate() {
            let Some(theirs) = theirs else { continue };
            self.bucket(at, 0);
            if let Some(Some(ours)) = self.blocks.get_mut(at) {
                for (mine, their) in ours.iter_mut().zip(theirs.iter()) {
                    *mine = mine.saturating_add(*their);
                }
            }
        }
        self.min = if self.count == 0 {
            other.min
        } else {
            self.min.min(other.min)
        };
        self.max = self.max.max(other.max);
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The exact sum in nanoseconds (saturating at 584 years).
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The exact mean in nanoseconds.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The exact smallest value.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The exact largest value.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The value at quantile `q` (0 to 1) by nearest rank: the middle of its bucket, limited to
    /// minimum and maximum.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        self.ranked((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64)
    }

    /// The median; for an even number of values the mean of the two middle values.
    pub fn median(&self) -> Option<f64> {
        let lower = self.ranked(self.count.div_ceil(2))?;
        let upper = self.ranked(self.count / 2 + 1)?;
        Some(lower + (upper - lower) / 2.0)
    }

    /// The value of this rank, from 1: the middle of its bucket, limited to minimum and maximum.
    fn ranked(&self, rank: u64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let mut seen = 0;
        for (low, high, count) in self.buckets() {
            seen = count.saturating_add(seen);
            if seen >= rank.max(1) {
                let middle = low as f64 + (high - low) as f64 / 2.0;
                return Some(middle.clamp(self.min as f64, self.max as f64));
            }
        }
        Some(self.max as f64)
    }

    /// Like [`Histogram::quantile`], but only if at least ten values are above it.
    pub fn supported_quantile(&self, q: f64) -> Option<f64> {
        self.supported_quantile_with(q, 0)
    }

    /// Like [`Histogram::supported_quantile`], with `beyond` further values that are larger than
    /// all recorded ones. `None` if the quantile is one of the further values.
    pub fn supported_quantile_with(&self, q: f64, beyond: u64) -> Option<f64> {
        let total = self.count.saturating_add(beyond) as f64;
        let rank = (q.clamp(0.0, 1.0) * total).ceil() as u64;
        let is_supported = total * (1.0 - q) + 1e-9 >= 10.0;
        (is_supported && rank <= self.count).then(|| self.ranked(rank))?
    }

    /// The filled buckets in order, as (lowest value, highest value, count).
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.filled().map(|(index, count)| {
            let (low, high) = edges(index / SUB, index % SUB);
            (low, high, count)
        })
    }

    /// The filled buckets in order, as (index, count).
    fn filled(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let packed = unpacked(&self.packed);
        let blocks = self.blocks.iter().enumerate().flat_map(|(block, counts)| {
            let counts = counts.iter().flat_map(|counts| counts.iter().enumerate());
            counts.map(move |(sub, &count)| (block * SUB + sub, count))
        });
        packed.chain(blocks.filter(|&(_, count)| count > 0))
    }

    /// Releases the memory of empty buckets. A later value allocates it again.
    pub fn pack(&mut self) {
        let (mut packed, mut bits, mut before) = (Vec::new(), 0, 0);
        for (index, count) in self.filled() {
            put(&mut packed, &mut bits, (index + 1 - before) as u64);
            put(&mut packed, &mut bits, count);
            before = index + 1;
        }
        self.packed = packed.into();
        self.blocks = Vec::new();
    }

    /// Packs it, and shares the memory of a packed one that has the same buckets.
    pub(crate) fn pack_like(&mut self, other: &Histogram) {
        self.pack();
        if self.packed == other.packed {
            self.packed = other.packed.clone();
        }
    }

    #[cold]
    fn unpack(&mut self) {
        let packed = std::mem::take(&mut self.packed);
        for (index, count) in unpacked(&packed) {
            *self.bucket(index / SUB, index % SUB) = count;
        }
    }

    /// The counter of one bucket, allocated on demand.
    #[inline]
    fn bucket(&mut self, block: usize, sub: usize) -> &mut u64 {
        if !self.packed.is_empty() {
            self.unpack();
        }
        if self.blocks.len() <= block {
            self.blocks.resize(block + 1, None);
        }
        let counts = self.blocks[block].get_or_insert_with(|| Box::new([0; SUB]));
        &mut counts[sub]
    }
}

/// Appends a number above zero after this many bits: a zero for each of its bits but one, then its
/// bits (Elias's gamma code).
fn put(to: &mut Vec<u8>, bits: &mut usize, number: u64) {
    let more = number.ilog2() as usize;
    let last = *bits + 2 * more;
    to.resize(last / 8 + 1, 0);
    for bit in (0..=more).filter(|bit| number >> bit & 1 == 1) {
        to[(last - bit) / 8] |= 0x80 >> ((last - bit) % 8);
    }
    *bits = last + 1;
}

/// The buckets that [`Histogram::pack`] has packed, as (index, count).
fn unpacked(packed: &[u8]) -> impl Iterator<Item = (usize, u64)> + '_ {
    let after = move |bits: usize| {
        let mut bytes = [0; 16];
        let left = packed.get(bits / 8..).unwrap_or_default();
        let next = &left[..left.len().min(16)];
        bytes[..next.len()].copy_from_slice(next);
        u128::from_be_bytes(bytes) << (bits % 8)
    };
    let mut bits = 0;
    let mut take = move || {
        // only zeros fill the last byte
        let more = after(bits).leading_zeros() as usize;
        let number = (more < 64).then(|| after(bits + more) >> (127 - more))?;
        bits += 2 * more + 1;
        Some(number as u64)
    };
    let mut next = 0;
    std::iter::from_fn(move || {
        next += take()? as usize;
        Some((next - 1, take()?))
    })
}

/// The block and the bucket of a value.
#[inline]
fn place(value: u64) -> (usize, usize) {
    if value < SUB as u64 {
        return (0, value as usize);
    }
    let power = 63 - value.leading_zeros();
    let block = (power - SUB_BITS + 1) as usize;
    let sub = (value >> (power - SUB_BITS)) as usize & (SUB - 1);
    (block, sub)
}

/// The lowest and highest value of a bucket.
fn edges(block: usize, sub: usize) -> (u64, u64) {
    if block == 0 {
        return (sub as u64, sub as u64);
    }
    let shift = block as u32 - 1;
    let low = ((SUB + sub) as u64) << shift;
    (low, low + ((1u64 << shift) - 1))
}

/// The stored form: exact figures and the filled buckets as (index, count).
#[derive(Serialize, Deserialize)]
struct Stored {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
    buckets: Vec<(u32, u64)>,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let buckets = self.filled();
        let buckets = buckets
            .map(|(index, count)| (index as u32, count))
            .collect();
        Stored {
            count: self.count,
            sum: self.sum,
            min: self.min,
            max: self.max,
            buckets,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        let mut histogram = Histogram::new();
        let mut total = 0u64;
        let wrong_count = || D::Error::custom("histogram buckets do not add up to its count");
        for (index, count) in stored.buckets {
            let (block, sub) = (index as usize / SUB, index as usize % SUB);
            if block >= BLOCKS {
                return Err(D::Error::custom("histogram bucket out of range"));
            }
            let bucket = histogram.bucket(block, sub);
            *bucket = bucket.saturating_add(count);
            total = total.checked_add(count).ok_or_else(wrong_count)?;
        }
        if total != stored.count {
            return Err(wrong_count());
        }
        if stored.min > stored.max {
            return Err(D::Error::custom(
                "the minimum of a histogram is above its maximum",
            ));
        }
        histogram.count = stored.count;
        histogram.sum = stored.sum;
        histogram.min = stored.min;
        histogram.max = stored.max;
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_lies_in_its_bucket_and_the_bucket_is_narrow(value: u64) {
            let (block, sub) = place(value);
            prop_assert!(block < BLOCKS);
            let (low, high) = edges(block, sub);
            prop_assert!(low <= value && value <= high);
            prop_assert!((high - low) as f64 <= low as f64 / 255.0);
        }

        #[test]
        fn merging_equals_recording_all(a in prop::collection::vec(any::<u32>(), 0..50), b in prop::collection::vec(any::<u64>(), 0..50)) {
            let mut all = Histogram::new();
            let mut left = Histogram::new();
            let mut right = Histogram::new();
            for &value in &a { all.record(value.into()); left.record(value.into()); }
            for &value in &b { all.record(value); right.record(value); }
            left.merge(&right);
            prop_assert_eq!(&left, &all);
            let mut packed = Histogram::new();
            for &value in &a { packed.record(value.into()); }
            packed.pack();
            right.pack();
            packed.merge(&right);
            packed.pack();
            prop_assert_eq!(&packed, &all);
            prop_assert!(packed.buckets().eq(all.buckets()));
            let json = serde_json::to_string(&all).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&json).unwrap(), all);
        }

        #[test]
        fn a_quantile_is_within_half_a_bucket_of_the_true_one(mut values in prop::collection::vec(1u64..1 << 50, 1..200), q in 0.0f64..1.0) {
            let mut histogram = Histogram::new();
            for &value in &values { histogram.record(value); }
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).max(1);
            let truth = values[rank - 1] as f64;
            let shown = histogram.quantile(q).unwrap();
            prop_assert!((shown - truth).abs() <= truth * 0.002 + 0.5, "{shown} {truth}");
        }
    }

    #[test]
    fn a_packed_histogram_has_its_values_and_accepts_more() {
        let mut histogram = Histogram::new();
        for value in [3, 20_000_000, 20_000_001, u64::MAX] {
            histogram.record(value);
        }
        let loose = histogram.clone();
        histogram.pack();
        assert!(histogram.blocks.is_empty());
        assert!(histogram.packed.len() <= 3 * 3, "three bytes a bucket");
        // a bucket next to the one before it, with one value, takes two bits
        let mut dense = Histogram::new();
        (0..256).for_each(|value| dense.record(value));
        dense.pack();
        assert_eq!(dense.packed.len(), 64);
        assert_eq!((histogram.median(), &histogram), (loose.median(), &loose));
        histogram.record(4);
        assert!(histogram.packed.is_empty());
        assert_eq!(histogram.buckets().map(|(.., count)| count).sum::<u64>(), 5);
        // any count fits
        histogram.record_many(7, u64::MAX);
        histogram.pack();
        assert_eq!(histogram.count(), u64::MAX);
        let counts = histogram.buckets().map(|(.., count)| count);
        assert_eq!(counts.collect::<Vec<_>>(), [1, 1, u64::MAX, 2, 1]);
        let mut like = histogram.clone();
        like.record_many(8, 1);
        like.pack_like(&histogram);
        assert!(!Arc::ptr_eq(&like.packed, &histogram.packed));
        like = Histogram::new();
        histogram
            .buckets()
            .for_each(|(low, _, count)| like.record_many(low, count));
        like.pack_like(&histogram);
        assert!(Arc::ptr_eq(&like.packed, &histogram.packed));
    }

    #[test]
    fn a_quantile_needs_ten_values_beyond_it() {
        let mut histogram = Histogram::new();
        histogram.record_many(5, 999);
        assert_eq!(histogram.supported_quantile(0.99), None);
        histogram.record(5);
        assert_eq!(histogram.supported_quantile(0.99), Some(5.0));
        assert_eq!(Histogram::new().quantile(0.5), None);
    }

    #[test]
    fn values_beyond_all_others_move_a_quantile_up_or_out() {
        let mut histogram = Histogram::new();
        histogram.record_many(3, 900);
        histogram.record_many(7, 90);
        assert_eq!(histogram.supported_quantile_with(0.99, 9), None);
        assert_eq!(histogram.supported_quantile_with(0.99, 10), Some(7.0));
        assert_eq!(histogram.supported_quantile_with(0.9, 10), Some(3.0));
        assert_eq!(histogram.supported_quantile_with(0.9, 11), Some(7.0));
        assert_eq!(histogram.supported_quantile_with(0.9, 200), None);
    }

    #[test]
    fn a_stored_histogram_that_does_not_add_up_is_refused() {
        for bad in [
            r#"{"count":2,"sum":1,"min":1,"max":1,"buckets":[[1,1]]}"#,
            r#"{"count":1,"sum":1,"min":1,"max":1,"buckets":[[999999,1]]}"#,
            // a minimum above the maximum made every quantile panic
            r#"{"count":1,"sum":1,"min":2,"max":1,"buckets":[[1,1]]}"#,
            r#"{"count":1,"sum":1,"min":1,"max":1,"buckets":[[1,18446744073709551615],[1,2]]}"#,
        ] {
            assert!(serde_json::from_str::<Histogram>(bad).is_err());
        }
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_middle_values() {
        let of = |values: &[u64]| {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&value| histogram.record(value));
            histogram.median()
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[7]), Some(7.0));
        assert_eq!(of(&[1, 3]), Some(2.0));
        assert_eq!(of(&[1, 2, 200]), Some(2.0));
        assert_eq!(of(&[1, 2, 4, 200]), Some(3.0));
    }
}
