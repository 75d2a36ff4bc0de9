//! What all processes of this machine do with its processors, from /proc/stat and
//! /proc/pressure/cpu. Absent on other systems. Must not judge.

use intact_ledger::{MachineUse, Nanos, Span};
use std::fs;

/// The least time between two counts, in nanoseconds.
const APART: u64 = 200_000_000;
/// Nanoseconds of a tick of /proc/stat: `USER_HZ` is 100 on every architecture that we build for.
const TICK: u64 = 10_000_000;

/// The counts since the machine was started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    cpus: u32,
    busy: Option<u64>,
    steal: Option<u64>,
    waited: Option<u64>,
}

/// Counts over time, so that windows whose bounds are known later get their part.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessorCounts(Vec<(Nanos, Counts)>);

impl ProcessorCounts {
    /// Counts unless it was done just before.
    pub(crate) fn look(&mut self, now: Nanos) {
        let last = self.0.last().map_or(Nanos(0), |(at, _)| *at);
        if now.since(last) >= APART {
            self.count(now);
        }
    }

    /// Counts.
    pub(crate) fn count(&mut self, now: Nanos) {
        self.0.extend(Counts::read().map(|counts| (now, counts)));
    }

    /// The use between two moments, between two counts in proportion to the time; `None` where
    /// nothing was counted then.
    pub(crate) fn between(&self, span: Span) -> Option<MachineUse> {
        let (first, last) = (self.0.first()?.0, self.0.last()?.0);
        let start = span.start.max(first);
        let end = span.end.min(last);
        if start >= end {
            return None;
        }
        let used = |of: fn(&Counts) -> Option<u64>| {
            let (from, to) = (self.at(start, of)?, self.at(end, of)?);
            Some((to - from).max(0.0) as u64)
        };
        Some(MachineUse {
            nanos: end.since(start),
            cpus: self.0.last()?.1.cpus,
            busy: used(|one| one.busy),
            steal: used(|one| one.steal),
            waited: used(|one| one.waited),
        })
    }

    /// A count at a moment between the first and the last one.
    fn at(&self, at: Nanos, of: fn(&Counts) -> Option<u64>) -> Option<f64> {
        let next = self.0.partition_point(|(when, _)| *when < at);
        let (to, after) = self.0.get(next)?;
        let after = of(after)? as f64;
        let Some((from, before)) = next.checked_sub(1).map(|last| &self.0[last]) else {
            return Some(after);
        };
        let before = of(before)? as f64;
        let part = at.since(*from) as f64 / to.since(*from).max(1) as f64;
        Some(before + (after - before) * part)
    }
}

impl Counts {
    fn read() -> Option<Counts> {
        let stat = fs::read_to_string("/proc/stat").ok();
        let pressure = fs::read_to_string("/proc/pressure/cpu").ok();
        Counts::of(stat.as_deref(), pressure.as_deref())
    }

    /// Of the text of /proc/stat and of /proc/pressure/cpu.
    fn of(stat: Option<&str>, pressure: Option<&str>) -> Option<Counts> {
        let stat = stat.unwrap_or_default();
        let mut lines = stat.lines().take_while(|line| line.starts_with("cpu"));
        let all = lines.next().unwrap_or_default();
        let ticks: Vec<u64> = all
            .split_ascii_whitespace()
            .skip(1)
            .map_while(|word| word.parse().ok())
            .collect();
        // user (which includes virtual machines), nice, system, idle, iowait, irq, softirq, steal
        let sum = |fields: &[usize]| {
            let fields = fields.iter().map(|&nth| ticks.get(nth).copied());
            let sum: Option<u64> = fields.sum();
            sum.map(|ticks| ticks.saturating_mul(TICK))
        };
        let waited = pressure.and_then(|text| {
            let some = text.lines().find(|line| line.starts_with("some "))?;
            let micros = some.rsplit_once("total=")?.1.trim();
            Some(micros.parse::<u64>().ok()?.saturating_mul(1_000))
        });
        let counts = Counts {
            cpus: lines.count() as u32,
            busy: sum(&[0, 1, 2, 5, 6]),
            steal: sum(&[7]),
            waited,
        };
        (counts.busy.is_some() || waited.is_some()).then_some(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 10 20 500 40 3 2 7 50 0\ncpu0 1 1 1 1 1 1 1 1 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\nintr 5\n";
    const PRESSURE: &str = "some avg10=86.86 avg60=86.93 avg300=61.80 total=4000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";

    #[test]
    fn what_the_system_does_not_count_is_absent() {
        let both = Counts::of(Some(STAT), Some(PRESSURE)).unwrap();
        assert_eq!(both.cpus, 2);
        assert_eq!((both.busy, both.steal), (Some(135 * TICK), Some(7 * TICK)));
        assert_eq!(both.waited, Some(4_000_000));
        assert_eq!(Counts::of(Some(STAT), None).unwrap().waited, None);
        // before Linux 2.6.11 there was no time for the hypervisor
        let old = Counts::of(Some("cpu 1 1 1 1 1 1 1\ncpu0 1 1 1 1 1 1 1\n"), None).unwrap();
        assert_eq!((old.busy, old.steal), (Some(5 * TICK), None));
        assert_eq!(Counts::of(None, Some(PRESSURE)).unwrap().busy, None);
        assert_eq!(Counts::of(None, None), None);
        assert_eq!(Counts::of(Some("cpu x\n"), Some("some total=x")), None);
    }

    #[test]
    fn niced_loops_of_other_processes_fill_a_second_of_two_processors() {
        let text = |nice, idle, micros| {
            let stat =
                format!("cpu 100 {nice} 20 {idle} 40 3 2 7 0 0\ncpu0 0 0 0 0\ncpu1 0 0 0 0\n");
            let pressure = format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={micros}\n");
            Counts::of(Some(&stat), Some(&pressure)).unwrap()
        };
        let second = Nanos(1_000_000_000);
        let busy = ProcessorCounts(vec![
            (Nanos(0), text(10, 500, 4_000)),
            (second, text(210, 500, 904_000)),
        ]);
        let busy = busy.between(Span::new(Nanos(0), second)).unwrap();
        assert_eq!((busy.cpus, busy.busy), (2, Some(2 * second.0)));
        assert_eq!((busy.steal, busy.waited), (Some(0), Some(900_000_000)));
    }

    #[test]
    fn a_window_gets_its_part_of_the_time_between_two_counts() {
        let count = |busy, waited| Counts {
            cpus: 2,
            busy: Some(busy),
            steal: None,
            waited,
        };
        let counts = ProcessorCounts(vec![
            (Nanos(1_000), count(500, Some(0))),
            (Nanos(2_000), count(1_500, Some(100))),
            (Nanos(3_000), count(1_500, None)),
        ]);
        let between = |from, to| counts.between(Span::new(Nanos(from), Nanos(to)));
        let first = between(1_200, 1_700).unwrap();
        assert_eq!((first.nanos, first.cpus, first.busy), (500, 2, Some(500)));
        assert_eq!((first.waited, first.steal), (Some(50), None));
        let both = between(0, 9_000).unwrap();
        assert_eq!(
            (both.nanos, both.busy, both.waited),
            (2_000, Some(1_000), None)
        );
        assert_eq!(between(4_000, 5_000), None);
        assert_eq!(
            ProcessorCounts::default().between(Span::new(Nanos(0), Nanos(1))),
            None
        );
    }
}
