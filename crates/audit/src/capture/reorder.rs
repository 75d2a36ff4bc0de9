//! The packets of a capture in the order of their times. A program that reads several interfaces
//! or processors writes them out of order, by less than a second. Memory is bounded.

use super::Packet;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Packets are out of order by less than this, in nanoseconds.
pub(super) const REORDERING: u64 = 1_000_000_000;
/// Limit of bytes of packets that wait.
const MAX_BYTES: usize = 16 << 20;
/// Number of packets without a step back after which packets no longer wait.
const PATIENCE: u32 = 100_000;

/// A packet that waits, with its place in the file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    at: u64,
    place: u64,
    link: u32,
    is_cut: bool,
    bytes: Vec<u8>,
}

impl Held {
    fn packet(&self) -> Packet<'_> {
        Packet {
            at: self.at,
            link: self.link,
            bytes: &self.bytes,
            is_cut: self.is_cut,
        }
    }
}

/// Packets wait until no earlier one can follow.
#[derive(Debug, Default)]
pub(super) struct Reorder {
    waiting: BinaryHeap<Reverse<Held>>,
    bytes: usize,
    places: u64,
    latest: u64,
    /// Packets in a row without a step back.
    in_order: u32,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
}

impl Reorder {
    /// Takes the next packet of the file. Passes on those before which none can follow.
    pub(super) fn take(&mut self, packet: &Packet<'_>, emit: &mut dyn FnMut(&Packet<'_>)) {
        // the clock was set, or another file begins
        if self.latest.saturating_sub(packet.at) >= REORDERING {
            self.finish(emit);
            self.latest = packet.at;
        }
        self.in_order = match packet.at < self.latest {
            true => 0,
            false => self.in_order.saturating_add(1),
        };
        self.latest = self.latest.max(packet.at);
        if self.in_order > PATIENCE && self.waiting.is_empty() {
            return emit(packet);
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(packet.bytes);
        self.bytes += bytes.len();
        self.places += 1;
        self.waiting.push(Reverse(Held {
            at: packet.at,
            place: self.places,
            link: packet.link,
            is_cut: packet.is_cut,
            bytes,
        }));
        let is_late = |held: &Held| self.latest - held.at >= REORDERING;
        while let Some(Reverse(first)) = self.waiting.peek()
            && (is_late(first) || self.bytes > MAX_BYTES || self.in_order > PATIENCE)
        {
            if !Reorder::pass_first(&mut self.waiting, &mut self.bytes, &mut self.spare, emit) {
                break;
            }
        }
    }

    fn pass_first(
        waiting: &mut BinaryHeap<Reverse<Held>>,
        bytes: &mut usize,
        spare: &mut Vec<Vec<u8>>,
        emit: &mut dyn FnMut(&Packet<'_>),
    ) -> bool {
        let Some(Reverse(first)) = waiting.pop() else {
            return false;
        };
        *bytes -= first.bytes.len();
        emit(&first.packet());
        spare.push(first.bytes);
        true
    }

    /// Passes on all packets that wait.
    pub(super) fn finish(&mut self, emit: &mut dyn FnMut(&Packet<'_>)) {
        while Reorder::pass_first(&mut self.waiting, &mut self.bytes, &mut self.spare, emit) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    /// The packets in the order in which they are passed on: time and content.
    fn passed(packets: &[(u64, u8)]) -> Vec<(u64, u8)> {
        let mut reorder = Reorder::default();
        let mut passed = Vec::new();
        let mut emit = |packet: &Packet<'_>| passed.push((packet.at, packet.bytes[0]));
        for (at, content) in packets {
            let packet = Packet {
                at: *at,
                link: 1,
                bytes: &[*content],
                is_cut: false,
            };
            reorder.take(&packet, &mut emit);
        }
        reorder.finish(&mut emit);
        passed
    }

    #[test]
    fn packets_of_several_interfaces_come_in_the_order_of_their_times() {
        let stored = [
            (0, 1),
            (500 * MS, 3),
            (2 * MS, 2),
            (900 * MS, 5),
            (501 * MS, 4),
        ];
        let contents: Vec<u8> = passed(&stored)
            .iter()
            .map(|(_, content)| *content)
            .collect();
        assert_eq!(contents, [1, 2, 3, 4, 5]);
        // a clock that was set keeps the order of the file
        let stored = [(5000 * MS, 1), (5001 * MS, 2), (10 * MS, 3)];
        assert_eq!(passed(&stored), stored);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_equal_times_keep_their_order(
            packets in prop::collection::vec((0..990_u64, any::<u8>()), 0..60)
        ) {
            let stored: Vec<(u64, u8)> = packets.iter().map(|(ms, one)| (ms * MS, *one)).collect();
            let mut sorted = stored.clone();
            sorted.sort_by_key(|(at, _)| *at);
            prop_assert_eq!(passed(&stored), sorted);
        }
    }
}
