//! A packet socket for one port on all devices, with a filter in the kernel. It must not interpret
//! packets.

use super::CaptureError;
use super::packet::Packet;
use intact_sys::packet::{FirstHeader, PacketSocket, PortProtocol, port_filter};
use std::io::{self, ErrorKind};

/// The size of the kernel's buffer, in bytes.
const BUFFER: i32 = 16 << 20;
/// The longest packet in bytes: segmentation offload passes up to 64 KiB.
const LONGEST: usize = 64 * 1024 + 256;

/// The socket.
#[derive(Debug)]
pub(super) struct Socket {
    socket: PacketSocket,
    buffer: Vec<u8>,
}

impl Socket {
    /// Opens a socket that receives nothing before `listen`.
    pub(super) fn open() -> Result<Socket, CaptureError> {
        let socket =
            PacketSocket::open(FirstHeader::Network).map_err(|error| match error.kind() {
                ErrorKind::PermissionDenied => CaptureError::Forbidden(error),
                _ => CaptureError::Own(error),
            })?;
        socket.enable_timestamps()?;
        socket.set_buffer_size(BUFFER)?;
        Ok(Socket {
            socket,
            buffer: vec![0; LONGEST],
        })
    }

    /// Starts to receive packets of this port, of UDP or of TCP, on every device. Those of an
    /// earlier port are not received any more.
    pub(super) fn listen(&self, port: u16, is_udp: bool) -> io::Result<()> {
        let protocol = if is_udp {
            PortProtocol::Udp
        } else {
            PortProtocol::Tcp
        };
        self.socket.attach_filter(&port_filter(protocol, port))?;
        self.socket.listen(None)
    }

    /// The next packet, if one is there. The loopback device passes each packet twice; the incoming
    /// copy is returned.
    pub(super) fn next(&mut self) -> io::Result<Option<Packet>> {
        loop {
            match self.socket.receive(&mut self.buffer) {
                Ok(received) if received.is_loopback && received.is_outgoing => {}
                Ok(received) => {
                    return Ok(Some(Packet {
                        at: received.at.unwrap_or(0),
                        device: received.device,
                        outgoing: false,
                        bytes: self.buffer[..received.len].to_vec(),
                        whole: received.wire_len as u32,
                        note: None,
                    }));
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(None),
                    // the kernel reports a device that went down once
                    ErrorKind::Interrupted | ErrorKind::NetworkDown => {}
                    _ => return Err(error),
                },
            }
        }
    }

    /// Packets that the kernel has dropped since the last call.
    pub(super) fn lost(&self) -> io::Result<u64> {
        self.socket.dropped()
    }
}
