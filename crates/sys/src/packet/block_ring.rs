//! A packet socket on all devices of a network namespace with a ring of blocks that the kernel
//! fills (`packet_mmap`, TPACKET_V3). Packets have their own lengths, so a segment of 64 KiB that
//! offloads made takes no more than its bytes. Receives only.

use super::{FirstHeader, PacketSocket};
use crate::bpf::Instruction;
use crate::mapping::Mapping;
use crate::socket_option;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use rustix::mm::MapFlags;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a block: room for several of the largest segments that devices make by default, 64 KiB.
/// The kernel passes one on after [`RETIRE`], however empty: of a ring of smaller blocks the reader
/// may be busy for longer.
const BLOCK: usize = 256 << 10;
/// The kernel passes a block on after this time, full or not, in milliseconds.
const RETIRE: u32 = 10;
/// The alignment of frames, which the kernel asks for although it does not use it here.
const FRAME: usize = 2048;
/// Where the address of a packet begins: after its header, aligned to 16 bytes.
const ADDRESS: usize = size_of::<libc::tpacket3_hdr>().next_multiple_of(16);

/// A packet in the ring.
pub struct BlockPacket<'a> {
    /// It begins with its IP header.
    pub bytes: &'a [u8],
    /// When the kernel took it, in nanoseconds of CLOCK_REALTIME.
    pub at: u64,
    /// Whether the ring holds all of it.
    pub is_whole: bool,
    /// Whether its device is a loopback device.
    pub is_loopback: bool,
    /// Whether this machine sends it.
    pub is_outgoing: bool,
}

/// A packet socket with its ring of blocks.
pub struct BlockRing {
    socket: PacketSocket,
    map: Mapping,
    blocks: usize,
    next: usize,
}

impl BlockRing {
    /// Receives packets that the filter keeps, of all devices of the calling thread's network
    /// namespace. The ring takes about this number of bytes, at least two blocks of 256 KiB.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] without CAP_NET_RAW; those of setsockopt(2), mmap(2) and
    /// bind(2).
    pub fn open(filter: &[Instruction], bytes: usize) -> io::Result<BlockRing> {
        let socket = PacketSocket::open(FirstHeader::Network)?;
        socket.attach_filter(filter)?;
        let version = libc::tpacket_versions::TPACKET_V3 as i32;
        socket_option::set(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let blocks = (bytes / BLOCK).max(2);
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: (blocks * BLOCK / FRAME) as u32,
            tp_retire_blk_tov: RETIRE,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        socket_option::set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let map = Mapping::new(blocks * BLOCK, MapFlags::SHARED, Some(socket.as_fd()))?;
        let ring = BlockRing {
            socket,
            map,
            blocks,
            next: 0,
        };
        ring.socket.listen(None)?;
        Ok(ring)
    }

    /// Passes on the packets of the next block that the kernel has filled, and returns the block to
    /// it. Returns whether there was one; does not wait.
    pub fn read(&mut self, mut visit: impl FnMut(BlockPacket<'_>)) -> bool {
        if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        let block = self.next * BLOCK;
        // SAFETY: the block lies within the mapping, begins with a tpacket_block_desc, and is ours
        // while TP_STATUS_USER is set.
        let head = unsafe {
            let block = self
                .map
                .start()
                .add(block)
                .cast::<libc::tpacket_block_desc>();
            block.read().hdr.bh1
        };
        let mut at = head.offset_to_first_pkt as usize;
        for _ in 0..head.num_pkts {
            let Some(next) = self.packet(block, at, &mut visit) else {
                break;
            };
            at += next;
        }
        self.status()
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.blocks;
        true
    }

    /// Passes on the packet at this offset of a block. Returns the distance to the next one; `None`
    /// if it is not within the block, which the kernel does not do.
    fn packet(
        &self,
        block: usize,
        at: usize,
        visit: &mut impl FnMut(BlockPacket<'_>),
    ) -> Option<usize> {
        let room = BLOCK.checked_sub(at)?;
        if room < ADDRESS + size_of::<libc::sockaddr_ll>() {
            return None;
        }
        // SAFETY: both structures lie within the block by the line above, aligned to 8 bytes, and
        // the kernel does not write to them before the block is given back.
        let (head, address) = unsafe {
            let packet = self.map.start().add(block + at);
            let head = packet.cast::<libc::tpacket3_hdr>().read_unaligned();
            let address = packet.add(ADDRESS).cast::<libc::sockaddr_ll>();
            (head, address.read_unaligned())
        };
        let (start, len) = (usize::from(head.tp_net), head.tp_snaplen as usize);
        if start + len > room {
            return None;
        }
        // SAFETY: within the block by the line above; not written to before it is given back.
        let bytes = unsafe {
            let packet = self.map.start().add(block + at + start);
            std::slice::from_raw_parts(packet.as_ptr(), len)
        };
        visit(BlockPacket {
            bytes,
            at: u64::from(head.tp_sec) * 1_000_000_000 + u64::from(head.tp_nsec),
            is_whole: head.tp_snaplen == head.tp_len,
            is_loopback: address.sll_hatype == libc::ARPHRD_LOOPBACK,
            is_outgoing: u32::from(address.sll_pkttype) == u32::from(libc::PACKET_OUTGOING),
        });
        Some(head.tp_next_offset as usize)
    }

    fn status(&self) -> &AtomicU32 {
        let at = self.next * BLOCK + std::mem::offset_of!(libc::tpacket_block_desc, hdr);
        // SAFETY: the block lies within the mapping, which lives as long as `self`. The status is
        // the first word of its header, aligned as blocks are, and shared with the kernel.
        unsafe { AtomicU32::from_ptr(self.map.start().add(at).as_ptr().cast()) }
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// Packets that the kernel dropped because the ring was full, since the last call.
    ///
    /// # Errors
    /// Those of getsockopt(2).
    pub fn dropped(&self) -> io::Result<u64> {
        self.socket.dropped()
    }
}

impl AsFd for BlockRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for BlockRing {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_fd().as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tcp_filter;
    use super::*;
    use std::collections::BTreeMap;
    use std::io::{ErrorKind, Read, Write};
    use std::net::{Ipv6Addr, TcpListener, TcpStream};

    /// A ring; `None` without CAP_NET_RAW.
    fn ring() -> Option<BlockRing> {
        match BlockRing::open(&tcp_filter(), 2 << 20) {
            Ok(ring) => Some(ring),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::PermissionDenied);
                None
            }
        }
    }

    /// The payload bytes of packets to this port that came until one of them ends with `last`: all,
    /// and those of segments that the kernel did not send again.
    fn payload_to(ring: &mut BlockRing, port: u16, last: u8) -> (usize, usize) {
        let (mut all, mut sent, mut is_over) = (0, BTreeMap::new(), false);
        while !is_over {
            ring.read(|packet| {
                let head = match packet.bytes[0] >> 4 {
                    4 => usize::from(packet.bytes[0] & 15) * 4,
                    _ => 40,
                };
                let tcp = &packet.bytes[head..];
                if tcp[2..4] == port.to_be_bytes() {
                    assert!(packet.is_whole && packet.is_loopback && !packet.is_outgoing);
                    let payload = tcp.len() - usize::from(tcp[12] >> 4) * 4;
                    all += payload;
                    let one = sent.entry(tcp[4..8].to_vec()).or_default();
                    *one = payload.max(*one);
                    is_over |= packet.bytes.ends_with(&[last]);
                }
            });
        }
        (all, sent.values().sum())
    }

    #[test]
    fn each_packet_of_loopback_comes_once_and_whole_also_large_segments() {
        let Some(mut ring) = ring() else { return };
        for listener in [
            TcpListener::bind("127.0.0.1:0"),
            TcpListener::bind((Ipv6Addr::LOCALHOST, 0)),
        ] {
            // a machine without IPv6
            let Ok(listener) = listener else { continue };
            let address = listener.local_addr().unwrap();
            let mut client = TcpStream::connect(address).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            let mut data = vec![b'x'; 300_000];
            data.push(b'!');
            let writer = std::thread::spawn(move || client.write_all(&data).map(|()| client));
            server.read_exact(&mut vec![0; 300_001]).unwrap();
            writer.join().unwrap().unwrap();
            let (all, sent) = payload_to(&mut ring, address.port(), b'!');
            assert_eq!(sent, 300_001);
            // a busy machine repeats a segment now and then
            assert!(all < 2 * 300_001, "{all}");
        }
        assert_eq!(ring.dropped().unwrap(), 0);
    }

    #[test]
    fn packets_that_do_not_fit_are_counted() {
        let Some(ring) = ring() else { return };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut buffer = vec![0; 1 << 20];
        let writer = std::thread::spawn(move || client.write_all(&vec![1; 8 << 20]));
        for _ in 0..8 {
            server.read_exact(&mut buffer).unwrap();
        }
        writer.join().unwrap().unwrap();
        assert!(ring.dropped().unwrap() > 0);
    }
}
