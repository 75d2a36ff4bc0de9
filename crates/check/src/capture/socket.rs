//! A packet socket (packet(7)) for one TCP port on all devices, filtered in the kernel. It must not interpret packets.
#![allow(
    unsafe_code,
    reason = "filters, statistics and control messages have no safe form"
)]

use super::CaptureError;
use super::packet::Packet;
use intact_link::packet_socket::{self, Begins};
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};

/// What the kernel may hold for us, in bytes; as root more than `net.core.rmem_max`.
const ROOM: libc::c_int = 16 << 20;
/// The longest packet: what segmentation offload hands over at once.
const LONGEST: usize = 64 * 1024 + 256;

/// The socket.
#[derive(Debug)]
pub(super) struct Socket {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Socket {
    /// A socket that is deaf until it listens.
    pub(super) fn open() -> Result<Socket, CaptureError> {
        let socket =
            packet_socket::open(Begins::WithNetwork).map_err(|error| match error.kind() {
                ErrorKind::PermissionDenied => CaptureError::Forbidden(error),
                _ => CaptureError::Own(error),
            })?;
        let this = Socket {
            socket,
            buffer: vec![0; LONGEST],
        };
        this.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1)?;
        if this
            .set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &ROOM)
            .is_err()
        {
            this.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &ROOM)?;
        }
        Ok(this)
    }

    /// Begins to hear TCP packets of this port, on every device.
    pub(super) fn listen(&self, port: u16) -> io::Result<()> {
        let mut program = filter(port);
        let attached = libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_mut_ptr(),
        };
        // the kernel copies the program
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &attached)?;
        packet_socket::hear(&self.socket, None)
    }

    /// The next packet that waits. On the loopback device each passes twice, out and in: the way in is told.
    pub(super) fn next(&mut self) -> io::Result<Option<Packet>> {
        loop {
            match self.receive() {
                Ok((packet, false)) => return Ok(Some(packet)),
                Ok((_, true)) => {}
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(None),
                    // a device that went down says so once
                    ErrorKind::Interrupted | ErrorKind::NetworkDown => {}
                    _ => return Err(error),
                },
            }
        }
    }

    /// One packet, and whether it is the way out on the loopback device.
    fn receive(&mut self) -> io::Result<(Packet, bool)> {
        /// Room for one timespec with its head, aligned as `cmsghdr` wants.
        #[repr(C, align(8))]
        struct Control([u8; 64]);
        let mut control = MaybeUninit::<Control>::uninit();
        // SAFETY: a sockaddr_ll of zeroes is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        let mut parts = libc::iovec {
            iov_base: self.buffer.as_mut_ptr().cast(),
            iov_len: self.buffer.len(),
        };
        // SAFETY: a msghdr of zeroes is valid; the pointers set below outlive the call.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = (&raw mut address).cast();
        message.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        message.msg_iov = &raw mut parts;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of::<Control>() as _;
        // MSG_TRUNC tells the length on the wire where the buffer is shorter
        // SAFETY: the message names writable buffers of the sizes given.
        let got =
            unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, libc::MSG_TRUNC) };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        let whole = got as usize;
        let mut at = 0;
        // SAFETY: the kernel filled `msg_controllen` bytes of the control buffer with well-formed headers.
        let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
        if !header.is_null() {
            // SAFETY: not null, so it points at a whole header in the control buffer.
            let head = unsafe { &*header };
            if head.cmsg_level == libc::SOL_SOCKET && head.cmsg_type == libc::SCM_TIMESTAMPNS {
                // SAFETY: SCM_TIMESTAMPNS carries a timespec.
                let time = unsafe {
                    libc::CMSG_DATA(header)
                        .cast::<libc::timespec>()
                        .read_unaligned()
                };
                at = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
            }
        }
        let twice = address.sll_hatype == libc::ARPHRD_LOOPBACK
            && u32::from(address.sll_pkttype) == u32::from(libc::PACKET_OUTGOING);
        let packet = Packet {
            at,
            device: address.sll_ifindex,
            outgoing: false,
            bytes: self.buffer[..whole.min(self.buffer.len())].to_vec(),
            whole: whole as u32,
            note: None,
        };
        Ok((packet, twice))
    }

    /// How many packets the kernel had no room for since this was asked last.
    pub(super) fn lost(&self) -> io::Result<u64> {
        // SAFETY: tpacket_stats of zeroes is valid.
        let mut stats: libc::tpacket_stats = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the value's address and length are given, and the kernel writes no more than that.
        let done = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut length,
            )
        };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(u64::from(stats.tp_drops))
    }

    fn set<T>(&self, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
        // SAFETY: the value's address and size are given, and it lives through the call.
        let done = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                level,
                name,
                std::ptr::from_ref(value).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

/// TCP over IPv4 or IPv6 from or to this port, as a classic BPF program over a packet that begins with its IP head.
fn filter(port: u16) -> [libc::sock_filter; 19] {
    const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
    const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
    const LOAD_HALF_BEHIND: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_IND) as u16;
    const LOAD_HEAD_LENGTH: u16 = (libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH) as u16;
    const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
    const IS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    const TCP: u32 = 6;
    let port = u32::from(port);
    // jumps name how many instructions to leave out, where the comparison holds and where it does not
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    [
        step(LOAD_BYTE, 0, 0, 0),
        step(AND, 0, 0, 0xf0),
        step(IS, 0, 7, 0x40),
        // IPv4
        step(LOAD_BYTE, 0, 0, 9),
        step(IS, 0, 13, TCP),
        step(LOAD_HEAD_LENGTH, 0, 0, 0),
        step(LOAD_HALF_BEHIND, 0, 0, 0),
        step(IS, 9, 0, port),
        step(LOAD_HALF_BEHIND, 0, 0, 2),
        step(IS, 7, 8, port),
        // IPv6
        step(IS, 0, 7, 0x60),
        step(LOAD_BYTE, 0, 0, 6),
        step(IS, 0, 5, TCP),
        step(LOAD_HALF, 0, 0, 40),
        step(IS, 2, 0, port),
        step(LOAD_HALF, 0, 0, 42),
        step(IS, 0, 1, port),
        // the whole packet, or nothing of it
        step(RETURN, 0, 0, u32::MAX),
        step(RETURN, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the kernel does, as far as it uses the language; whether the packet is taken.
    fn takes(program: &[libc::sock_filter], packet: &[u8]) -> Option<bool> {
        let byte = |at: usize| packet.get(at).map(|&byte| u32::from(byte));
        let half = |at: usize| Some(byte(at)? << 8 | byte(at + 1)?);
        let (mut at, mut a, mut x) = (0, 0, 0);
        loop {
            let step = program[at];
            let k = step.k as usize;
            at += 1;
            match u32::from(step.code) {
                0x30 => a = byte(k)?,
                0x28 => a = half(k)?,
                0x48 => a = half(x + k)?,
                0xb1 => x = (byte(k)? & 0xf) as usize * 4,
                0x54 => a &= step.k,
                0x15 => at += usize::from(if a == step.k { step.jt } else { step.jf }),
                0x06 => return Some(step.k > 0),
                code => panic!("{code:#x} is not in the program"),
            }
        }
    }

    #[test]
    fn only_tcp_of_the_port_is_heard() {
        let program = filter(443);
        let packet = |version: u8, protocol: u8, from: u16, to: u16| {
            let mut head = if version == 4 {
                let mut head = vec![0x46; 24];
                head[9] = protocol;
                head
            } else {
                let mut head = vec![0x60; 40];
                head[6] = protocol;
                head
            };
            head.extend(from.to_be_bytes());
            head.extend(to.to_be_bytes());
            head
        };
        for version in [4, 6] {
            for (protocol, from, to, taken) in [
                (6, 443, 9, true),
                (6, 9, 443, true),
                (6, 9, 8, false),
                (17, 9, 443, false),
            ] {
                let packet = packet(version, protocol, from, to);
                assert_eq!(takes(&program, &packet), Some(taken), "{packet:?}");
            }
        }
        assert_eq!(takes(&program, &[0x10; 60]), Some(false));
    }
}
