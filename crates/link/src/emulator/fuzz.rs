//! Entry of a fuzz target into the emulator.

use super::{Emulator, FlowDirection};
use crate::spec::Spec;

/// Sends frames through a link. In `bytes` each frame has a header of three bytes. The lowest bit
/// of the first byte is the direction; its other bits are the ms since the last frame. The next two
/// bytes are the length of the frame.
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
    let (mut arrived, mut counted) = (0, 0);
    for counts in middle.counts {
        arrived += counts.arrived;
        counted += counts.delivered + counts.lost + counts.dropped + counts.tail_dropped;
        counted += counts.forgotten + counts.failed;
    }
    // each forgotten packet may have been answered by one that was delivered
    assert!(
        (arrived..=arrived + resets).contains(&counted),
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
