//! One direction of a TCP connection.

use std::collections::BTreeMap;

use super::{Run, Segment};

/// Limits of the data that waits for a gap to be filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Limit in bytes; above it, the gap counts as lost.
    pub bytes: usize,
    /// Limit of pieces; above it, the gap counts as lost.
    pub pieces: usize,
    /// How long a gap is kept after the receiver has acknowledged its bytes, in nanoseconds. The
    /// acknowledgement shows that only the capture lacks the packet. The gap is kept for a while
    /// because captures reorder packets.
    pub patience: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 1 << 20,
            pieces: 2048,
            patience: 200_000_000,
        }
    }
}

/// The counts of one direction so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamFacts {
    /// When its SYN was captured; `None` for a connection joined later.
    pub syn_at: Option<u64>,
    /// When its FIN was captured.
    pub fin_at: Option<u64>,
    /// When its RST was captured.
    pub rst_at: Option<u64>,
    /// Number of segments of any kind.
    pub segments: u64,
    /// Number of payload bytes that were passed on.
    pub bytes: u64,
    /// Number of payload bytes that the capture lacks.
    pub lost: u64,
    /// Number of segments without new data: the network or the sender repeated them.
    pub repeated: u64,
}

/// Orders the segments of one direction. Offsets count from the first byte after the SYN, or from
/// the first captured byte.
#[derive(Debug, Default)]
pub struct Stream {
    limits: Limits,
    /// Sequence number of offset 0; `None` before the first segment.
    origin: Option<u32>,
    /// The next offset to pass on.
    next: u64,
    waiting: BTreeMap<u64, Piece>,
    waiting_bytes: usize,
    /// The highest offset that the receiver has acknowledged.
    acked: u64,
    facts: StreamFacts,
}

/// Payload after a gap; pieces never overlap.
#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    len: u64,
    at: u64,
}

/// Largest distance within a TCP window (RFC 7323 section 2.3).
const MAX_DISTANCE: i64 = 1 << 30;

impl Stream {
    /// A direction without segments.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// The counts so far.
    pub fn facts(&self) -> &StreamFacts {
        &self.facts
    }

    /// The highest offset that the receiver has acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acked
    }

    /// Number of bytes that wait for a gap to be filled.
    pub fn waiting(&self) -> usize {
        self.waiting_bytes
    }

    /// Whether bytes wait for a gap to be filled.
    pub(super) fn is_blocked(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The sequence number after its SYN, or of the first captured segment.
    pub fn start(&self) -> Option<u32> {
        self.origin
    }

    /// Adds a segment of this direction, and passes on the data that is in order now.
    pub fn push(&mut self, segment: &Segment<'_>, mut emit: impl FnMut(Run<'_>)) {
        let at = segment.at;
        self.facts.segments += 1;
        let first = if segment.syn {
            segment.seq.wrapping_add(1)
        } else {
            segment.seq
        };
        let origin = *self.origin.get_or_insert(first);
        let Some(offset) = self.locate(first, origin) else {
            return;
        };
        if segment.syn && offset == 0 {
            self.facts.syn_at = self.facts.syn_at.or(Some(at));
        }
        if segment.rst {
            self.facts.rst_at = self.facts.rst_at.or(Some(at));
        }
        if segment.fin {
            self.facts.fin_at = self.facts.fin_at.or(Some(at));
        }
        self.take(offset, segment, &mut emit);
        self.give_up_holes(at, &mut emit);
    }

    /// Adds an acknowledgement that the other direction sent at `at`.
    pub fn acknowledge(&mut self, ack: u32, at: u64, mut emit: impl FnMut(Run<'_>)) {
        if let Some(acked) = self.origin.and_then(|origin| self.locate(ack, origin)) {
            self.acked = self.acked.max(acked.max(0) as u64);
            self.give_up_holes(at, &mut emit);
        }
    }

    /// Passes on all data that waits, with its gaps; no more segments follow.
    pub fn finish(&mut self, mut emit: impl FnMut(Run<'_>)) {
        while !self.waiting.is_empty() {
            self.skip_hole(&mut emit);
        }
    }

    /// The offset of a sequence number, nearest to the current position; negative before the start.
    fn locate(&self, seq: u32, origin: u32) -> Option<i64> {
        let expected = origin.wrapping_add(self.next as u32);
        let distance = i64::from(seq.wrapping_sub(expected).cast_signed());
        (distance.abs() <= MAX_DISTANCE).then_some(self.next.cast_signed() + distance)
    }

    fn take(&mut self, offset: i64, segment: &Segment<'_>, emit: &mut impl FnMut(Run<'_>)) {
        let mut len = i64::from(segment.len.max(segment.payload.len() as u32));
        if len == 0 {
            return;
        }
        let next = self.next.cast_signed();
        // a keep-alive probe: one byte (or none) just before the end of the stream
        if len == 1 && offset == next - 1 {
            return;
        }
        if offset + len <= next {
            self.facts.repeated += 1;
            return;
        }
        let known = (next - offset).max(0);
        len -= known;
        let bytes = segment.payload.get(known as usize..).unwrap_or_default();
        let start = (offset + known) as u64;
        if start > self.next || !self.waiting.is_empty() {
            self.insert(start, bytes, len as u64, segment.at);
            self.drain(segment.at, emit);
        } else {
            self.deliver(bytes, len as u64, segment.at, emit);
        }
    }

    /// Stores the new bytes of a piece. The first copy of a byte is kept, as by the receiver.
    fn insert(&mut self, start: u64, bytes: &[u8], len: u64, at: u64) {
        let end = start + len;
        let mut from = start;
        let mut fresh = false;
        while from < end {
            let covered = self
                .waiting
                .range(..=from)
                .next_back()
                .map_or(0, |(&place, piece)| place + piece.len);
            if covered > from {
                from = covered;
                continue;
            }
            let to = self
                .waiting
                .range(from..)
                .next()
                .map_or(end, |(&place, _)| place.min(end));
            let cut = |offset: u64| bytes.len().min((offset - start) as usize);
            let kept = bytes[cut(from)..cut(to)].to_vec();
            self.waiting_bytes += kept.len();
            self.waiting.insert(
                from,
                Piece {
                    bytes: kept,
                    len: to - from,
                    at,
                },
            );
            fresh = true;
            from = to;
        }
        if !fresh {
            self.facts.repeated += 1;
        }
    }

    /// Passes on every contiguous piece; a packet at `at` made that possible.
    fn drain(&mut self, at: u64, emit: &mut impl FnMut(Run<'_>)) {
        while let Some(entry) = self.waiting.first_entry()
            && *entry.key() == self.next
        {
            let piece = entry.remove();
            self.waiting_bytes -= piece.bytes.len();
            self.deliver(&piece.bytes, piece.len, at.max(piece.at), emit);
        }
    }

    fn deliver(&mut self, bytes: &[u8], len: u64, at: u64, emit: &mut impl FnMut(Run<'_>)) {
        self.next += len;
        self.facts.bytes += bytes.len() as u64;
        if !bytes.is_empty() {
            emit(Run::Bytes { bytes, at });
        }
        self.lose(len - bytes.len() as u64, at, emit);
    }

    fn lose(&mut self, len: u64, at: u64, emit: &mut impl FnMut(Run<'_>)) {
        self.facts.lost += len;
        if len > 0 {
            emit(Run::Gap { len, at });
        }
    }

    fn give_up_holes(&mut self, now: u64, emit: &mut impl FnMut(Run<'_>)) {
        while let Some((&start, piece)) = self.waiting.first_key_value() {
            let full =
                self.waiting_bytes > self.limits.bytes || self.waiting.len() > self.limits.pieces;
            let missed =
                self.acked >= start && now.saturating_sub(piece.at) >= self.limits.patience;
            if !full && !missed {
                return;
            }
            self.skip_hole(emit);
        }
    }

    /// Skips the first gap. The data after it had reached the receiver when it was captured, so it
    /// keeps its own times.
    fn skip_hole(&mut self, emit: &mut impl FnMut(Run<'_>)) {
        let Some((&start, piece)) = self.waiting.first_key_value() else {
            return;
        };
        let at = piece.at;
        let len = start - self.next;
        self.next = start;
        self.lose(len, at, emit);
        self.drain(at, emit);
    }
}
