//! The forwarder process: reads frames from both rings, passes them to the [`Emulator`], and sends
//! the frames that are due. One thread; no work while the link is idle.

use super::channel::Channel;
use super::message::ForwarderCommand;
use crate::emulator::packet::VNET;
use crate::emulator::{Emulator, FlowDirection, Queued};
use intact_sys::packet::{BATCH, MOST_FRAMES, PacketRing, VIRTIO_NET_HEADER};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::thread::ClockId;
use std::io;

/// The thread sleeps until this long before a packet is due and then spins, because the kernel's
/// wake-ups are late.
const SPIN: u64 = 50_000;
/// With a rate, packets are due one by one. Packets due within this time are sent in the same call.
const TOGETHER: u64 = 20_000;
/// A timestamp older than this shows a step of the wall clock, not a long queue.
const OLDEST_STAMP: u64 = 1_000_000_000;
/// Batches that empty a full ring.
const CATCH_UP: usize = MOST_FRAMES.div_ceil(BATCH);
/// Loops between two checks for commands while there is always work.
const TURNS: u32 = 64;

// the emulator parses packets as the ring gives them
const _: () = assert!(VNET == VIRTIO_NET_HEADER);

/// Forwards packets until the keeper ends.
pub(super) struct Forwarder {
    /// By the direction in which their packets go.
    rings: [PacketRing; 2],
    middle: Emulator,
    keeper: Channel,
    together: u64,
}

impl Forwarder {
    /// `client` and `server` are the rings of the middle's ends.
    pub(super) fn new(
        client: PacketRing,
        server: PacketRing,
        middle: Emulator,
        keeper: Channel,
    ) -> Forwarder {
        Forwarder {
            rings: [client, server],
            middle,
            keeper,
            together: 0,
        }
    }

    /// Runs until the keeper ends.
    pub(super) fn run(mut self) -> io::Result<()> {
        let mut batch = Vec::with_capacity(BATCH);
        let mut turns = 0;
        loop {
            let worked = self.take() | self.release(&mut batch);
            let wait = if worked {
                turns += 1;
                if turns < TURNS {
                    continue;
                }
                Some(0)
            } else {
                match self.wait() {
                    Some(0) => continue,
                    wait => wait,
                }
            };
            turns = 0;
            if self.sleep(wait)? && !self.obey()? {
                return Ok(());
            }
        }
    }

    /// Reads the frames that wait in the rings. Returns whether there were any.
    fn take(&mut self) -> bool {
        let mut any = false;
        // reads both clocks together, to convert the kernel's wall-clock timestamps to monotonic
        // time
        let (now, wall) = (nanos(ClockId::Monotonic), nanos(ClockId::Realtime));
        for direction in FlowDirection::BOTH {
            let ring = &mut self.rings[direction as usize];
            for _ in 0..BATCH {
                let Some(frame) = ring.peek() else { break };
                any = true;
                if frame.is_whole {
                    // a timestamp in the future, or a very old one, shows a step of the wall clock
                    let age = wall.checked_sub(frame.at).filter(|age| *age < OLDEST_STAMP);
                    let at = now.saturating_sub(age.unwrap_or(0));
                    self.middle.arrive(direction, frame.bytes, at);
                } else {
                    self.middle.counts[direction as usize].failed += 1;
                }
                ring.advance();
            }
        }
        any
    }

    /// Reads the frames that arrived before now, so that they are counted. Bounded, because traffic
    /// may not pause.
    fn catch_up(&mut self) {
        for _ in 0..CATCH_UP {
            if !self.take() {
                return;
            }
        }
    }

    /// Sends the frames that are due. Returns whether there were any.
    fn release(&mut self, batch: &mut Vec<Queued>) -> bool {
        let mut any = false;
        for direction in FlowDirection::BOTH {
            let now = nanos(ClockId::Monotonic) + self.together;
            while batch.len() < BATCH
                && let Some(packet) = self.middle.release(direction, now)
            {
                batch.push(packet);
            }
            if batch.is_empty() {
                continue;
            }
            any = true;
            let onward = &self.rings[1 - direction as usize];
            let mut left = &batch[..];
            let mut refused = [false; BATCH];
            while !left.is_empty() {
                let sent = onward.send(left.iter().map(|packet| &packet.bytes[..]));
                left = &left[sent..];
                if !left.is_empty() && sent == 0 {
                    refused[batch.len() - left.len()] = true;
                    left = &left[1..];
                }
            }
            let now = nanos(ClockId::Monotonic);
            for (packet, refused) in batch.drain(..).zip(refused) {
                self.middle.sent(direction, packet, now, !refused);
            }
        }
        any
    }

    /// How long to sleep, in ns; zero: not at all; `None`: until a frame or a command arrives.
    fn wait(&self) -> Option<u64> {
        let due = self.middle.next()?.saturating_sub(self.together);
        loop {
            let left = due.saturating_sub(nanos(ClockId::Monotonic));
            if left > SPIN {
                return Some(left - SPIN);
            }
            if left == 0 || self.rings.iter().any(PacketRing::has_packet) {
                return Some(0);
            }
            std::hint::spin_loop();
        }
    }

    /// Sleeps until a frame or a command arrives, or the time is over. Returns whether a command
    /// arrived.
    fn sleep(&self, wait: Option<u64>) -> io::Result<bool> {
        let timeout = wait.map(|wait| Timespec {
            tv_sec: (wait / 1_000_000_000) as i64,
            tv_nsec: (wait % 1_000_000_000) as _,
        });
        let mut watched = [
            PollFd::from_borrowed_fd(self.keeper.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.rings[0].as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.rings[1].as_fd(), PollFlags::IN),
        ];
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) => Ok(!watched[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Executes a command of the keeper. `false`: the keeper has ended.
    fn obey(&mut self) -> io::Result<bool> {
        let Some((order, _)) = self.keeper.receive::<ForwarderCommand>()? else {
            return Ok(false);
        };
        match order {
            ForwarderCommand::Begin(spec) => {
                self.together = if spec.rate.is_some() { TOGETHER } else { 0 };
                self.middle.begin(spec);
                for ring in &self.rings {
                    ring.dropped();
                }
                self.keeper.send(&(), &[])?;
            }
            ForwarderCommand::Change(change) => {
                self.middle.change(&change);
                self.keeper.send(&(), &[])?;
            }
            ForwarderCommand::Account => {
                self.catch_up();
                for (counts, ring) in self.middle.counts.iter_mut().zip(&self.rings) {
                    counts.failed += ring.dropped();
                }
                let account = self.middle.account();
                self.keeper.send(&account, &[])?;
            }
        }
        Ok(true)
    }
}

fn nanos(clock: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
