//! The frames of Initial packets (RFC 9000 section 19). CRYPTO frames carry parts of the
//! ClientHello, in any order, and may repeat them.

use super::long_header::varint;
use crate::tls::{ClientHello, Cursor};
use std::collections::BTreeMap;

/// Limit of the bytes of a hello, and also of the parts that wait. A hello with post-quantum keys
/// has about two thousand.
const MAX_BYTES: usize = 32 << 10;
/// Limit of parts that wait. Some clients shuffle a hello in dozens of them.
const MAX_PIECES: usize = 128;
/// Type of the first message of a client.
const CLIENT_HELLO: u8 = 1;

/// Frame types that a client may use in an Initial packet.
mod frame {
    pub(super) const PADDING: u64 = 0;
    pub(super) const PING: u64 = 1;
    pub(super) const ACK: u64 = 2;
    pub(super) const ACK_ECN: u64 = 3;
    pub(super) const CRYPTO: u64 = 6;
}

/// The hello so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assembly {
    /// The contiguous start.
    start: Vec<u8>,
    /// Later parts by offset.
    later: BTreeMap<usize, Vec<u8>>,
}

impl Assembly {
    /// Reads the frames of one packet, up to a frame that is not allowed in an Initial packet.
    pub fn read(&mut self, frames: &[u8]) {
        let mut rest = Cursor(frames);
        while !rest.is_empty() && self.frame(&mut rest).is_some() {}
    }

    fn frame(&mut self, rest: &mut Cursor<'_>) -> Option<()> {
        match varint(rest)? {
            frame::PADDING | frame::PING => {}
            kind @ (frame::ACK | frame::ACK_ECN) => {
                let (_largest, _delay) = (varint(rest)?, varint(rest)?);
                let ranges = varint(rest)?;
                let _first_range = varint(rest)?;
                for _ in 0..ranges {
                    varint(rest)?;
                    varint(rest)?;
                }
                if kind == frame::ACK_ECN {
                    for _ in 0..3 {
                        varint(rest)?;
                    }
                }
            }
            frame::CRYPTO => {
                let at = usize::try_from(varint(rest)?).ok()?;
                let len = usize::try_from(varint(rest)?).ok()?;
                let bytes = rest.bytes(len)?;
                self.keep(at, bytes);
            }
            _ => return None,
        }
        Some(())
    }

    fn keep(&mut self, at: usize, bytes: &[u8]) {
        if at.saturating_add(bytes.len()) > MAX_BYTES {
            return;
        }
        if at > self.start.len() {
            let known = self.later.get(&at).map_or(0, Vec::len);
            let others = self.later.values().map(Vec::len).sum::<usize>() - known;
            let has_room = self.later.len() < MAX_PIECES && others + bytes.len() <= MAX_BYTES;
            if has_room && bytes.len() > known {
                self.later.insert(at, bytes.to_vec());
            }
            return;
        }
        self.append(at, bytes);
        while let Some(piece) = self.later.first_entry() {
            if *piece.key() > self.start.len() {
                break;
            }
            let (at, bytes) = piece.remove_entry();
            self.append(at, &bytes);
        }
    }

    /// Appends the new bytes of a part that begins within the start.
    fn append(&mut self, at: usize, bytes: &[u8]) {
        if let Some(new) = bytes.get(self.start.len() - at..) {
            self.start.extend_from_slice(new);
        }
    }

    /// The hello, if it is complete; `None` for another message, too.
    pub fn client_hello(&self) -> Option<ClientHello> {
        let mut message = Cursor(&self.start);
        if message.u8()? != CLIENT_HELLO {
            return None;
        }
        ClientHello::parse(message.vec24()?.0).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quic::initial::tests::hello;
    use proptest::prelude::*;

    fn crypto(at: usize, bytes: &[u8]) -> Vec<u8> {
        let long = |number: usize| (0x4000 | number as u16).to_be_bytes();
        [&[6][..], &long(at), &long(bytes.len()), bytes].concat()
    }

    proptest! {
        #[test]
        fn pieces_in_any_order_give_the_same_hello(
            cuts in prop::collection::btree_set(0..240usize, 0..12),
            order in any::<u64>(),
            overlap in 0..9usize,
        ) {
            let whole = hello();
            let mut starts: Vec<usize> = cuts.into_iter().chain([0]).collect();
            starts.sort_unstable();
            starts.dedup();
            let ends = starts[1..].iter().copied().chain([whole.len()]);
            let mut pieces: Vec<(usize, &[u8])> = starts
                .iter()
                .zip(ends)
                .map(|(&start, end)| {
                    let start = start.saturating_sub(overlap);
                    (start, &whole[start..end])
                })
                .collect();
            let len = pieces.len();
            pieces.rotate_left(order as usize % len);
            if order % 2 == 0 {
                pieces.reverse();
            }
            let mut assembly = Assembly::default();
            for (at, bytes) in pieces {
                prop_assert!(overlap > 0 || assembly.client_hello().is_none());
                assembly.read(&[&[0, 0, 1][..], &crypto(at, bytes), &[2, 0, 0, 0, 0, 0]].concat());
            }
            let hello = assembly.client_hello().unwrap();
            prop_assert_eq!(hello.server_name.as_deref(), Some("example.com"));
        }

        #[test]
        fn any_frames_are_read(frames in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut assembly = Assembly::default();
            assembly.read(&frames);
            assembly.client_hello();
        }
    }

    #[test]
    fn parts_that_never_fit_use_bounded_memory() {
        let mut assembly = Assembly::default();
        for at in 0..10_000 {
            assembly.read(&crypto(2 * at + 1, &[0; 8]));
        }
        assert_eq!(assembly.later.len(), MAX_PIECES);
        assert!(assembly.start.is_empty());
    }

    #[test]
    fn parts_that_overlap_use_the_memory_of_one_hello() {
        let mut assembly = Assembly::default();
        for at in 1..=MAX_PIECES {
            // the same offset again, longer: known bytes count once
            for len in [500, 1000] {
                assembly.read(&crypto(at, &vec![0; len]));
            }
        }
        let held: usize = assembly.later.values().map(Vec::len).sum();
        assert!((MAX_BYTES - 1000..=MAX_BYTES).contains(&held), "{held}");
        assembly.read(&crypto(0, &[0]));
        assert!(assembly.later.is_empty());
        assert!(assembly.start.len() <= MAX_BYTES);
    }
}
