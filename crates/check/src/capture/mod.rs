//! The packets of our own connections and the TLS secrets that make them readable, as a pcapng file in memory.
//!
//! Packets wait in the kernel's buffer while an exchange runs and are taken out after it, so that nothing of ours competes with
//! what is measured. Only packets of the connections named are kept; whatever else passes the port is thrown away unread.

mod packet;
#[cfg(target_os = "linux")]
mod socket;
#[cfg(not(target_os = "linux"))]
#[path = "unsupported.rs"]
mod socket;

use intact_wire::pcapng::{self, WrittenPacket};
use packet::Packet;
use rustls::KeyLog;
use socket::Socket;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of packets that are kept.
const MOST_BYTES: usize = 16 << 20;

/// Why no packets can be captured, with the way out.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The right to capture is missing.
    #[error(
        "packets cannot be captured without CAP_NET_RAW: run as root, or allow this program once: sudo setcap cap_net_raw+ep \"$(command -v intact)\""
    )]
    Forbidden(#[source] io::Error),
    /// Another system than Linux.
    #[error(
        "packets are captured on Linux only; elsewhere: tcpdump, and intact audit --ladder with SSLKEYLOGFILE"
    )]
    Platform,
    /// The socket does not work.
    #[error("the packet socket: {0}")]
    Own(#[from] io::Error),
}

/// A capture of the connections that a probe opens.
#[derive(Debug)]
pub struct Capture {
    socket: Socket,
    secrets: Arc<Secrets>,
    packets: Vec<Packet>,
    bytes: usize,
    lost: u64,
}

impl Capture {
    /// Asks for the right to capture; nothing is captured yet.
    pub fn open() -> Result<Capture, CaptureError> {
        Ok(Capture {
            socket: Socket::open()?,
            secrets: Arc::default(),
            packets: Vec::new(),
            bytes: 0,
            lost: 0,
        })
    }

    /// Begins to capture what comes from or goes to this TCP port.
    pub(crate) fn begin(&mut self, port: u16) -> io::Result<()> {
        self.socket.listen(port)
    }

    /// Where TLS sessions tell their secrets.
    pub(crate) fn secrets(&self) -> Arc<dyn KeyLog> {
        self.secrets.clone()
    }

    /// Takes what waits in the kernel, and keeps what belongs to this connection under this name; how many packets those are.
    pub(crate) fn keep(
        &mut self,
        local: SocketAddr,
        peer: SocketAddr,
        name: &str,
    ) -> io::Result<usize> {
        let before = self.packets.len();
        let mut device = None;
        while let Some(mut packet) = self.socket.next()? {
            let Some((from, to)) = packet::ends(&packet.bytes) else {
                continue;
            };
            if (from, to) != (local, peer) && (from, to) != (peer, local) {
                continue;
            }
            // a packet to a container passes several devices: one of them will do
            if *device.get_or_insert(packet.device) != packet.device {
                continue;
            }
            self.bytes += packet.bytes.len();
            if self.bytes > MOST_BYTES {
                self.lost += 1;
                continue;
            }
            packet.outgoing = from == local;
            packet.note = (self.packets.len() == before).then(|| name.to_owned());
            self.packets.push(packet);
        }
        self.lost += self.socket.lost()?;
        Ok(self.packets.len() - before)
    }

    /// Packets that the kernel had no room for, or we.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// All of it as a pcapng file, with the secrets in it.
    pub(crate) fn file(&self) -> Vec<u8> {
        let secrets = self.secrets.0.lock();
        let packets = self.packets.iter().map(|packet| WrittenPacket {
            at: packet.at,
            outgoing: packet.outgoing,
            bytes: &packet.bytes,
            original: packet.whole,
            comment: packet.note.as_deref(),
        });
        pcapng::write(packets, &secrets.unwrap_or_else(PoisonError::into_inner))
    }
}

/// TLS secrets as SSLKEYLOGFILE has them.
#[derive(Debug, Default)]
struct Secrets(Mutex<String>);

impl KeyLog for Secrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hex = |text: &mut String, bytes: &[u8]| {
            for byte in bytes {
                // writing to a String cannot fail
                let _ = write!(text, "{byte:02x}");
            }
        };
        text.push_str(label);
        text.push(' ');
        hex(&mut text, client_random);
        text.push(' ');
        hex(&mut text, secret);
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_lines_as_sslkeylogfile_has_them() {
        let secrets = Secrets::default();
        secrets.log("CLIENT_RANDOM", &[0, 0xab], &[0x0f]);
        assert_eq!(*secrets.0.lock().unwrap(), "CLIENT_RANDOM 00ab 0f\n");
    }
}
