//! Delays that the segments of a connection show: retransmissions, and data that waited for a late
//! acknowledgement.
//!
//! The latter is Nagle's algorithm with delayed acknowledgements (RFC 1122 section 4.2.3). Reads no
//! payload.

use super::Segment;
use crate::Side;

/// A segment that is repeated, or arrives before another one, within this time was reordered or
/// captured twice. Nanoseconds.
const REORDERED: u64 = 3_000_000;
/// An acknowledgement that takes this much longer than the path was delayed: by 40 ms on Linux, by
/// up to 200 ms elsewhere. Nanoseconds.
const LATE: u64 = 30_000_000;
/// A sender that waited for an acknowledgement continues within this time. Nanoseconds.
const AT_ONCE: u64 = 5_000_000;

/// A delay that a segment shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentDelay {
    /// It is a retransmission.
    Resent,
    /// Its data was sent after a late acknowledgement had arrived.
    AwaitedAck,
}

/// Both directions of one connection.
#[derive(Debug, Default)]
pub struct SegmentDelays {
    client: Sender,
    server: Sender,
}

/// The state of one sender.
#[derive(Debug, Default)]
struct Sender {
    /// The sequence number after its last byte; `None` before its first segment.
    end: Option<u32>,
    /// When that byte was captured.
    newest_at: u64,
    /// When a segment left a gap before it that is still open.
    hole_at: Option<u64>,
    syn_at: Option<u64>,
    /// Since when it has unacknowledged data.
    unacked_since: Option<u64>,
    /// When a late acknowledgement of its data arrived, after which it has not sent any.
    late_ack_at: Option<u64>,
    /// Round-trip time from the point of capture to this side, according to the handshake.
    /// Nanoseconds.
    distance: Option<u64>,
}

impl Sender {
    /// Adds a segment of `len` sequence numbers. Returns whether it is a retransmission.
    fn enter(&mut self, segment: &Segment<'_>, len: u32) -> bool {
        let Some(end) = self.end else {
            self.end = Some(segment.seq.wrapping_add(len));
            self.newest_at = segment.at;
            return false;
        };
        let begins = segment.seq.wrapping_sub(end).cast_signed();
        let ends = begins.saturating_add_unsigned(len);
        if ends > 0 {
            if begins > 0 {
                self.hole_at.get_or_insert(segment.at);
            }
            self.end = Some(end.wrapping_add_signed(ends));
            self.newest_at = segment.at;
            return false;
        }
        // a keep-alive probe: at most one byte, just before the end
        let is_probe = begins == -1 && len <= 1 && !segment.syn && !segment.fin;
        if len == 0 || is_probe {
            return false;
        }
        let before = self.hole_at.take().unwrap_or(self.newest_at);
        segment.at.saturating_sub(before) >= REORDERED
    }
}

impl SegmentDelays {
    /// Adds the next segment, in the order of the capture.
    pub fn take(&mut self, from: Side, segment: &Segment<'_>) -> Option<SegmentDelay> {
        let (this, other) = from.order(&mut self.client, &mut self.server);
        let data = segment.len.max(segment.payload.len() as u32);
        let len = data + u32::from(segment.syn) + u32::from(segment.fin);
        let was_at = this.end;
        let is_resent = this.enter(segment, len);
        let is_new = data > 0 && this.end != was_at;
        if let Some(ack) = segment.ack {
            let is_bare = data == 0 && !segment.syn && !segment.fin && !segment.rst;
            acknowledge(this, other, ack, segment.at, is_bare);
        }
        if from == Side::Client && segment.syn {
            this.syn_at = Some(segment.at);
        }
        measure(from, this, other, segment);
        if is_resent {
            return Some(SegmentDelay::Resent);
        }
        if !is_new {
            return None;
        }
        this.unacked_since.get_or_insert(segment.at);
        // data that the other side sends now may be the response to this segment
        other.late_ack_at = None;
        let late = this.late_ack_at.take()?;
        let path = this.distance.unwrap_or(0);
        let is_at_once = segment.at.saturating_sub(late) <= path + AT_ONCE;
        is_at_once.then_some(SegmentDelay::AwaitedAck)
    }
}

/// Records that `by` acknowledges data of `of`. `is_bare`: its segment has no data.
fn acknowledge(by: &Sender, of: &mut Sender, ack: u32, at: u64, is_bare: bool) {
    let (Some(since), Some(end)) = (of.unacked_since, of.end) else {
        return;
    };
    let is_all = ack.wrapping_sub(end).cast_signed() >= 0;
    let path = by.distance.unwrap_or(0);
    if is_all {
        let is_late = at.saturating_sub(since) >= path + LATE;
        of.unacked_since = None;
        of.late_ack_at = (is_bare && is_late).then_some(at);
    }
}

/// Measures the distances by the handshake: SYN, SYN-ACK, ACK.
fn measure(from: Side, this: &mut Sender, other: &mut Sender, segment: &Segment<'_>) {
    if segment.ack.is_none() {
        return;
    }
    let answered = match from {
        Side::Server if segment.syn => {
            this.syn_at = Some(segment.at);
            other.syn_at
        }
        Side::Client => other.syn_at,
        Side::Server => None,
    };
    if let (Some(before), None) = (answered, this.distance) {
        this.distance = Some(segment.at.saturating_sub(before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A connection with segments.
    struct Dialogue {
        delays: SegmentDelays,
        next: [u32; 2],
    }

    impl Dialogue {
        /// A connection with this round-trip time in ms, captured at the client.
        fn opened(rtt: u64) -> Dialogue {
            let mut one = Dialogue {
                delays: SegmentDelays::default(),
                next: [100, 900],
            };
            let syn = |seq, ack, at| Segment {
                seq,
                ack,
                syn: true,
                at: at * MS,
                ..Segment::default()
            };
            assert_eq!(one.delays.take(Side::Client, &syn(99, None, 0)), None);
            assert_eq!(
                one.delays.take(Side::Server, &syn(899, Some(100), rtt)),
                None
            );
            assert_eq!(one.ack(Side::Client, rtt), None);
            one
        }

        fn segment(&self, from: Side, len: u32, at: u64) -> Segment<'static> {
            let [this, other] = match from {
                Side::Client => self.next,
                Side::Server => [self.next[1], self.next[0]],
            };
            Segment {
                seq: this,
                ack: Some(other),
                len,
                at: at * MS,
                ..Segment::default()
            }
        }

        fn say(&mut self, from: Side, len: u32, at: u64) -> Option<SegmentDelay> {
            let segment = self.segment(from, len, at);
            self.next[usize::from(from == Side::Server)] += len;
            self.delays.take(from, &segment)
        }

        fn ack(&mut self, from: Side, at: u64) -> Option<SegmentDelay> {
            let segment = self.segment(from, 0, at);
            self.delays.take(from, &segment)
        }

        /// Sends the last `len` bytes of a side again.
        fn again(&mut self, from: Side, len: u32, at: u64) -> Option<SegmentDelay> {
            let mut segment = self.segment(from, len, at);
            segment.seq -= len;
            self.delays.take(from, &segment)
        }
    }

    #[test]
    fn data_that_waits_for_a_late_acknowledgement_is_detected() {
        // captured at the client, 20 ms away: its own acknowledgement leaves after 40 ms
        let mut one = Dialogue::opened(20);
        assert_eq!(one.say(Side::Client, 50, 30), None);
        assert_eq!(one.say(Side::Server, 40, 51), None);
        assert_eq!(one.ack(Side::Client, 91), None);
        assert_eq!(
            one.say(Side::Server, 60, 112),
            Some(SegmentDelay::AwaitedAck)
        );
    }

    #[test]
    fn a_server_that_is_slow_for_40_ms_awaits_no_acknowledgement() {
        // the acknowledgement is sent immediately
        let mut one = Dialogue::opened(20);
        one.say(Side::Client, 50, 30);
        one.say(Side::Server, 40, 51);
        one.ack(Side::Client, 51);
        assert_eq!(one.say(Side::Server, 60, 92), None);
        // the server's acknowledgement is late, because its response is: the next request did not
        // wait for it
        let mut one = Dialogue::opened(0);
        one.say(Side::Client, 50, 10);
        one.ack(Side::Server, 50);
        assert_eq!(one.say(Side::Server, 60, 52), None);
        assert_eq!(one.say(Side::Client, 50, 53), None);
    }

    #[test]
    fn a_long_path_is_not_a_late_acknowledgement() {
        let mut one = Dialogue::opened(100);
        one.say(Side::Client, 50, 110);
        one.ack(Side::Server, 210);
        assert_eq!(one.say(Side::Client, 70, 211), None);
    }

    #[test]
    fn retransmissions_are_counted_and_repetitions_of_the_capture_are_not() {
        let mut one = Dialogue::opened(20);
        assert_eq!(one.say(Side::Client, 50, 30), None);
        assert_eq!(one.again(Side::Client, 50, 31), None);
        assert_eq!(one.again(Side::Client, 50, 230), Some(SegmentDelay::Resent));
        // a probe of one byte before the end
        assert_eq!(one.again(Side::Client, 1, 9_000), None);
        assert_eq!(one.ack(Side::Server, 9_020), None);
    }

    #[test]
    fn a_repeated_syn_and_a_gap_that_is_filled_late_are_retransmissions() {
        let mut delays = SegmentDelays::default();
        let syn = |at| Segment {
            seq: 99,
            syn: true,
            at: at * MS,
            ..Segment::default()
        };
        assert_eq!(delays.take(Side::Client, &syn(0)), None);
        assert_eq!(
            delays.take(Side::Client, &syn(1_000)),
            Some(SegmentDelay::Resent)
        );
        let mut one = Dialogue::opened(20);
        one.say(Side::Client, 50, 30);
        one.next[1] += 1_000;
        assert_eq!(one.say(Side::Server, 1_000, 51), None);
        assert_eq!(one.say(Side::Server, 1_000, 71), None);
        let mut fill = one.segment(Side::Server, 1_000, 72);
        fill.seq -= 3_000;
        assert_eq!(
            one.delays.take(Side::Server, &fill),
            Some(SegmentDelay::Resent)
        );
    }
}
