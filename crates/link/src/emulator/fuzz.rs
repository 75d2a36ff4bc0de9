//! The way of a fuzz target into the middle.

use super::{Emulator, FlowDirection};
use crate::spec::Spec;

/// Sends frames through a link: `bytes` is a sequence of one byte (direction in its lowest bit, ms since the last frame in the
/// others), two of length, and that many of frame.
///
/// # Panics
/// When a packet is neither delivered nor counted as something else.
pub fn forward(spec: &Spec, mut bytes: &[u8]) {
    const MS: u64 = 1_000_000;
    let mut middle = Emulator::new(spec.clone(), 7);
    let mut now = 0;
    while let [how, low, high, rest @ ..] = bytes {
        let (frame, rest) = rest.split_at(rest.len().min(u16::from_le_bytes([*low, *high]).into()));
        bytes = rest;
        let direction = FlowDirection::BOTH[usize::from(how & 1)];
        now += u64::from(how >> 1) * MS;
        middle.arrive(direction, frame, now);
        deliver(&mut middle, now);
    }
    deliver(&mut middle, u64::MAX);
    let resets: u64 = middle.counts.iter().map(|counts| counts.forgotten).sum();
    let (mut came, mut told) = (0, 0);
    for counts in middle.counts {
        came += counts.arrived;
        told += counts.delivered + counts.lost + counts.dropped + counts.tail_dropped;
        told += counts.forgotten + counts.failed;
    }
    // each forgotten packet may have been answered by one that was delivered
    assert!(
        (came..=came + resets).contains(&told),
        "{:?}",
        middle.counts
    );
}

fn deliver(middle: &mut Emulator, now: u64) {
    for direction in FlowDirection::BOTH {
        while let Some(packet) = middle.release(direction, now) {
            middle.sent(direction, packet, now, true);
        }
    }
}
