//! Joins fragments of IP packets (RFC 791 section 3.2, RFC 8200 section 4.5), in bounded memory.

use super::ip::{Datagram, Fragment};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Limit of packets that wait for fragments. Above it, the oldest is dropped.
const MAX_PACKETS: usize = 256;
/// Longest packet that fragments can form, in bytes.
const MAX_LEN: usize = 65_535;
/// Limit of fragments per packet.
const MAX_PARTS: usize = 128;

/// Packets with missing fragments.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    waiting: VecDeque<(Key, Parts)>,
}

type Key = (IpAddr, IpAddr, u32, u8);

#[derive(Debug, Default)]
struct Parts {
    /// By offset.
    pieces: BTreeMap<usize, Vec<u8>>,
    /// Known once the last fragment has come.
    total: Option<usize>,
}

impl Fragments {
    /// Adds a fragment. Returns the payload of the packet if no fragment is missing any more.
    pub(super) fn take(&mut self, datagram: &Datagram<'_>, part: Fragment) -> Option<Vec<u8>> {
        let end = part.offset + datagram.len;
        // a fragment that was cut off cannot be completed
        if end > MAX_LEN || datagram.payload.len() < datagram.len {
            return None;
        }
        let key = (datagram.source, datagram.target, part.id, datagram.protocol);
        let place = match self.waiting.iter().position(|(other, _)| *other == key) {
            Some(place) => place,
            None => {
                if self.waiting.len() == MAX_PACKETS {
                    self.waiting.pop_front();
                }
                self.waiting.push_back((key, Parts::default()));
                self.waiting.len() - 1
            }
        };
        let parts = &mut self.waiting[place].1;
        if !part.more {
            parts.total = Some(end);
        }
        if parts.pieces.len() < MAX_PARTS {
            parts
                .pieces
                .entry(part.offset)
                .or_insert_with(|| datagram.payload.to_vec());
        }
        let whole = parts.join()?;
        self.waiting.remove(place);
        Some(whole)
    }
}

impl Parts {
    fn join(&self) -> Option<Vec<u8>> {
        let total = self.total?;
        let mut end = 0;
        for (&offset, piece) in &self.pieces {
            if offset > end {
                return None;
            }
            end = end.max(offset + piece.len());
        }
        if end < total {
            return None;
        }
        let mut whole = Vec::with_capacity(total);
        for (&offset, piece) in &self.pieces {
            let known = whole.len().saturating_sub(offset);
            whole.extend_from_slice(piece.get(known..).unwrap_or_default());
        }
        whole.truncate(total);
        Some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn fragment(payload: &[u8], offset: usize, more: bool) -> (Datagram<'_>, Fragment) {
        let part = Fragment {
            id: 1,
            offset,
            more,
        };
        let datagram = Datagram {
            source: Ipv4Addr::LOCALHOST.into(),
            target: Ipv4Addr::LOCALHOST.into(),
            protocol: 17,
            payload,
            len: payload.len(),
            fragment: Some(part),
        };
        (datagram, part)
    }

    #[test]
    fn fragments_join_in_any_order() {
        let parts = [(0, true), (8, true), (16, false)];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut fragments = Fragments::default();
            let mut whole = None;
            for place in order {
                let (offset, more) = parts[place];
                let bytes = [b'a' + place as u8; 8];
                let (datagram, part) = fragment(&bytes, offset, more);
                assert_eq!(whole, None);
                whole = fragments.take(&datagram, part);
            }
            assert_eq!(whole.unwrap(), b"aaaaaaaabbbbbbbbcccccccc");
        }
    }

    #[test]
    fn incomplete_packets_are_dropped() {
        let mut fragments = Fragments::default();
        for id in 0..10_000 {
            let (datagram, mut part) = fragment(&[0; 8], 0, true);
            part.id = id;
            assert_eq!(fragments.take(&datagram, part), None);
        }
        assert_eq!(fragments.waiting.len(), MAX_PACKETS);
    }
}
