//! The few rtnetlink messages that a link needs (`man 7 rtnetlink`): a pair of devices, addresses, routes, and what state a
//! device is in. Each socket speaks for the network namespace in which it was opened.

use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};
use std::io;
use std::net::IpAddr;

/// `IFLA_GSO_MAX_SEGS` of linux/if_link.h, which libc does not name on every target.
const IFLA_GSO_MAX_SEGS: u16 = 40;
/// `VETH_INFO_PEER` of linux/veth.h.
const VETH_INFO_PEER: u16 = 1;
/// `IFLA_INET6_ADDR_GEN_MODE` and its `none`, of linux/if_link.h.
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;
/// `RTAX_CC_ALGO` of linux/rtnetlink.h.
const RTAX_CC_ALGO: u16 = 16;
/// `IF_OPER_UP` of linux/if.h.
const IF_OPER_UP: u8 = 6;
/// The same on both ends, so that no neighbour needs to be found.
const ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];
const MTU: u32 = 1500;
const HEADER: usize = 16;

/// A message under construction.
struct Message(Vec<u8>);

impl Message {
    /// `nlmsghdr`, then the fixed part of the kind.
    fn new(kind: u16, flags: i32, fixed: &[u8]) -> Message {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&((flags | libc::NLM_F_REQUEST) as u16).to_ne_bytes());
        bytes.extend_from_slice(fixed);
        Message(bytes)
    }

    fn attribute(mut self, kind: u16, value: &[u8]) -> Message {
        let length = (4 + value.len()) as u16;
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// An attribute whose value is `fixed` and further attributes.
    fn nested(
        mut self,
        kind: u16,
        fixed: &[u8],
        inner: impl FnOnce(Message) -> Message,
    ) -> Message {
        let at = self.0.len();
        self = self.attribute(kind, fixed);
        self = inner(self);
        let length = (self.0.len() - at) as u16;
        self.0[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }

    fn name(self, name: &str) -> Message {
        self.attribute(libc::IFLA_IFNAME, &[name.as_bytes(), &[0]].concat())
    }
}

/// What the kernel says of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) index: u32,
    /// It has a carrier and a queue: what is sent now arrives.
    pub(super) ready: bool,
    /// Packets sent from it that were dropped before they came to its other end.
    pub(super) dropped: u64,
}

/// An rtnetlink socket.
pub(super) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// Opens one in the calling thread's network namespace.
    pub(super) fn open() -> io::Result<Netlink> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok(Netlink {
            socket,
            sequence: 0,
        })
    }

    /// Makes a pair of devices: `outer` in the namespace `there`, `inner` here.
    pub(super) fn make_pair(
        &mut self,
        outer: &str,
        there: BorrowedFd<'_>,
        inner: &str,
        single_segments: bool,
    ) -> io::Result<()> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let segments = |message: Message| {
            if single_segments {
                message.attribute(IFLA_GSO_MAX_SEGS, &1u32.to_ne_bytes())
            } else {
                message
            }
        };
        let message = Message::new(libc::RTM_NEWLINK, flags, &interface(0, 0))
            .name(outer)
            .attribute(libc::IFLA_MTU, &MTU.to_ne_bytes())
            .attribute(libc::IFLA_ADDRESS, &ADDRESS)
            .attribute(libc::IFLA_NET_NS_FD, &there.as_raw_fd().to_ne_bytes());
        let message = segments(message).nested(libc::IFLA_LINKINFO, &[], |message| {
            message.attribute(libc::IFLA_INFO_KIND, b"veth").nested(
                libc::IFLA_INFO_DATA,
                &[],
                |message| {
                    message.nested(VETH_INFO_PEER, &interface(0, 0), |message| {
                        segments(
                            message
                                .name(inner)
                                .attribute(libc::IFLA_MTU, &MTU.to_ne_bytes()),
                        )
                    })
                },
            )
        });
        self.acknowledged(message)
    }

    /// Lets a device send packets of one segment only.
    pub(super) fn single_segments(&mut self, name: &str) -> io::Result<()> {
        let message = Message::new(libc::RTM_NEWLINK, 0, &interface(0, 0))
            .name(name)
            .attribute(IFLA_GSO_MAX_SEGS, &1u32.to_ne_bytes());
        self.acknowledged(message)
    }

    /// Brings a device up, without ARP.
    pub(super) fn up(&mut self, name: &str) -> io::Result<()> {
        // no link-local address, so no packets of the kernel's own; a kernel without IPv6 has no such attribute
        let quiet = Message::new(libc::RTM_NEWLINK, 0, &interface(0, 0))
            .name(name)
            .nested(libc::IFLA_AF_SPEC, &[], |message| {
                message.nested(libc::AF_INET6 as u16, &[], |message| {
                    message.attribute(IFLA_INET6_ADDR_GEN_MODE, &[IN6_ADDR_GEN_MODE_NONE])
                })
            });
        let _ = self.acknowledged(quiet);
        let flags = (libc::IFF_UP | libc::IFF_NOARP) as u32;
        let message = Message::new(libc::RTM_NEWLINK, 0, &interface(flags, flags)).name(name);
        self.acknowledged(message)
    }

    /// Brings the loopback device up.
    pub(super) fn loopback_up(&mut self) -> io::Result<()> {
        let flags = libc::IFF_UP as u32;
        self.acknowledged(Message::new(libc::RTM_NEWLINK, 0, &interface(flags, flags)).name("lo"))
    }

    /// Gives a device an address of its own length (/32, /128).
    pub(super) fn add_address(&mut self, device: Device, address: IpAddr) -> io::Result<()> {
        let (family, bytes) = family_and_bytes(address);
        let mut fixed = vec![family, (bytes.len() * 8) as u8, 0, 0];
        fixed.extend_from_slice(&device.index.to_ne_bytes());
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let message = Message::new(libc::RTM_NEWADDR, flags, &fixed)
            .attribute(libc::IFA_LOCAL, &bytes)
            .attribute(libc::IFA_ADDRESS, &bytes)
            .attribute(libc::IFA_FLAGS, &libc::IFA_F_NODAD.to_ne_bytes());
        self.acknowledged(message)
    }

    /// Routes a prefix to a device, with a congestion control where one is named.
    pub(super) fn add_route(
        &mut self,
        device: Device,
        prefix: IpAddr,
        bits: u8,
        congestion: Option<&str>,
    ) -> io::Result<()> {
        let (family, bytes) = family_and_bytes(prefix);
        let scope = if prefix.is_ipv4() {
            libc::RT_SCOPE_LINK
        } else {
            libc::RT_SCOPE_UNIVERSE
        };
        let fixed = [
            family,
            bits,
            0,
            0,
            libc::RT_TABLE_MAIN,
            libc::RTPROT_STATIC,
            scope,
            libc::RTN_UNICAST,
            0,
            0,
            0,
            0,
        ];
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let mut message = Message::new(libc::RTM_NEWROUTE, flags, &fixed)
            .attribute(libc::RTA_DST, &bytes)
            .attribute(libc::RTA_OIF, &device.index.to_ne_bytes());
        if let Some(name) = congestion {
            message = message.nested(libc::RTA_METRICS, &[], |message| {
                message.attribute(RTAX_CC_ALGO, &[name.as_bytes(), &[0]].concat())
            });
        }
        self.acknowledged(message)
    }

    /// Asks for a device.
    pub(super) fn device(&mut self, name: &str) -> io::Result<Device> {
        let asked = Message::new(libc::RTM_GETLINK, 0, &interface(0, 0)).name(name);
        let answer = self.answer(asked, libc::RTM_NEWLINK)?;
        let malformed = || io::Error::from(io::ErrorKind::InvalidData);
        let index = answer.get(4..8).and_then(|four| four.try_into().ok());
        let index = u32::from_ne_bytes(index.ok_or_else(malformed)?);
        let (mut carrier, mut queue, mut dropped) = (false, false, 0);
        for (kind, value) in attributes(answer.get(16..).ok_or_else(malformed)?) {
            match kind {
                libc::IFLA_OPERSTATE => carrier = value.first() == Some(&IF_OPER_UP),
                libc::IFLA_STATS64 => dropped = tx_dropped(value).ok_or_else(malformed)?,
                libc::IFLA_QDISC => queue = !value.starts_with(b"noop\0"),
                _ => {}
            }
        }
        Ok(Device {
            index,
            ready: carrier && queue,
            dropped,
        })
    }

    fn acknowledged(&mut self, mut message: Message) -> io::Result<()> {
        let flags = u16::from_ne_bytes([message.0[6], message.0[7]]) | libc::NLM_F_ACK as u16;
        message.0[6..8].copy_from_slice(&flags.to_ne_bytes());
        self.answer(message, libc::NLMSG_ERROR as u16).map(|_| ())
    }

    /// Sends, and gives the body of the answer of kind `wanted`; an error answer is that error.
    fn answer(&mut self, message: Message, wanted: u16) -> io::Result<Vec<u8>> {
        self.sequence += 1;
        let mut bytes = message.0;
        let length = bytes.len() as u32;
        bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        sendto(
            &self.socket,
            &bytes,
            SendFlags::empty(),
            &SocketAddrNetlink::new(0, 0),
        )?;
        let mut got = vec![0; 32 * 1024];
        loop {
            let (length, _) = recv(&self.socket, &mut got[..], RecvFlags::empty())?;
            let mut rest = &got[..length];
            while rest.len() >= HEADER {
                let length = u32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
                if length < HEADER || length > rest.len() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                let kind = u16::from_ne_bytes([rest[4], rest[5]]);
                let sequence = u32::from_ne_bytes([rest[8], rest[9], rest[10], rest[11]]);
                let body = &rest[HEADER..length];
                if sequence == self.sequence && kind == libc::NLMSG_ERROR as u16 {
                    let code = body.get(..4).and_then(|four| four.try_into().ok());
                    let code = code.map_or(0, i32::from_ne_bytes);
                    if code != 0 {
                        return Err(io::Error::from_raw_os_error(-code));
                    }
                }
                if sequence == self.sequence && kind == wanted {
                    return Ok(body.to_vec());
                }
                rest = &rest[length.next_multiple_of(4).min(rest.len())..];
            }
        }
    }
}

/// The eighth number of `rtnl_link_stats64`.
fn tx_dropped(stats: &[u8]) -> Option<u64> {
    let bytes = stats.get(56..64)?.try_into().ok()?;
    Some(u64::from_ne_bytes(bytes))
}

/// `ifinfomsg`.
fn interface(flags: u32, change: u32) -> [u8; 16] {
    let mut fixed = [0; 16];
    fixed[8..12].copy_from_slice(&flags.to_ne_bytes());
    fixed[12..16].copy_from_slice(&change.to_ne_bytes());
    fixed
}

fn family_and_bytes(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (libc::AF_INET as u8, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6 as u8, address.octets().to_vec()),
    }
}

/// The attributes in a message's body; what is cut off ends the list.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_attributes_carry_their_whole_length() {
        let message = Message::new(0, 0, &[]).nested(18, &[], |inner| {
            inner.attribute(1, b"veth").attribute(2, b"abc")
        });
        let outer: Vec<_> = attributes(&message.0[HEADER..]).collect();
        assert_eq!(outer.len(), 1);
        let inner: Vec<_> = attributes(outer[0].1).collect();
        assert_eq!(inner, [(1, &b"veth"[..]), (2, &b"abc"[..])]);
    }

    #[test]
    fn a_cut_off_attribute_ends_the_list() {
        let message = Message::new(0, 0, &[])
            .attribute(1, b"0123")
            .attribute(2, b"4567");
        let cut = &message.0[HEADER..message.0.len() - 1];
        assert_eq!(attributes(cut).count(), 1);
        assert_eq!(
            attributes(&[0, 0, 0, 0]).count(),
            0,
            "a length of zero is no endless loop"
        );
    }

    #[test]
    fn the_loopback_device_is_there_and_another_is_not() {
        let mut netlink = Netlink::open().unwrap();
        assert!(netlink.device("lo").is_ok());
        let error = netlink.device("intact-none").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
