//! A packet socket on one device of the middle: frames come in through a ring that the kernel writes (`packet_mmap`,
//! TPACKET_V2 with PACKET_VNET_HDR), and go out in batches. A ring, because a plain packet socket's buffer is bounded by
//! `rmem_max` and loses packets at speed.
#![allow(
    unsafe_code,
    reason = "socket options, mmap and sendmmsg have no safe form"
)]

use super::packet_socket::{self, Begins};
use crate::emulator::packet::VNET;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Frames in the ring: of one segment, or of up to 64 KiB each.
const SMALL_FRAMES: usize = 8192;
const SMALL_FRAME: usize = 2048;
const BIG_FRAMES: usize = 256;
/// Frames that any ring holds at most.
pub(super) const MOST_FRAMES: usize = SMALL_FRAMES;
/// Packets in one system call.
pub(super) const BATCH: usize = 32;

/// A frame in the ring, until it is given back with [`Ring::advance`].
pub(super) struct Frame<'a> {
    /// `virtio_net_hdr`, Ethernet, IP and so on.
    pub(super) bytes: &'a [u8],
    /// When the kernel took it, in ns of CLOCK_REALTIME.
    pub(super) stamp: u64,
    /// Whether all of it is here.
    pub(super) whole: bool,
}

/// A packet socket with its ring.
pub(super) struct Ring {
    socket: OwnedFd,
    map: NonNull<u8>,
    length: usize,
    frame: usize,
    frames: usize,
    next: usize,
}

impl Ring {
    /// Listens to the device `index` of the calling thread's network namespace.
    pub(super) fn open(index: u32, single_segments: bool) -> io::Result<Ring> {
        let socket = packet_socket::open(Begins::WithLink)?;
        option(
            &socket,
            libc::PACKET_VERSION,
            &(libc::tpacket_versions::TPACKET_V2 as libc::c_int),
        )?;
        option(&socket, libc::PACKET_VNET_HDR, &1)?;
        option(&socket, libc::PACKET_IGNORE_OUTGOING, &1)?;
        // only speed: without it packets pass through a queue that does nothing
        let _ = option(&socket, libc::PACKET_QDISC_BYPASS, &1);
        let page = page_size();
        let (frame, block, frames) = if single_segments {
            let block = (64 * 1024).max(page);
            (SMALL_FRAME, block, SMALL_FRAMES)
        } else {
            // a packet of 64 KiB with its heads, in whole pages
            let frame = (65_536 + 1_024_usize).next_multiple_of(page);
            (frame, frame, BIG_FRAMES)
        };
        let request = libc::tpacket_req {
            tp_block_size: block as u32,
            tp_block_nr: (frames * frame / block) as u32,
            tp_frame_size: frame as u32,
            tp_frame_nr: frames as u32,
        };
        option(&socket, libc::PACKET_RX_RING, &request)?;
        let length = frames * frame;
        // SAFETY: a new mapping of the ring, whose size is the one just asked for; the kernel chooses the address.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        let map = match NonNull::new(map.cast::<u8>()) {
            Some(map) if map.as_ptr().cast() != libc::MAP_FAILED => map,
            _ => return Err(io::Error::last_os_error()),
        };
        let ring = Ring {
            socket,
            map,
            length,
            frame,
            frames,
            next: 0,
        };
        packet_socket::hear(&ring.socket, Some(index))?;
        Ok(ring)
    }

    /// Whether a frame waits; no system call.
    pub(super) fn waits(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// The next frame, if one waits.
    pub(super) fn peek(&self) -> Option<Frame<'_>> {
        if !self.waits() {
            return None;
        }
        let at = self.next * self.frame;
        // SAFETY: the slot lies within the mapping, starts with a tpacket2_hdr, and is ours while TP_STATUS_USER is set.
        let head = unsafe { self.map.add(at).cast::<libc::tpacket2_hdr>().read() };
        let start = usize::from(head.tp_mac).saturating_sub(VNET);
        // the kernel does not write beyond the slot; a bound of our own keeps that from being a matter of trust
        let length = (head.tp_snaplen as usize + VNET).min(self.frame - start.min(self.frame));
        // SAFETY: within the slot by the line above; the kernel does not write to it before it is given back, which needs
        // `&mut self`.
        let bytes =
            unsafe { std::slice::from_raw_parts(self.map.add(at + start).as_ptr(), length) };
        Some(Frame {
            bytes,
            stamp: u64::from(head.tp_sec) * 1_000_000_000 + u64::from(head.tp_nsec),
            whole: head.tp_snaplen == head.tp_len,
        })
    }

    /// Gives the frame back to the kernel.
    pub(super) fn advance(&mut self) {
        self.status()
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.frames;
    }

    fn status(&self) -> &AtomicU32 {
        let slot = self.next * self.frame;
        // SAFETY: the slot lies within the mapping, which lives as long as `self`; its first four bytes are the status word,
        // aligned as slots are, and shared with the kernel.
        unsafe { AtomicU32::from_ptr(self.map.add(slot).as_ptr().cast()) }
    }

    /// Sends packets, each with its `virtio_net_hdr`, at most [`BATCH`]; how many went. The first that did not is at fault.
    pub(super) fn send<'a>(&self, packets: impl Iterator<Item = &'a [u8]>) -> usize {
        const NO_PART: libc::iovec = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        let mut parts = [NO_PART; BATCH];
        let mut count = 0;
        for (part, packet) in parts.iter_mut().zip(packets) {
            part.iov_base = packet.as_ptr().cast_mut().cast();
            part.iov_len = packet.len();
            count += 1;
        }
        // SAFETY: mmsghdrs of zeroes are valid: no name, no control data, no parts.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for (message, part) in messages.iter_mut().zip(&mut parts).take(count) {
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: `count` messages, each of one part that points at a packet borrowed for 'a; sending only reads them.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                count as u32,
                libc::MSG_DONTWAIT as _,
            )
        };
        usize::try_from(sent).unwrap_or(0)
    }

    /// Packets that the kernel dropped because the ring was full, since the last call.
    pub(super) fn overrun(&self) -> u64 {
        let mut counts = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the option writes a tpacket_stats, whose address and size are given.
        let done = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut counts).cast(),
                &raw mut length,
            )
        };
        if done == 0 {
            u64::from(counts.tp_drops)
        } else {
            0
        }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `open`, which nothing borrows any more.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.length) };
    }
}

fn option<T>(socket: &OwnedFd, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes at `value`, which is plain data.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
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

fn page_size() -> usize {
    // SAFETY: sysconf(3) takes a number only.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}
