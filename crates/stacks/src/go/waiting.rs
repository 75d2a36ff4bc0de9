//! The goroutine that waits for another one.
//!
//! Go's library opens connections in goroutines of its own: `net/http` one for each connection that
//! a request wants, `net` one for each kind of address. The outer goroutine waits in a channel that
//! both know, and that no other pair uses. So the channel is looked for in the frames of the inner
//! one; its list of receivers has the outer one. Of two candidates none is believed, and nothing
//! may change while it is read.

use super::{Frame, Go};
use crate::process::{Copied, Memory, ReadBytes, half, word};
use std::collections::BTreeSet;
use std::time::Duration;

/// Bytes of the inner frames that are searched, at most.
const MAX_SEARCHED: u64 = 1 << 14;
/// Bytes of the outer stack that are copied, at most.
const MAX_STACK: u64 = 1 << 16;
/// Values that a function literal has with it.
const MAX_CAPTURED: usize = 16;
/// How often a receiver is looked for, and how long after one another.
const TRIES: usize = 4;
const BETWEEN: Duration = Duration::from_micros(50);
/// What is read of a goroutine, in bytes, and where its stack pointer is.
const GOROUTINE: usize = 96;
const SCHEDULED: usize = 56;

/// A function whose goroutine is waited for.
struct Handover {
    /// The beginning of its name.
    inner: &'static str,
    /// The function that waits.
    outer: &'static str,
    channels: fn(&Go, Memory, u64) -> Vec<u64>,
}

const HANDOVERS: &[Handover] = &[
    Handover {
        inner: "net.(*sysDialer).dialParallel.",
        outer: "net.(*sysDialer).dialParallel",
        channels: Go::results,
    },
    Handover {
        inner: "net/http.(*Transport).dialConnFor",
        outer: "net/http.(*Transport).getConn",
        channels: Go::wanted,
    },
];

/// A goroutine that waits.
pub(super) struct Waiting {
    pub(super) frames: Vec<Frame>,
    /// The frame that waits for the other goroutine.
    pub(super) from: usize,
    pub(super) stack: Copied,
}

/// A channel with one receiver that waits.
#[derive(PartialEq, Eq)]
struct Channel {
    capacity: u64,
    element: u64,
    receiver: u64,
}

impl Go {
    /// The goroutine that waits for the one with these frames.
    pub(super) fn waiting(
        &mut self,
        memory: Memory,
        stack: &dyn ReadBytes,
        frames: &[Frame],
    ) -> Option<Waiting> {
        let last = frames.last().filter(|frame| frame.site.is_top)?;
        let (handover, inner) = HANDOVERS.iter().find_map(|handover| {
            let inner = frames.iter().rposition(|frame| {
                let mut calls = frame.site.calls.iter();
                calls.any(|call| call.function.starts_with(handover.inner))
            });
            Some((handover, inner?))
        })?;
        let inner = &frames[inner];
        let length = (last.end - inner.start).min(MAX_SEARCHED);
        let words = stack.bytes(inner.start, length as usize)?;
        let mut addresses: BTreeSet<u64> = (0..words.len())
            .step_by(8)
            .filter_map(|at| word(&words, at))
            .filter(|address| *address > 4096 && address.is_multiple_of(8))
            .collect();
        addresses.retain(|address| !(inner.start..last.end).contains(address));
        let channels: BTreeSet<u64> = addresses
            .into_iter()
            .flat_map(|address| (handover.channels)(self, memory, address))
            .collect();
        let mut channels = channels.into_iter();
        let (Some(channel), None) = (channels.next(), channels.next()) else {
            return None;
        };
        // the outer goroutine may be on its way to wait
        for _ in 0..TRIES {
            let state = self.channel(memory, channel)?;
            if state.receiver != 0 {
                return self.receiver(memory, channel, handover.outer);
            }
            std::thread::sleep(BETWEEN);
        }
        None
    }

    /// The goroutine that waits for this channel in this function.
    fn receiver(&mut self, memory: Memory, channel: u64, outer: &str) -> Option<Waiting> {
        let before = self
            .channel(memory, channel)
            .filter(|it| it.receiver != 0)?;
        let goroutine = memory.word(before.receiver)?;
        let state = memory.bytes(goroutine, GOROUTINE)?;
        let (low, high) = (word(&state, 0)?, word(&state, 8)?);
        let (sp, pc) = (word(&state, SCHEDULED)?, word(&state, SCHEDULED + 8)?);
        // it names itself, and its stack pointer is in its stack
        (word(&state, SCHEDULED + 16)? == goroutine && (low..high).contains(&sp)).then_some(())?;
        let length = (high - sp).min(MAX_STACK);
        let stack = Copied {
            start: sp,
            bytes: memory.bytes(sp, length as usize)?,
        };
        let frames = self.walk(memory, &stack, sp, pc, true);
        let from = frames.iter().position(|frame| {
            let mut calls = frame.site.calls.iter();
            calls.any(|call| *call.function == *outer)
        })?;
        let is_same = memory.word(before.receiver)? == goroutine
            && self.channel(memory, channel)? == before
            && memory.bytes(goroutine, SCHEDULED + 24)? == state[..SCHEDULED + 24];
        is_same.then_some(Waiting {
            frames,
            from,
            stack,
        })
    }

    /// An open channel without a value, with one receiver or none.
    fn channel(&self, memory: Memory, address: u64) -> Option<Channel> {
        let head = memory.bytes(address, 104)?;
        // Go 1.23 has one more field before the type of the elements
        let kind = if self.program.version < 23 { 32 } else { 40 };
        let (first, last) = (word(&head, kind + 24)?, word(&head, kind + 32)?);
        let is_channel = self.program.types.contains(&word(&head, kind)?)
            && word(&head, 0)? == 0
            && half(&head, 28)? == 0
            && first == last;
        is_channel.then_some(Channel {
            capacity: word(&head, 8)?,
            element: word(&head, 24)? & 0xffff,
            receiver: first,
        })
    }

    /// The channel for the result of a dial, if this is a connection that a request of `net/http`
    /// wants: it has the scheme of its URL twice.
    fn wanted(&self, memory: Memory, address: u64) -> Vec<u64> {
        let channel = || {
            let want = memory.bytes(address, 21 * 8)?;
            let field = |nth: usize| word(&want, nth * 8);
            let (scheme, length) = (field(1)?, field(2)?);
            ((field(8)?, field(9)?) == (scheme, length)).then_some(())?;
            let length = usize::try_from(length)
                .ok()
                .filter(|length| (4..=5).contains(length))?;
            let scheme = memory.bytes(scheme, length)?;
            matches!(&*scheme, b"http" | b"https").then_some(())?;
            field(match self.program.version {
                ..=21 => 15,
                22 => 13,
                _ => 20,
            })
        };
        channel().into_iter().collect()
    }

    /// Channels for the results of dials to addresses of both kinds, which a function literal has.
    fn results(&self, memory: Memory, address: u64) -> Vec<u64> {
        let is_it = |address: &u64| {
            let channel = self.channel(memory, *address);
            channel.is_some_and(|one| (one.capacity, one.element) == (0, 40))
        };
        if is_it(&address) {
            return vec![address];
        }
        let text = self.program.tables.text..self.program.tables.text_end;
        let literal = memory.bytes(address, (MAX_CAPTURED + 1) * 8);
        let Some(literal) = literal.filter(|one| word(one, 0).is_some_and(|at| text.contains(&at)))
        else {
            return Vec::new();
        };
        let captured = (1..=MAX_CAPTURED).filter_map(|nth| word(&literal, nth * 8));
        captured.filter(is_it).collect()
    }
}
