//! One direction of a TCP connection.

use std::collections::BTreeMap;

use super::{Run, Segment};

/// How much may wait for a hole to be filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes; beyond, the hole counts as lost.
    pub bytes: usize,
    /// Pieces; beyond, the hole counts as lost.
    pub pieces: usize,
    /// How long a hole may stay once the receiver has acknowledged it, in nanoseconds: the packet is missing from the
    /// capture, not from the connection. Not at once, since captures reorder packets.
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

/// What one direction amounted to so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamFacts {
    /// When its SYN came; `None` for a connection joined later.
    pub syn_at: Option<u64>,
    /// When its FIN came.
    pub fin_at: Option<u64>,
    /// When its RST came.
    pub rst_at: Option<u64>,
    /// Segments of any kind.
    pub segments: u64,
    /// Payload bytes handed on.
    pub bytes: u64,
    /// Payload bytes that were not in the capture.
    pub lost: u64,
    /// Segments with nothing new in them: the network or the sender repeated them.
    pub repeated: u64,
    /// Segments that came before an earlier one.
    pub reordered: u64,
    /// Keep-alive probes (RFC 9293 section 3.8.4).
    pub probes: u64,
    /// Segments so far from the stream that they cannot belong to it.
    pub stray: u64,
}

/// Puts one direction in order. Offsets count from the first byte after the SYN, or from the first byte seen.
#[derive(Debug)]
pub struct Stream {
    limits: Limits,
    /// Sequence number of offset 0; `None` before the first segment.
    origin: Option<u32>,
    /// The first offset not handed on yet.
    next: u64,
    waiting: BTreeMap<u64, Piece>,
    waiting_bytes: usize,
    /// The highest offset that the receiver has acknowledged.
    acked: u64,
    facts: StreamFacts,
}

/// Payload behind a hole; pieces never overlap.
#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    len: u64,
    at: u64,
}

/// The largest distance that a window of TCP can span (RFC 7323 section 2.3).
const MAX_DISTANCE: i64 = 1 << 30;

impl Stream {
    /// A direction of which nothing was seen yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            origin: None,
            next: 0,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            acked: 0,
            facts: StreamFacts::default(),
        }
    }

    /// What it amounted to so far.
    pub fn facts(&self) -> &StreamFacts {
        &self.facts
    }

    /// The highest offset that the receiver has acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acked
    }

    /// Bytes that wait for a hole to be filled.
    pub fn waiting(&self) -> usize {
        self.waiting_bytes
    }

    /// Whether bytes wait for a hole to be filled.
    pub(super) fn is_blocked(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The sequence number behind its SYN, or of the first segment that was seen.
    pub(super) fn start(&self) -> Option<u32> {
        self.origin
    }

    /// Takes a segment of this direction and hands on what is in order now.
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
            self.facts.stray += 1;
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

    /// Takes an acknowledgement that the other direction sent at that time.
    pub fn acknowledge(&mut self, ack: u32, at: u64, mut emit: impl FnMut(Run<'_>)) {
        if let Some(acked) = self.origin.and_then(|origin| self.locate(ack, origin)) {
            self.acked = self.acked.max(acked.max(0) as u64);
            self.give_up_holes(at, &mut emit);
        }
    }

    /// Hands on what still waits, its holes as gaps: nothing will come any more.
    pub fn finish(&mut self, mut emit: impl FnMut(Run<'_>)) {
        while !self.waiting.is_empty() {
            self.skip_hole(&mut emit);
        }
    }

    /// The offset of a sequence number, taken nearest to where the stream stands; negative before its start.
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
        // One byte (or none, not counted) just before the stream's end asks whether the peer is still there.
        if len == 1 && offset == next - 1 {
            self.facts.probes += 1;
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
            if self
                .waiting
                .keys()
                .next_back()
                .is_some_and(|&last| start < last)
            {
                self.facts.reordered += 1;
            }
            self.insert(start, bytes, len as u64, segment.at);
            self.drain(segment.at, emit);
        } else {
            self.deliver(bytes, len as u64, segment.at, emit);
        }
    }

    /// Keeps what is new of a piece; what came first stays, as it would at the receiver.
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

    /// Hands on every piece that follows without a hole; a packet at `at` made that possible.
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

    /// Goes on behind the first hole. What waits there was at the receiver when it came, so it keeps its own times.
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
