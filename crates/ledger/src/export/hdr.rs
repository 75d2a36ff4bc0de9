//! Latencies as HdrHistogram and its readers take them: an interval log with histograms of version
//! 2 (`HistogramLogWriter` 1.3), and the text of percentiles (`.hgrm`).
//!
//! Values are nanoseconds in the log. Its maximum and the text of percentiles are in milliseconds,
//! as in wrk2 and vegeta. A failed request has no latency here, as on the page.

use crate::histogram::Histogram;
use crate::run::{Run, Variant};
use crate::tally::{Cell, Group, Tally};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::{self, Write};

/// Significant decimal digits: finer than the buckets of [`Histogram`].
const DIGITS: u8 = 3;
/// log2 of half of the buckets that this number of digits needs (2,048).
const HALF_BITS: u32 = 10;
/// The highest value that a histogram has room for, unless a larger one was recorded: an hour.
const HIGHEST: u64 = 3_600_000_000_000;
/// Cookies of a histogram of version 2, and of a compressed one.
const COOKIES: [u32; 2] = [0x1c84_9313, 0x1c84_9314];
const NANOS_PER_MS: f64 = 1e6;
const NANOS_PER_S: f64 = 1e9;
/// Steps of the percentiles for each half of the distance to 100 %, as in HdrHistogram.
const STEPS: f64 = 5.0;

/// How the name of a file with percentiles ends.
pub const PERCENTILES: &str = "hgrm";

/// Writes the log of a run: a line for each round of each variant, with the variant as its tag.
///
/// # Errors
/// Those of the writer.
pub fn write_log(out: &mut impl Write, run: &Run, tally: &Tally) -> io::Result<()> {
    let started = run.started.parse().map(jiff::Timestamp::as_millisecond);
    let started = started.unwrap_or_default() as f64 / 1e3;
    writeln!(
        out,
        "#[Latency of complete requests in nanoseconds, by intact bench]"
    )?;
    writeln!(out, "#[Histogram log format version 1.3]")?;
    writeln!(out, "#[StartTime: {started:.3} (seconds since epoch)]")?;
    writeln!(
        out,
        "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
    )?;
    for cell in &tally.cells {
        let variant = cell
            .variant
            .and_then(|index| run.variants.get(index as usize));
        let latencies = complete(std::iter::once(cell));
        if let (Some(variant), Some(bounds), false) = (variant, &cell.bounds, latencies.is_empty())
        {
            let seconds = |nanos: u64| nanos as f64 / NANOS_PER_S;
            let times = (seconds(bounds.span.start.0), seconds(bounds.span.nanos()));
            write_interval(out, &variant.name, times, &latencies)?;
        }
    }
    Ok(())
}

/// Writes the percentiles of a variant, over all rounds.
///
/// # Errors
/// Those of the writer.
pub fn write_percentiles(
    out: &mut impl Write,
    tally: &Tally,
    (index, variant): (u32, &Variant),
) -> io::Result<()> {
    write_levels(out, &complete(tally.of_variant(index)))?;
    writeln!(out, "#[{}]", variant.name)
}

/// Latencies of the measured requests with a complete response.
fn complete<'a>(cells: impl Iterator<Item = &'a Cell>) -> Histogram {
    let mut all = Histogram::new();
    let measured = |group: &&Group| !group.key.warmup && group.key.outcome.is_ok();
    let groups = cells.flat_map(|cell| &cell.groups).filter(measured);
    groups.for_each(|group| all.merge(&group.latency));
    all
}

/// Writes the latencies of an interval, which begins at `start` and has this `length`, in seconds.
fn write_interval(
    out: &mut impl Write,
    tag: &str,
    (start, length): (f64, f64),
    latencies: &Histogram,
) -> io::Result<()> {
    let is_separator = |letter: char| letter == ',' || letter.is_whitespace();
    let tag = tag.replace(", ", ";").replace(is_separator, "_");
    let max = latencies.max().unwrap_or(0) as f64 / NANOS_PER_MS;
    let encoded = STANDARD.encode(compressed(latencies)?);
    writeln!(out, "Tag={tag},{start:.3},{length:.3},{max:.3},{encoded}")
}

/// Writes the percentiles of latencies.
fn write_levels(out: &mut impl Write, latencies: &Histogram) -> io::Result<()> {
    let all = latencies.count();
    let ms = |nanos: f64| nanos / NANOS_PER_MS;
    writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let (mut seen, mut level) = (0, 0.0);
    let values = values(latencies);
    for (value, count) in &values {
        seen += count;
        let value = ms(highest_equivalent(*value) as f64);
        // the levels that this value reaches; of the last one only the next
        while level <= 100.0 * seen as f64 / all as f64 {
            let (share, beyond) = (level / 100.0, 100.0 / (100.0 - level));
            writeln!(out, "{value:12.3} {share:2.12} {seen:10} {beyond:14.2}")?;
            level += 100.0 / (STEPS * beyond.log2().floor().exp2() * 2.0);
            if seen == all {
                writeln!(out, "{value:12.3} {:2.12} {seen:10}", 1.0)?;
                break;
            }
        }
    }
    let mean = latencies.mean().unwrap_or(0.0);
    let squares = values.iter();
    let squares = squares.map(|(value, count)| (*value as f64 - mean).powi(2) * *count as f64);
    let deviation = (squares.sum::<f64>() / all.max(1) as f64).sqrt();
    let max = ms(latencies.max().unwrap_or(0) as f64);
    let (mean, deviation) = (ms(mean), ms(deviation));
    writeln!(
        out,
        "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]"
    )?;
    writeln!(out, "#[Max     = {max:12.3}, Total count    = {all:12}]")?;
    let buckets = index(highest(latencies)) >> HALF_BITS;
    let each = 2 << HALF_BITS;
    writeln!(out, "#[Buckets = {buckets:12}, SubBuckets     = {each:12}]")
}

/// A value of each filled bucket of HdrHistogram in order, with the count: the middle of a bucket
/// of ours, and the exact maximum.
fn values(latencies: &Histogram) -> Vec<(u64, u64)> {
    let (min, max) = (latencies.min().unwrap_or(0), latencies.max().unwrap_or(0));
    let mut values: Vec<(u64, u64)> = Vec::new();
    for (low, high, count) in latencies.buckets() {
        let middle = (low + (high - low) / 2).clamp(min, max);
        let at_max = u64::from((low..=high).contains(&max));
        for (value, count) in [(middle, count - at_max), (max, at_max)] {
            match values.last_mut() {
                Some((last, all)) if index(*last) == index(value) => *all += count,
                _ if count > 0 => values.push((value, count)),
                _ => {}
            }
        }
    }
    values
}

/// The highest value that the histogram has room for.
fn highest(latencies: &Histogram) -> u64 {
    HIGHEST.max(latencies.max().unwrap_or(0))
}

/// log2 of the width of a value's bucket.
fn shift(value: u64) -> u32 {
    (u64::BITS - value.leading_zeros()).saturating_sub(HALF_BITS + 1)
}

/// The place of a value among the counts.
fn index(value: u64) -> usize {
    let shift = shift(value);
    (u64::from(shift) << HALF_BITS) as usize + (value >> shift) as usize
}

/// The highest value of the same bucket.
fn highest_equivalent(value: u64) -> u64 {
    value | ((1 << shift(value)) - 1)
}

/// The histogram in version 2: counts, and runs of empty buckets as negative numbers.
fn encoded(latencies: &Histogram) -> Vec<u8> {
    let (mut counts, mut next) = (Vec::new(), 0);
    for (value, count) in values(latencies) {
        let index = index(value);
        if index > next {
            put(&mut counts, next as i64 - index as i64);
        }
        put(&mut counts, i64::try_from(count).unwrap_or(i64::MAX));
        next = index + 1;
    }
    let mut bytes = Vec::with_capacity(40 + counts.len());
    // no offset of the counts
    for word in [COOKIES[0], counts.len() as u32, 0, DIGITS.into()] {
        bytes.extend(word.to_be_bytes());
    }
    for word in [1, highest(latencies), 1.0f64.to_bits()] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(counts);
    bytes
}

fn compressed(latencies: &Histogram) -> io::Result<Vec<u8>> {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(&encoded(latencies))?;
    let packed = zlib.finish()?;
    let head = [COOKIES[1], packed.len() as u32].map(u32::to_be_bytes);
    Ok([&head.concat()[..], &packed].concat())
}

/// Appends a number in ZigZag LEB128; the ninth byte has eight bits.
fn put(to: &mut Vec<u8>, number: i64) {
    let mut left = ((number << 1) ^ (number >> 63)) as u64;
    for _ in 0..8 {
        if left < 0x80 {
            break;
        }
        to.push(left as u8 | 0x80);
        left >>= 7;
    }
    to.push(left as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::ZlibDecoder;
    use proptest::prelude::*;
    use std::io::Read;

    /// The counts by place, as `AbstractHistogram.fillCountsArrayFromSourceBuffer` reads them.
    fn decoded(mut bytes: &[u8]) -> Vec<(usize, u64)> {
        let (mut place, mut counts) = (0, Vec::new());
        while !bytes.is_empty() {
            let (mut number, mut nth) = (0u64, 0);
            loop {
                let byte = bytes[0];
                bytes = &bytes[1..];
                let (low, is_last) = match nth {
                    8 => (u64::from(byte), true),
                    _ => (u64::from(byte & 0x7f), byte < 0x80),
                };
                number |= low << (7 * nth);
                nth += 1;
                if is_last {
                    break;
                }
            }
            let number = (number >> 1) as i64 ^ -((number & 1) as i64);
            if number < 0 {
                place += number.unsigned_abs() as usize;
            } else {
                counts.push((place, number as u64));
                place += 1;
            }
        }
        counts
    }

    proptest! {
        #[test]
        fn every_latency_is_in_the_bucket_of_its_value(values in prop::collection::vec((1u64..1 << 50, 1u64..1 << 40), 1..50)) {
            let mut latencies = Histogram::new();
            for (value, times) in &values {
                latencies.record_many(*value, *times);
            }
            let bytes = compressed(&latencies).unwrap();
            prop_assert_eq!(&bytes[..4], &[0x1c, 0x84, 0x93, 0x14]);
            let mut plain = Vec::new();
            ZlibDecoder::new(&bytes[8..]).read_to_end(&mut plain).unwrap();
            prop_assert_eq!(&plain[..4], &[0x1c, 0x84, 0x93, 0x13]);
            prop_assert_eq!(u32::from_be_bytes(plain[4..8].try_into().unwrap()) as usize, plain.len() - 40);
            let counts = decoded(&plain[40..]);
            let all: u64 = counts.iter().map(|(_, count)| count).sum();
            prop_assert_eq!(all, latencies.count());
            let (last, _) = counts[counts.len() - 1];
            prop_assert_eq!(last, index(latencies.max().unwrap()));
        }

        #[test]
        fn a_place_has_the_values_up_to_its_highest(value in 1u64..1 << 62) {
            let highest = highest_equivalent(value);
            prop_assert!(highest >= value && (highest - value) as f64 <= value as f64 / 1_000.0);
            prop_assert_eq!(index(highest), index(value));
            prop_assert_eq!(index(highest + 1), index(value) + 1);
        }
    }

    #[test]
    fn percentiles_end_with_the_exact_maximum_and_all_counts() {
        let mut latencies = Histogram::new();
        latencies.record_many(1_000_000, 9);
        latencies.record(7_777_777);
        let mut text = Vec::new();
        write_levels(&mut text, &latencies).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[2], ["1.000", "0.000000000000", "9", "1.00"]);
        let last = lines
            .iter()
            .find(|line| line.get(1) == Some(&"1.000000000000"));
        assert_eq!(last.unwrap()[..], ["7.778", "1.000000000000", "10"]);
        assert!(
            text.contains("#[Max     =        7.778, Total count    =           10]"),
            "{text}"
        );
    }

    /// What `Histogram.outputPercentileDistribution(out, 5, 1e6)` of HdrHistogram 2.2.2 prints.
    const JAVA: &str = "\
\x20      Value     Percentile TotalCount 1/(1-Percentile)

       1.051 0.000000000000          1           1.00
       1.296 0.100000000000          5           1.11
       1.296 0.200000000000          5           1.25
       1.542 0.300000000000         12           1.43
       1.542 0.400000000000         12           1.67
       1.542 0.500000000000         12           2.00
       1.788 0.550000000000         22           2.22
       1.788 1.000000000000         22
#[Mean    =        1.586, StdDeviation   =        0.218]
#[Max     =        1.788, Total count    =           22]
#[Buckets =           32, SubBuckets     =         2048]
";

    #[test]
    fn percentiles_are_those_of_hdr_histogram() {
        let mut latencies = Histogram::new();
        for nth in 0..4 {
            latencies.record_many(((256 + 60 * nth) << 12) + 2047, 1 + 3 * nth);
        }
        let mut text = Vec::new();
        write_levels(&mut text, &latencies).unwrap();
        // its mean is that of the middles of its buckets, ours is exact
        let java = JAVA.replace("Mean    =        1.586", "Mean    =        1.587");
        assert_eq!(String::from_utf8(text).unwrap(), java);
    }

    #[test]
    fn a_tag_has_no_separator_of_the_log() {
        let mut line = Vec::new();
        write_interval(
            &mut line,
            "keepalive=on, rate=5/s at x",
            (0.5, 1.0),
            &Histogram::new(),
        )
        .unwrap();
        let line = String::from_utf8(line).unwrap();
        assert!(
            line.starts_with("Tag=keepalive=on;rate=5/s_at_x,0.500,1.000,0.000,HISTFAAA"),
            "{line}"
        );
    }
}
