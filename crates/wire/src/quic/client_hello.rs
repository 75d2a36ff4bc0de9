//! The hello of one client, read from its datagrams.

use super::assembly::Assembly;
use super::initial::Keys;
use super::long_header::{Kind, packets};
use crate::tls::ClientHello;

/// Limit of the packets that are read; a hello takes a few, and more are sent only after losses.
const MAX_PACKETS: u32 = 64;

/// The state of the hello.
#[derive(Default)]
pub struct QuicClientHello {
    keys: Option<Keys>,
    assembly: Assembly,
    packets: u32,
}

impl QuicClientHello {
    /// Reads a datagram of the client. Returns the hello if it is complete.
    pub fn read(&mut self, datagram: &[u8]) -> Option<ClientHello> {
        let mut news = false;
        for (kind, head) in packets(datagram) {
            let (Kind::Initial, Some(head)) = (kind, head) else {
                continue;
            };
            self.packets += 1;
            if self.packets > MAX_PACKETS {
                return None;
            }
            let frames = self.keys.as_ref().and_then(|keys| keys.open(&head));
            if let Some(frames) = frames {
                self.assembly.read(&frames);
                news = true;
                continue;
            }
            // the first packet, or the first one after a Retry, which starts the hello again (RFC
            // 9000 section 17.2.5)
            let keys = Keys::of_client(head.version, head.destination)?;
            if let Some(frames) = keys.open(&head) {
                self.keys = Some(keys);
                self.assembly = Assembly::default();
                self.assembly.read(&frames);
                news = true;
            }
        }
        news.then(|| self.assembly.client_hello()).flatten()
    }

    /// Whether later packets cannot add anything.
    pub fn is_over(&self) -> bool {
        self.packets >= MAX_PACKETS
    }
}

impl std::fmt::Debug for QuicClientHello {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Greeting")
            .field("packets", &self.packets)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quic::Version;
    use crate::quic::initial::tests::{hello, seal};

    fn crypto(at: u16, bytes: &[u8]) -> Vec<u8> {
        let long = |number: u16| (0x4000 | number).to_be_bytes();
        [&[6][..], &long(at), &long(bytes.len() as u16), bytes].concat()
    }

    #[test]
    fn a_hello_in_several_packets_and_out_of_order_is_read() {
        let whole = hello();
        for version in [Version::V1, Version::V2] {
            let piece = |from: usize, to: usize| crypto(from as u16, &whole[from..to]);
            let second = seal(version, 1, &[piece(150, whole.len()), vec![0; 40]].concat());
            let first = seal(
                version,
                0,
                &[piece(70, 150), vec![0; 20], piece(0, 70)].concat(),
            );
            let mut greeting = QuicClientHello::default();
            assert_eq!(greeting.read(&second), None);
            let hello = greeting.read(&first).unwrap();
            assert_eq!(hello.server_name.as_deref(), Some("example.com"));
            assert_eq!(hello.alpn, [b"alpn".to_vec()]);
            // both in one datagram
            let both = [first, second].concat();
            assert!(QuicClientHello::default().read(&both).is_some());
        }
    }

    #[test]
    fn a_packet_that_was_changed_or_cut_has_no_hello() {
        let whole = seal(
            Version::V1,
            0,
            &[crypto(0, &hello()), vec![0; 900]].concat(),
        );
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert_eq!(QuicClientHello::default().read(&changed), None, "{at}");
            assert_eq!(QuicClientHello::default().read(&whole[..at]), None);
        }
        let mut greeting = QuicClientHello::default();
        for _ in 0..200 {
            greeting.read(&whole[..600]);
        }
        assert!(greeting.is_over());
    }
}
