//! Which parts of a TCP connection are in the capture.
//!
//! Detects directions that were not captured, packets that are missing, and packets that were cut
//! off. It uses sequence and acknowledgement numbers only (RFC 9293 section 3.4). Must not guess
//! what was lost.

use intact_wire::Side;
use intact_wire::tcp::{Flow, Segment};

/// A larger distance between two numbers is outside of any TCP window (RFC 7323 section 2.3).
const MAX_DISTANCE: u32 = 1 << 30;

/// What the packets of a connection cover so far.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// By the sending side.
    directions: [Direction; 2],
}

/// What was captured of one direction, and what its receiver acknowledged.
#[derive(Debug, Default)]
struct Direction {
    has_syn: bool,
    /// The first sequence number and the one after the last byte and FIN; `None` before the first
    /// packet.
    range: Option<Range>,
    /// The sequence number after the FIN.
    fin_end: Option<u32>,
    /// The first and the highest acknowledgement by the receiver.
    acked: Option<(u32, u32)>,
    /// What the receiver had acknowledged with its last data.
    acked_with_data: Option<u32>,
    cut_packets: u64,
    cut_bytes: u64,
}

/// Sequence numbers that packets claim to cover.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: u32,
    data_end: u32,
    end: u32,
}

/// Parts of a connection that are not in the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lacks {
    /// All packets of one side, although it sent some.
    pub(super) direction: bool,
    /// Packets that the receiver acknowledged, or that later packets follow.
    pub(super) packets: bool,
    /// Number of packets that were cut off.
    pub(super) cut_packets: u64,
}

impl Lacks {
    /// Whether the capture is complete.
    pub(super) fn is_nothing(self) -> bool {
        self == Lacks::default()
    }
}

impl Coverage {
    pub(super) fn take(&mut self, from: Side, segment: &Segment<'_>) {
        // a middlebox may have made up the numbers of a reset
        if segment.rst {
            return;
        }
        let start = segment.seq.wrapping_add(u32::from(segment.syn));
        let data_end = start.wrapping_add(segment.len);
        let end = data_end.wrapping_add(u32::from(segment.fin));
        let captured = segment.payload.len() as u32;
        let this = &mut self.directions[from as usize];
        this.has_syn |= segment.syn;
        let range = this.range.get_or_insert(Range {
            start,
            data_end,
            end,
        });
        range.end = later(range.end, end);
        // a packet after a FIN acknowledges data of the other side and carries none
        if this.fin_end.is_none_or(|fin| fin != data_end) {
            range.data_end = later(range.data_end, data_end);
        }
        if segment.fin {
            this.fin_end = Some(end);
        }
        if captured < segment.len {
            this.cut_packets += 1;
            this.cut_bytes += u64::from(segment.len - captured);
        }
        if let Some(ack) = segment.ack {
            let other = &mut self.directions[from.other() as usize];
            let (first, highest) = other.acked.unwrap_or((ack, ack));
            other.acked = Some((first, later(highest, ack)));
            if segment.len > 0 {
                other.acked_with_data =
                    Some(other.acked_with_data.map_or(ack, |last| later(last, ack)));
            }
        }
    }

    /// Whether a number of `side` is before what the other side has acknowledged.
    pub(super) fn is_before_acked(&self, side: Side, number: u32) -> bool {
        let acked = self.direction(side).acked;
        acked.is_some_and(|(_, acked)| is_later(acked, number))
    }

    /// Whether `side` sent bytes after all that was read of it, and these are not in the capture.
    /// Its own later packets or its peer's acknowledgements show that. Call it when `flow` is over.
    pub(super) fn lacks_end_of(&self, side: Side, flow: &Flow) -> bool {
        let direction = self.direction(side);
        let Some(range) = direction.range else {
            return self.lacks_direction(side);
        };
        let facts = flow.stream(side).facts();
        let read = range.start.wrapping_add((facts.bytes + facts.lost) as u32);
        let is_acked = direction
            .acked
            .is_some_and(|(_, acked)| is_later(acked, range.end));
        is_acked || is_later(range.data_end, read)
    }

    /// Whether the other side acknowledges data of `side`, and none of it is in the capture.
    fn lacks_direction(&self, side: Side) -> bool {
        let direction = self.direction(side);
        // the SYN's answer was sent during the capture; without a SYN, the acknowledged number must
        // have grown
        let answered = side == Side::Server && self.direction(Side::Client).has_syn;
        let acked = direction
            .acked
            .is_some_and(|(first, last)| answered || first != last);
        direction.range.is_none() && acked
    }

    /// Whether no packet of the client is in the capture, and the server received nothing after
    /// what it responded to but perhaps a FIN: then each request has its response.
    pub(super) fn responses_show_requests(&self) -> bool {
        let client = self.direction(Side::Client);
        let after = client
            .acked
            .zip(client.acked_with_data)
            .map(|((_, acked), with_data)| acked.wrapping_sub(with_data));
        client.range.is_none() && after.is_some_and(|bytes| bytes <= 1)
    }

    /// Whether `side` acknowledged data of its peer.
    pub(super) fn acknowledges(&self, side: Side) -> bool {
        self.direction(side.other()).acked.is_some()
    }

    /// What is missing. `flow` holds both directions, which are over.
    pub(super) fn lacks(&self, flow: &Flow) -> Lacks {
        let both = [Side::Client, Side::Server];
        let has_hole = |side: Side| {
            let lost = flow.stream(side).facts().lost;
            lost > self.direction(side).cut_bytes
        };
        let direction = both.iter().any(|&side| self.lacks_direction(side));
        Lacks {
            direction,
            packets: both
                .iter()
                .any(|&side| has_hole(side) || (!direction && self.lacks_end_of(side, flow))),
            cut_packets: both
                .iter()
                .map(|&side| self.direction(side).cut_packets)
                .sum(),
        }
    }

    fn direction(&self, side: Side) -> &Direction {
        &self.directions[side as usize]
    }
}

/// Whether `number` comes after `than` in the stream.
fn is_later(number: u32, than: u32) -> bool {
    let distance = number.wrapping_sub(than);
    (1..=MAX_DISTANCE).contains(&distance)
}

fn later(one: u32, other: u32) -> u32 {
    if is_later(other, one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_wire::tcp::Limits;

    fn segment(seq: u32, ack: u32, payload: &[u8]) -> Segment<'_> {
        Segment {
            seq,
            ack: Some(ack),
            payload,
            len: payload.len() as u32,
            ..Segment::default()
        }
    }

    fn lacks(segments: &[(Side, Segment<'_>)]) -> Lacks {
        let mut coverage = Coverage::default();
        let mut flow = Flow::new(Limits::default());
        for (from, segment) in segments {
            coverage.take(*from, segment);
            flow.push(*from, segment, |_, _| {});
        }
        flow.finish(|_, _| {});
        coverage.lacks(&flow)
    }

    use Side::{Client, Server};

    #[test]
    fn a_complete_connection_lacks_nothing_for_any_initial_numbers() {
        for start in [1, u32::MAX - 2] {
            let (client, server) = (start, start.wrapping_add(77));
            let got = lacks(&[
                (Client, segment(client, server, b"GET")),
                (Server, segment(server, client.wrapping_add(3), b"200")),
                (
                    Client,
                    segment(client.wrapping_add(3), server.wrapping_add(3), b""),
                ),
            ]);
            assert_eq!(got, Lacks::default(), "{start}");
        }
    }

    #[test]
    fn an_acknowledged_packet_that_is_not_captured_is_missing() {
        // before another packet, and at the end with and without a FIN
        let middle = lacks(&[
            (Client, segment(1, 1, b"GET")),
            (Client, segment(9, 1, b"GET")),
        ]);
        let end = lacks(&[
            (Client, segment(1, 1, b"GET")),
            (Server, segment(1, 4, b"200")),
            (Client, segment(4, 9, b"")),
        ]);
        let fin = Segment {
            fin: true,
            ..segment(9, 4, b"")
        };
        let before_fin = lacks(&[
            (Client, segment(1, 1, b"GET")),
            (Server, segment(1, 4, b"200")),
            (Server, fin),
        ]);
        for lacks in [middle, end, before_fin] {
            assert!(lacks.packets && !lacks.direction, "{lacks:?}");
        }
    }

    #[test]
    fn acknowledgements_after_a_fin_show_no_missing_data() {
        let fin = Segment {
            fin: true,
            ..segment(4, 4, b"")
        };
        let half_closed = lacks(&[
            (Client, segment(1, 1, b"GET")),
            (Server, segment(1, 4, b"200")),
            (Client, fin),
            (Server, segment(4, 5, b"more")),
            (Client, segment(5, 8, b"")),
        ]);
        assert_eq!(half_closed, Lacks::default());
    }

    #[test]
    fn a_side_that_acknowledges_uncaptured_data_shows_a_missing_direction() {
        let syn = Segment {
            syn: true,
            ..Segment::default()
        };
        let opened = lacks(&[(Client, syn), (Client, segment(1, 1, b""))]);
        let later = lacks(&[
            (Client, segment(1, 1, b"GET")),
            (Client, segment(4, 9, b"GET")),
        ]);
        for lacks in [opened, later] {
            assert!(lacks.direction && !lacks.packets, "{lacks:?}");
        }
        // the answer may come after the capture's end
        let pending = lacks(&[(Client, segment(1, 1, b"GET"))]);
        assert_eq!(pending, Lacks::default());
    }

    #[test]
    fn a_packet_that_was_cut_off_is_not_missing() {
        let mut cut = segment(1, 1, b"GET");
        cut.len = 100;
        let got = lacks(&[(Client, cut), (Client, segment(101, 1, b"GET"))]);
        assert_eq!((got.cut_packets, got.packets), (1, false));
    }
}
