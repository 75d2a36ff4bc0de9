//! A packet socket on one device with a ring that the kernel fills (`packet_mmap`, TPACKET_V2 with
//! PACKET_VNET_HDR); packets are sent in batches. The buffer of a plain packet socket is bounded by
//! `rmem_max`, and loses packets at speed.

use super::{FirstHeader, PacketSocket};
use crate::mapping::Mapping;
use crate::process::page_size;
use crate::socket_option;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::mm::MapFlags;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};
use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of the `virtio_net_hdr` at the beginning of each packet.
pub const VIRTIO_NET_HEADER: usize = 10;
/// The number of slots in a ring and their size in bytes: for one segment, or for up to 64 KiB
/// each.
const SMALL_FRAMES: usize = 8192;
const SMALL_FRAME: usize = 2048;
const BIG_FRAMES: usize = 256;
/// Packets that any ring holds at most.
pub const MOST_FRAMES: usize = SMALL_FRAMES;
/// Packets that one call of [`PacketRing::send`] takes at most.
pub const BATCH: usize = 32;

/// A packet in the ring, valid until [`PacketRing::advance`].
pub struct RingFrame<'a> {
    /// `virtio_net_hdr`, Ethernet, IP and so on.
    pub bytes: &'a [u8],
    /// When the kernel received it, in nanoseconds of CLOCK_REALTIME.
    pub at: u64,
    /// Whether the slot holds all of it.
    pub is_whole: bool,
}

/// A packet socket with its ring.
pub struct PacketRing {
    socket: PacketSocket,
    map: Mapping,
    frame: usize,
    frames: usize,
    next: usize,
}

impl PacketRing {
    /// Receives packets of the device with this index in the calling thread's network namespace.
    /// Unless they are all `single_segments`, the slots have room for 64 KiB.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] without CAP_NET_RAW; those of setsockopt(2), mmap(2) and
    /// bind(2).
    pub fn open(index: u32, single_segments: bool) -> io::Result<PacketRing> {
        let socket = PacketSocket::open(FirstHeader::Link)?;
        let set = |name, value: i32| socket_option::set(&socket, libc::SOL_PACKET, name, &value);
        set(
            libc::PACKET_VERSION,
            libc::tpacket_versions::TPACKET_V2 as i32,
        )?;
        set(libc::PACKET_VNET_HDR, 1)?;
        set(libc::PACKET_IGNORE_OUTGOING, 1)?;
        // for speed only: without it packets pass a queueing discipline that does nothing
        let _ = set(libc::PACKET_QDISC_BYPASS, 1);
        let page = usize::try_from(page_size()).unwrap_or(4096);
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
        socket_option::set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let map = Mapping::new(frames * frame, MapFlags::SHARED, Some(socket.as_fd()))?;
        let ring = PacketRing {
            socket,
            map,
            frame,
            frames,
            next: 0,
        };
        ring.socket.listen(Some(index))?;
        Ok(ring)
    }

    /// Whether a packet waits; no system call.
    pub fn has_packet(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// The next packet, if one waits.
    pub fn peek(&self) -> Option<RingFrame<'_>> {
        if !self.has_packet() {
            return None;
        }
        let at = self.next * self.frame;
        // SAFETY: the slot lies within the mapping, starts with a tpacket2_hdr, and is ours while
        // TP_STATUS_USER is set.
        let head = unsafe { self.map.start().add(at).cast::<libc::tpacket2_hdr>().read() };
        let start = usize::from(head.tp_mac).saturating_sub(VIRTIO_NET_HEADER);
        // the kernel does not write beyond the slot; this bound makes sure of that
        let length =
            (head.tp_snaplen as usize + VIRTIO_NET_HEADER).min(self.frame - start.min(self.frame));
        // SAFETY: within the slot by the line above; the kernel does not write to it before it is
        // given back, which needs `&mut self`.
        let bytes = unsafe {
            std::slice::from_raw_parts(self.map.start().add(at + start).as_ptr(), length)
        };
        Some(RingFrame {
            bytes,
            at: u64::from(head.tp_sec) * 1_000_000_000 + u64::from(head.tp_nsec),
            is_whole: head.tp_snaplen == head.tp_len,
        })
    }

    /// Returns the slot of the current packet to the kernel.
    pub fn advance(&mut self) {
        self.status()
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.frames;
    }

    fn status(&self) -> &AtomicU32 {
        let slot = self.next * self.frame;
        // SAFETY: the slot lies within the mapping, which lives as long as `self`. Its first four
        // bytes are the status word, aligned as slots are, and shared with the kernel.
        unsafe { AtomicU32::from_ptr(self.map.start().add(slot).as_ptr().cast()) }
    }

    /// Sends at most [`BATCH`] packets, each with its `virtio_net_hdr`; returns how many were sent.
    /// The kernel refused the next one.
    pub fn send<'a>(&self, packets: impl Iterator<Item = &'a [u8]>) -> usize {
        let packets = packets.take(BATCH);
        let parts: Vec<_> = packets.map(|packet| [IoSlice::new(packet)]).collect();
        let mut controls: [_; BATCH] = std::array::from_fn(|_| SendAncillaryBuffer::default());
        let messages = parts.iter().zip(&mut controls);
        let mut messages: Vec<_> = messages
            .map(|(part, control)| MMsgHdr::new(part, control))
            .collect();
        sendmmsg(&self.socket, &mut messages, SendFlags::DONTWAIT).unwrap_or(0)
    }

    /// Packets that the kernel dropped because the ring was full, since the last call; 0 if it does
    /// not count.
    pub fn dropped(&self) -> u64 {
        self.socket.dropped().unwrap_or(0)
    }
}

impl AsFd for PacketRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
