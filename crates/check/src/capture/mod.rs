//! Captures the packets of the check's own connections, with their TLS secrets, as a pcapng file in
//! memory.
//!
//! Packets stay in the kernel's buffer during an exchange and are read after it. So the capture
//! takes no CPU time from the measurement. Packets of other connections are discarded.

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

/// A finished capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packets {
    /// A pcapng file with the packets and the TLS secrets that make them readable.
    pub file: Vec<u8>,
    /// The protocol of each connection, in the order of the file, such as `HTTP/2 over TLS 1.3`.
    pub spoken: Vec<String>,
    /// Packets that did not fit.
    pub lost: u64,
}

/// The maximum of stored packet bytes.
const MOST_BYTES: usize = 16 << 20;

/// Why packets cannot be captured, with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The process lacks CAP_NET_RAW.
    #[error(
        "packets cannot be captured without CAP_NET_RAW: run as root, or allow this program once: sudo setcap cap_net_raw+ep \"$(command -v intact)\""
    )]
    Forbidden(#[source] io::Error),
    /// The system is not Linux.
    #[error(
        "packets are captured on Linux only; elsewhere: tcpdump, and intact audit --ladder with SSLKEYLOGFILE"
    )]
    Platform,
    /// A system call on the packet socket failed.
    #[error("the packet socket: {0}")]
    Own(#[from] io::Error),
}

/// The local address of a connection, and that of its peer, where they are known.
pub(crate) type ConnectionEnds = (Option<SocketAddr>, Option<SocketAddr>);

/// A capture of the connections that a probe opens.
#[derive(Debug)]
pub struct Capture {
    socket: Socket,
    secrets: Arc<Secrets>,
    packets: Vec<Packet>,
    bytes: usize,
    /// The connections whose packets are kept, in order.
    pub(crate) names: Vec<String>,
    /// Packets that did not fit into the kernel's buffer or into ours.
    pub(crate) lost: u64,
}

impl Capture {
    /// Opens the packet socket, and captures nothing yet.
    pub fn open() -> Result<Capture, CaptureError> {
        Ok(Capture {
            socket: Socket::open()?,
            secrets: Arc::default(),
            packets: Vec::new(),
            bytes: 0,
            names: Vec::new(),
            lost: 0,
        })
    }

    /// Starts to capture packets from and to this port of TCP, and no others.
    pub(crate) fn begin_tcp(&mut self, port: u16) -> io::Result<()> {
        self.socket.listen(port, false)
    }

    /// Starts to capture packets from and to this port of UDP, and no others.
    pub(crate) fn begin_udp(&mut self, port: u16) -> io::Result<()> {
        self.socket.listen(port, true)
    }

    /// Receives the secrets of TLS sessions.
    pub(crate) fn secrets(&self) -> Arc<dyn KeyLog> {
        self.secrets.clone()
    }

    /// Reads the packets that the kernel holds and stores those between these ends under this name.
    pub(crate) fn keep(&mut self, ends: ConnectionEnds, name: &str) -> io::Result<()> {
        let (Some(local), Some(peer)) = ends else {
            return Ok(());
        };
        let before = self.packets.len();
        let mut device = None;
        while let Some(mut packet) = self.socket.next()? {
            let Some((from, to)) = packet::ends(&packet.bytes) else {
                continue;
            };
            if (from, to) != (local, peer) && (from, to) != (peer, local) {
                continue;
            }
            // a packet to a container passes several devices: one copy is enough
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
        if self.packets.len() > before {
            self.names.push(name.to_owned());
        }
        Ok(())
    }

    /// The capture as a pcapng file that contains the secrets.
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

/// TLS secrets in the format of SSLKEYLOGFILE.
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
