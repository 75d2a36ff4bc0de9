//! Emulates a link: delay, jitter, rate, loss, drops and forgotten flows. No sockets and no clock:
//! the caller passes packets and times in ns of one clock, and takes the packets that are due.

mod flows;
#[cfg(fuzzing)]
pub(crate) mod fuzz;
pub(crate) mod packet;
mod queue;

use crate::spec::{Blocked, Forgotten, LinkChange, Spec};
use crate::stats::{Counts, Lateness, LinkStats};
use flows::{Flows, Verdict};
use intact_ledger::Histogram;
use queue::Queue;
pub(crate) use queue::Queued;
use std::time::Duration;

/// Ethernet's preamble, frame check and gap, which take time on a wire and are not in a frame.
const WIRE_OVERHEAD: u64 = 24;

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowDirection {
    /// From client to server.
    Up = 0,
    /// From server to client.
    Down = 1,
}

impl FlowDirection {
    pub(crate) const BOTH: [FlowDirection; 2] = [FlowDirection::Up, FlowDirection::Down];

    fn back(self) -> FlowDirection {
        match self {
            FlowDirection::Up => FlowDirection::Down,
            FlowDirection::Down => FlowDirection::Up,
        }
    }
}

/// The middle of a link.
#[derive(Default)]
pub(crate) struct Emulator {
    spec: Spec,
    lanes: [Queue; 2],
    flows: Flows,
    random: u64,
    pub(crate) counts: [Counts; 2],
    lateness: Histogram,
    late: u64,
}

impl Emulator {
    /// A link as `spec` says; `seed` decides loss and jitter.
    pub(crate) fn new(spec: Spec, seed: u64) -> Emulator {
        Emulator {
            spec,
            random: seed,
            ..Emulator::default()
        }
    }

    /// Takes a frame that came from one side at `at`.
    pub(crate) fn arrive(&mut self, direction: FlowDirection, frame: &[u8], at: u64) {
        let way = direction as usize;
        self.counts[way].arrived += 1;
        if blocks(self.spec.drop, direction) {
            self.counts[way].dropped += 1;
            return;
        }
        // looks flows up only where they matter, because the search takes time
        let keeps_order = !self.spec.jitter.is_zero() && !self.spec.reorder;
        let packet = if keeps_order || self.spec.nat.is_some() {
            packet::read(frame, direction)
        } else {
            None
        };
        if let (Some(nat), Some(packet)) = (self.spec.nat, &packet)
            && self.flows.admit(nat, packet, direction, at) == Verdict::Forgotten
        {
            self.counts[way].forgotten += 1;
            if nat.forgotten == Forgotten::Rst
                && let Some(answer) = packet::reset(frame)
            {
                // the box stands in the middle: half of the way there, half of the way back
                let due = at + nanos(self.spec.round_trip()) / 2;
                self.queue(direction.back(), due, &answer);
            }
            return;
        }
        if self.spec.loss_ppm > 0 && self.random() % 1_000_000 < u64::from(self.spec.loss_ppm) {
            self.counts[way].lost += 1;
            return;
        }
        let Some(departure) =
            self.depart(direction, frame.len() - packet::VNET.min(frame.len()), at)
        else {
            self.counts[way].tail_dropped += 1;
            return;
        };
        let delay = match direction {
            FlowDirection::Up => self.spec.up,
            FlowDirection::Down => self.spec.down,
        };
        let jitter = nanos(self.spec.jitter);
        let mut due = departure + nanos(delay);
        if jitter > 0 {
            due = (due + self.random() % (2 * jitter + 1)).saturating_sub(jitter);
            if keeps_order && let Some(packet) = &packet {
                due = self.flows.in_order(packet, direction, at, due);
            }
        } else {
            due = due.max(self.lanes[way].last);
            self.lanes[way].last = due;
        }
        self.queue(direction, due, frame);
    }

    /// When the next packet of either direction is due.
    pub(crate) fn next(&self) -> Option<u64> {
        self.lanes.iter().filter_map(Queue::next).min()
    }

    /// Takes the next packet that is due by `now`.
    pub(crate) fn release(&mut self, direction: FlowDirection, now: u64) -> Option<Queued> {
        self.lanes[direction as usize].pop(now)
    }

    /// Counts a packet that was released at `now`, and recycles its buffer.
    pub(crate) fn sent(&mut self, direction: FlowDirection, packet: Queued, now: u64, went: bool) {
        let counts = &mut self.counts[direction as usize];
        if went {
            counts.delivered += 1;
            let lateness = now.saturating_sub(packet.due);
            self.lateness.record(lateness);
            self.late += u64::from(lateness > nanos(tolerance(self.spec.round_trip())));
        } else {
            counts.failed += 1;
        }
        self.lanes[direction as usize].recycle(packet);
    }

    /// Switches to this link for packets that arrive from now on, and resets the counts.
    pub(crate) fn begin(&mut self, spec: Spec) {
        self.spec = spec;
        self.counts = Default::default();
        self.lateness = Histogram::new();
        self.late = 0;
    }

    /// Switches what a running link can switch.
    pub(crate) fn change(&mut self, change: &LinkChange) {
        if let Some(drop) = change.drop {
            self.spec.drop = drop;
        }
        if let Some((up, down)) = change.delays {
            (self.spec.up, self.spec.down) = (up, down);
            self.spec.jitter = self.spec.jitter.min(up).min(down);
        }
        if let Some(loss) = change.loss_ppm {
            self.spec.loss_ppm = loss;
        }
        if change.forget_queued {
            for (lane, counts) in self.lanes.iter_mut().zip(&mut self.counts) {
                counts.dropped += lane.clear();
            }
        }
        if change.forget_flows {
            self.flows.clear();
        }
    }

    /// The counts since [`begin`](Self::begin).
    pub(crate) fn account(&self) -> LinkStats {
        let [up, down] = self.counts;
        let us = |ns: f64| ns / 1e3;
        let extremes = self.lateness.quantile(0.5).zip(self.lateness.max());
        LinkStats {
            lateness: extremes.map(|(p50, max)| Lateness {
                p50_us: us(p50),
                p99_us: self.lateness.supported_quantile(0.99).map(us),
                max_us: us(max as f64),
                tolerance_us: us(nanos(tolerance(self.spec.round_trip())) as f64),
                late: self.late,
            }),
            up,
            down,
        }
    }

    /// When the last bit of `bytes` is on the wire; `None` where the queue before it is full.
    fn depart(&mut self, direction: FlowDirection, bytes: usize, at: u64) -> Option<u64> {
        let Some(rate) = self.spec.rate else {
            return Some(at);
        };
        let lane = &mut self.lanes[direction as usize];
        let wait = lane.busy.saturating_sub(at);
        // a queue of one round trip, the usual rule, and a few packets for slow and short links
        let room =
            nanos(self.spec.round_trip()).max(20_000_000) + 30_000 * 8 * 1_000_000_000 / rate;
        if wait > room {
            return None;
        }
        let bits = (bytes as u64 + WIRE_OVERHEAD) * 8;
        lane.busy = at.max(lane.busy) + bits * 1_000_000_000 / rate;
        Some(lane.busy)
    }

    fn queue(&mut self, direction: FlowDirection, due: u64, frame: &[u8]) {
        if !self.lanes[direction as usize].push(due, frame) {
            self.counts[direction as usize].failed += 1;
        }
    }

    /// SplitMix64.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The lateness that a link of this round trip tolerates: 5 % of it, but 0.1 to 1 ms.
fn tolerance(round_trip: Duration) -> Duration {
    (round_trip / 20).clamp(Duration::from_micros(100), Duration::from_millis(1))
}

fn blocks(blocked: Blocked, direction: FlowDirection) -> bool {
    match blocked {
        Blocked::None => false,
        Blocked::Up => direction == FlowDirection::Up,
        Blocked::Down => direction == FlowDirection::Down,
        Blocked::Both => true,
    }
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

#[cfg(test)]
mod tests;
