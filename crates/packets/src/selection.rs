//! Which connections are read, where a recording holds those of others too. Segments of a
//! connection whose owner is not known yet wait. Memory is bounded, and what does not fit counts.

use super::translation::{Pair, pair};
use intact_ledger::Owner;
use intact_observe::TlsReading;
use intact_wire::tcp::Segment;
use std::collections::HashMap;
use std::net::SocketAddr;

/// Connections that are remembered as skipped or read; above it, all are chosen again.
const MAX_KNOWN: usize = 1 << 17;
/// Limits of bytes that wait: in all, and of one connection.
const MAX_BYTES: usize = 64 << 20;
const MAX_BYTES_OF_ONE: usize = 4 << 20;
/// What a segment that waits takes in addition to its payload, in bytes.
const OVERHEAD: usize = 128;

/// Chooses the connections that are read.
pub trait Selection {
    /// Whether every connection is read, without a question.
    const READS_ALL: bool = false;

    /// Whether the connection of this segment is read. Asked at its first segment, and again where
    /// that is not known yet.
    fn choose(&mut self, source: SocketAddr, target: SocketAddr, segment: &Segment<'_>) -> Choice;
}

/// Whether a connection is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It is, and this is known of it.
    Read(Chosen),
    /// It is another's.
    Skip,
    /// That is not known yet.
    Later,
}

/// What is known of a connection that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The process that opened it.
    pub owner: Option<Owner>,
    /// Its client; `None`: the packets show it.
    pub client: Option<SocketAddr>,
    /// How its TLS is read.
    pub tls: TlsReading,
}

/// Reads all connections of a capture.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadAll;

impl Selection for ReadAll {
    const READS_ALL: bool = true;

    fn choose(&mut self, _: SocketAddr, _: SocketAddr, _: &Segment<'_>) -> Choice {
        Choice::Read(Chosen {
            owner: None,
            client: None,
            // a capture may hold secrets after the packets, so all connections wait for them
            tls: TlsReading {
                expects_secrets: true,
                infers_requests: false,
                process: None,
            },
        })
    }
}

/// A segment that waits.
pub(super) struct HeldSegment {
    pub(super) source: SocketAddr,
    pub(super) target: SocketAddr,
    head: Segment<'static>,
    len: u32,
    payload: Box<[u8]>,
}

impl HeldSegment {
    pub(super) fn segment(&self) -> Segment<'_> {
        Segment {
            payload: &self.payload,
            len: self.len,
            ..self.head
        }
    }
}

/// What was chosen for a pair of addresses.
enum Admission {
    /// Read; `start` is the number of the SYN that was chosen by.
    Read {
        start: Option<u32>,
    },
    Skipped,
    Held {
        segments: Vec<HeldSegment>,
        bytes: usize,
        /// Too much waited: only the first segment is left, to learn whose it is.
        is_cut: bool,
    },
}

/// What is to be done with a segment.
pub(super) enum Admitted {
    Read,
    /// The connection is read from here on.
    Begin(Chosen),
    No,
}

/// The pairs of addresses and what was chosen for each.
#[derive(Default)]
pub(super) struct Admissions {
    known: HashMap<Pair, Admission>,
    held_bytes: usize,
    /// Connections of which too much waited, except those that are another's.
    pub(super) undecided: u64,
}

impl Admissions {
    /// Chooses for a segment, which waits where its connection is not known yet.
    pub(super) fn admit(
        &mut self,
        selection: &mut impl Selection,
        source: SocketAddr,
        target: SocketAddr,
        segment: &Segment<'_>,
    ) -> Admitted {
        let pair = pair(source, target);
        let opens = segment.syn && segment.ack.is_none();
        match self.known.get_mut(&pair) {
            // the same addresses may belong to another process by now
            Some(Admission::Read { start }) if opens && *start != Some(segment.seq) => {}
            Some(Admission::Skipped) if opens => {}
            Some(Admission::Read { .. }) => return Admitted::Read,
            Some(Admission::Skipped) => return Admitted::No,
            Some(Admission::Held { is_cut: true, .. }) => return Admitted::No,
            Some(Admission::Held {
                segments,
                bytes,
                is_cut,
            }) => {
                let size = segment.payload.len() + OVERHEAD;
                if *bytes + size > MAX_BYTES_OF_ONE || self.held_bytes + size > MAX_BYTES {
                    self.held_bytes -= std::mem::take(bytes);
                    self.undecided += 1;
                    *is_cut = true;
                    segments.truncate(1);
                    segments
                        .iter_mut()
                        .for_each(|one| one.payload = Box::default());
                } else {
                    self.held_bytes += size;
                    *bytes += size;
                    segments.push(hold(source, target, segment));
                }
                return Admitted::No;
            }
            None => {}
        }
        if self.known.len() >= MAX_KNOWN {
            self.known
                .retain(|_, admission| matches!(admission, Admission::Held { .. }));
        }
        match selection.choose(source, target, segment) {
            Choice::Read(chosen) => {
                let start = opens.then_some(segment.seq);
                self.known.insert(pair, Admission::Read { start });
                Admitted::Begin(chosen)
            }
            Choice::Skip => {
                self.known.insert(pair, Admission::Skipped);
                Admitted::No
            }
            Choice::Later => {
                let bytes = segment.payload.len() + OVERHEAD;
                self.held_bytes += bytes;
                let segments = vec![hold(source, target, segment)];
                let held = Admission::Held {
                    segments,
                    bytes,
                    is_cut: false,
                };
                self.known.insert(pair, held);
                Admitted::No
            }
        }
    }

    /// Forgets all connections, and keeps what counts.
    pub(super) fn forget(&mut self) {
        self.known.clear();
        self.held_bytes = 0;
    }

    /// Chooses again for the connections that wait. Those that are read come with their segments,
    /// in the order of their first ones.
    pub(super) fn decide(
        &mut self,
        selection: &mut impl Selection,
    ) -> Vec<(Chosen, Vec<HeldSegment>)> {
        let mut decided = Vec::new();
        if self.held_bytes == 0 && self.undecided == 0 {
            return decided;
        }
        for admission in self.known.values_mut() {
            let Admission::Held {
                segments,
                bytes,
                is_cut,
            } = admission
            else {
                continue;
            };
            let Some(first) = segments.first() else {
                continue;
            };
            let choice = selection.choose(first.source, first.target, &first.segment());
            let next = match &choice {
                Choice::Later => continue,
                // it stays counted
                Choice::Read(_) if *is_cut => {
                    *admission = Admission::Skipped;
                    continue;
                }
                Choice::Skip => {
                    self.undecided -= u64::from(*is_cut);
                    Admission::Skipped
                }
                Choice::Read(_) => Admission::Read {
                    start: first.head.syn.then_some(first.head.seq),
                },
            };
            self.held_bytes -= *bytes;
            let held = std::mem::replace(admission, next);
            if let (Choice::Read(chosen), Admission::Held { segments, .. }) = (choice, held) {
                decided.push((chosen, segments));
            }
        }
        decided.sort_by_key(|(_, held)| held.first().map(|first| first.head.at));
        decided
    }
}

fn hold(source: SocketAddr, target: SocketAddr, segment: &Segment<'_>) -> HeldSegment {
    HeldSegment {
        source,
        target,
        head: segment.without_payload(),
        len: segment.len,
        payload: segment.payload.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chooses as the test says.
    struct Fixed(Choice);

    impl Selection for Fixed {
        fn choose(&mut self, _: SocketAddr, _: SocketAddr, _: &Segment<'_>) -> Choice {
            self.0.clone()
        }
    }

    fn read() -> Choice {
        ReadAll.choose(client(), server(), &Segment::default())
    }

    fn client() -> SocketAddr {
        ([127, 0, 0, 1], 40_000).into()
    }

    fn server() -> SocketAddr {
        ([127, 0, 0, 1], 80).into()
    }

    fn syn(seq: u32) -> Segment<'static> {
        Segment {
            seq,
            syn: true,
            ..Segment::default()
        }
    }

    fn data(payload: &[u8]) -> Segment<'_> {
        Segment {
            ack: Some(1),
            payload,
            len: payload.len() as u32,
            ..Segment::default()
        }
    }

    #[test]
    fn segments_of_an_unknown_connection_wait_until_it_is_chosen() {
        let mut admissions = Admissions::default();
        let mut later = Fixed(Choice::Later);
        for segment in [syn(1), data(b"GET"), data(b"200")] {
            let admitted = admissions.admit(&mut later, client(), server(), &segment);
            assert!(matches!(admitted, Admitted::No));
        }
        assert!(admissions.decide(&mut later).is_empty());
        let decided = admissions.decide(&mut Fixed(read()));
        let payloads: Vec<_> = decided[0].1.iter().map(|held| &*held.payload).collect();
        assert_eq!(payloads, [&b""[..], b"GET", b"200"]);
        assert_eq!(admissions.held_bytes, 0);
        let next = admissions.admit(&mut later, server(), client(), &data(b"more"));
        assert!(matches!(next, Admitted::Read));
    }

    #[test]
    fn the_same_addresses_are_chosen_again_at_another_syn_only() {
        let mut admissions = Admissions::default();
        let mut admit = |choice, segment: Segment<'_>| {
            admissions.admit(&mut Fixed(choice), client(), server(), &segment)
        };
        assert!(matches!(admit(Choice::Skip, syn(1)), Admitted::No));
        assert!(matches!(admit(read(), data(b"x")), Admitted::No));
        assert!(matches!(admit(read(), syn(2)), Admitted::Begin(_)));
        assert!(matches!(admit(Choice::Skip, syn(2)), Admitted::Read));
        assert!(matches!(admit(Choice::Skip, syn(3)), Admitted::No));
    }

    #[test]
    fn what_waits_is_bounded_and_then_counts() {
        let mut admissions = Admissions::default();
        let payload = vec![0; 1 << 20];
        for _ in 0..5 {
            admissions.admit(
                &mut Fixed(Choice::Later),
                client(),
                server(),
                &data(&payload),
            );
        }
        assert_eq!((admissions.undecided, admissions.held_bytes), (1, 0));
        // one of the service is missing, another's is not
        for (choice, undecided) in [(Choice::Later, 1), (Choice::Skip, 0)] {
            assert!(admissions.decide(&mut Fixed(choice)).is_empty());
            assert_eq!(admissions.undecided, undecided);
        }
        for _ in 0..5 {
            let (segment, other) = (data(&payload), ([127, 0, 0, 1], 40_001).into());
            admissions.admit(&mut Fixed(Choice::Later), other, server(), &segment);
        }
        assert!(admissions.decide(&mut Fixed(read())).is_empty());
        assert_eq!(admissions.undecided, 1);
    }
}
