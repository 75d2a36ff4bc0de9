//! Retransmissions and acknowledgements, each added to the exchange during which it was
//! observed.
//!
//! A capture observes them in the packets, a relay in the counts of its kernel. Must not judge
//! them.

use intact_ledger::{Exchange, Nanos};
use std::collections::VecDeque;

/// Limit of events per connection; the latest are kept.
const KEPT: usize = 256;

/// The observed events of one connection.
#[derive(Default)]
pub(crate) struct SegmentEvents {
    /// Every packet is observed, so a count of 0 is an observation, too.
    pub(crate) sees_packets: bool,
    resent: VecDeque<(Nanos, u32)>,
    late_acks: VecDeque<Nanos>,
    /// How long requests took to be acknowledged.
    acknowledged: VecDeque<(Nanos, u64)>,
}

impl SegmentEvents {
    /// Records the number of segments that were sent again since the last call.
    pub(crate) fn note_resent(&mut self, count: u32, at: Nanos) {
        push(&mut self.resent, (at, count));
    }

    /// Records data that arrived at `at` and had waited for a late acknowledgement.
    pub(crate) fn note_late_ack(&mut self, at: Nanos) {
        push(&mut self.late_acks, at);
    }

    /// Records that the last request took this many nanoseconds to be acknowledged, by `at`.
    pub(crate) fn note_acknowledged(&mut self, nanos: u64, at: Nanos) {
        push(&mut self.acknowledged, (at, nanos));
    }

    /// Adds the events during an exchange whose start and end are set.
    pub(crate) fn fill(&self, row: &mut Exchange) {
        let is_during = |at: Nanos| row.at <= at && at <= row.end;
        let resent = self.resent.iter().filter(|(at, _)| is_during(*at));
        let counts: Vec<u32> = resent.map(|(_, count)| *count).collect();
        let late_acks = self.late_acks.iter().filter(|at| is_during(**at)).count();
        row.retransmissions =
            (self.sees_packets || !counts.is_empty()).then(|| counts.iter().sum());
        row.delayed_acks = self.sees_packets.then_some(late_acks as u32);
        let mut during = self.acknowledged.iter().filter(|(at, _)| is_during(*at));
        row.acknowledged_after = match (during.next(), during.next()) {
            (Some((_, nanos)), None) => Some(*nanos),
            _ => None,
        };
    }
}

fn push<T>(all: &mut VecDeque<T>, one: T) {
    if all.len() == KEPT {
        all.pop_front();
    }
    all.push_back(one);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(events: &SegmentEvents, from: u64, to: u64) -> (Option<u32>, Option<u32>) {
        let mut row = Exchange::new(1, Nanos(from));
        row.end = Nanos(to);
        events.fill(&mut row);
        (row.retransmissions, row.delayed_acks)
    }

    #[test]
    fn a_count_that_was_not_read_is_absent_and_one_of_a_capture_is_zero() {
        let mut kernel = SegmentEvents::default();
        kernel.note_resent(0, Nanos(15));
        kernel.note_resent(2, Nanos(35));
        assert_eq!(filled(&kernel, 0, 10), (None, None));
        assert_eq!(filled(&kernel, 11, 20), (Some(0), None));
        assert_eq!(filled(&kernel, 30, 40), (Some(2), None));
        kernel.note_acknowledged(7, Nanos(35));
        kernel.note_acknowledged(9, Nanos(45));
        let after = |from, to| {
            let mut row = Exchange::new(1, Nanos(from));
            row.end = Nanos(to);
            kernel.fill(&mut row);
            row.acknowledged_after
        };
        assert_eq!(
            [after(30, 40), after(30, 50), after(0, 20)],
            [Some(7), None, None]
        );
        let mut capture = SegmentEvents {
            sees_packets: true,
            ..SegmentEvents::default()
        };
        capture.note_late_ack(Nanos(15));
        assert_eq!(filled(&capture, 0, 10), (Some(0), Some(0)));
        assert_eq!(filled(&capture, 11, 20), (Some(0), Some(1)));
    }
}
