//! How much of a TCP connection is in the capture: directions that were not captured, packets that are missing, packets that were
//! cut off. It goes by sequence and acknowledgement numbers alone (RFC 9293 section 3.4). Must not guess what was lost.

use intact_wire::Side;
use intact_wire::tcp::{Flow, Segment};

/// Numbers that are further apart belong to no window of TCP (RFC 7323 section 2.3).
const MAX_DISTANCE: u32 = 1 << 30;

/// What the packets of a connection cover, as they come.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    client: Direction,
    server: Direction,
}

/// What was captured of one direction, and what its receiver acknowledged.
#[derive(Debug, Default)]
struct Direction {
    has_syn: bool,
    /// The sequence numbers of the first byte and of that behind the last one, and behind its FIN; `None` before the first packet.
    range: Option<Range>,
    /// The sequence number behind its FIN.
    fin_end: Option<u32>,
    /// The first and the highest acknowledgement by the receiver.
    acked: Option<(u32, u32)>,
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

/// What a capture lacks of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lacks {
    /// One side's packets: it sent some, and none is in the capture.
    pub(super) direction: bool,
    /// Packets in between that the receiver acknowledged, or that others follow.
    pub(super) packets: bool,
    /// How many packets were cut off.
    pub(super) cut_packets: u64,
}

impl Lacks {
    /// Whether all of it is there.
    pub(super) fn is_nothing(self) -> bool {
        self == Lacks::default()
    }
}

impl Coverage {
    pub(super) fn take(&mut self, from: Side, segment: &Segment<'_>) {
        // the numbers of a reset may be made up by a box in between
        if segment.rst {
            return;
        }
        let start = segment.seq.wrapping_add(u32::from(segment.syn));
        let data_end = start.wrapping_add(segment.len);
        let end = data_end.wrapping_add(u32::from(segment.fin));
        let captured = segment.payload.len() as u32;
        let (this, other) = match from {
            Side::Client => (&mut self.client, &mut self.server),
            Side::Server => (&mut self.server, &mut self.client),
        };
        this.has_syn |= segment.syn;
        let range = this.range.get_or_insert(Range {
            start,
            data_end,
            end,
        });
        range.end = later(range.end, end);
        // what follows a FIN acknowledges data of the other side, and shows none of its own
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
            let (first, highest) = other.acked.unwrap_or((ack, ack));
            other.acked = Some((first, later(highest, ack)));
        }
    }

    /// Whether that side sent bytes that are not in the capture and lie behind all that was read of it: its own later packets or
    /// its peer's acknowledgements count them. `flow` is over.
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

    /// Whether the other side acknowledges what that side sends, and none of it is in the capture.
    fn lacks_direction(&self, side: Side) -> bool {
        let direction = self.direction(side);
        // an answer to its SYN was sent while the capture ran; else something must have come since the first packet
        let answered = side == Side::Server && self.client.has_syn;
        let acked = direction
            .acked
            .is_some_and(|(first, last)| answered || first != last);
        direction.range.is_none() && acked
    }

    /// Whether that side acknowledged anything of its peer.
    pub(super) fn acknowledges(&self, side: Side) -> bool {
        self.direction(side.other()).acked.is_some()
    }

    /// What is missing, `flow` being both directions once they are over.
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
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }
}

/// Whether a number comes behind another one in the stream.
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
    fn a_whole_connection_lacks_nothing_wherever_its_numbers_begin() {
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
    fn a_packet_that_is_acknowledged_and_not_there_is_missing() {
        // in the middle, where another one follows, and at the end, where none or a FIN does
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
    fn acknowledgements_behind_a_fin_show_no_missing_data() {
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
    fn one_side_that_acknowledges_what_is_not_there_is_one_direction() {
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
    fn a_packet_that_was_cut_off_is_no_missing_one() {
        let mut cut = segment(1, 1, b"GET");
        cut.len = 100;
        let got = lacks(&[(Client, cut), (Client, segment(101, 1, b"GET"))]);
        assert_eq!((got.cut_packets, got.packets), (1, false));
    }
}
