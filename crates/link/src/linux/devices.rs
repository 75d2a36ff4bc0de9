//! The devices of a network namespace. Uses rtnetlink(7) to create device pairs, addresses and
//! routes, and to read the state of a device.

use intact_sys::netlink::{Netlink, NetlinkProtocol, NetlinkRequest, attributes};
use rustix::fd::{AsRawFd, BorrowedFd};
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

/// The state of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Device {
    /// Its number in its namespace.
    pub(super) index: u32,
    /// It has a carrier and a queue: packets that are sent now arrive.
    pub(super) ready: bool,
    /// Packets sent from it that were dropped before they came to its other end.
    pub(super) dropped: u64,
}

/// The devices of one network namespace.
pub(super) struct Devices(Netlink);

impl Devices {
    /// Those of the calling thread's network namespace.
    pub(super) fn open() -> io::Result<Devices> {
        Ok(Devices(Netlink::open(NetlinkProtocol::Route)?))
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
        let segments = |message: NetlinkRequest| {
            if single_segments {
                message.attribute(IFLA_GSO_MAX_SEGS, &1u32.to_ne_bytes())
            } else {
                message
            }
        };
        let message = NetlinkRequest::new(libc::RTM_NEWLINK, flags, &interface(0))
            .text(libc::IFLA_IFNAME, outer)
            .attribute(libc::IFLA_MTU, &MTU.to_ne_bytes())
            .attribute(libc::IFLA_ADDRESS, &ADDRESS)
            .attribute(libc::IFLA_NET_NS_FD, &there.as_raw_fd().to_ne_bytes());
        let message = segments(message).nested(libc::IFLA_LINKINFO, &[], |message| {
            message.attribute(libc::IFLA_INFO_KIND, b"veth").nested(
                libc::IFLA_INFO_DATA,
                &[],
                |message| {
                    message.nested(VETH_INFO_PEER, &interface(0), |message| {
                        segments(
                            message
                                .text(libc::IFLA_IFNAME, inner)
                                .attribute(libc::IFLA_MTU, &MTU.to_ne_bytes()),
                        )
                    })
                },
            )
        });
        self.0.acknowledge(message)
    }

    /// Lets a device send packets of one segment only.
    pub(super) fn single_segments(&mut self, name: &str) -> io::Result<()> {
        let message =
            named(libc::RTM_NEWLINK, name, 0).attribute(IFLA_GSO_MAX_SEGS, &1u32.to_ne_bytes());
        self.0.acknowledge(message)
    }

    /// Brings a device up, without ARP.
    pub(super) fn up(&mut self, name: &str) -> io::Result<()> {
        // no link-local address, so no packets of the kernel's own; a kernel without IPv6 has no
        // such attribute
        let quiet = named(libc::RTM_NEWLINK, name, 0);
        let quiet = quiet.nested(libc::IFLA_AF_SPEC, &[], |message| {
            message.nested(libc::AF_INET6 as u16, &[], |message| {
                message.attribute(IFLA_INET6_ADDR_GEN_MODE, &[IN6_ADDR_GEN_MODE_NONE])
            })
        });
        let _ = self.0.acknowledge(quiet);
        let flags = (libc::IFF_UP | libc::IFF_NOARP) as u32;
        self.0.acknowledge(named(libc::RTM_NEWLINK, name, flags))
    }

    /// Brings the loopback device up.
    pub(super) fn loopback_up(&mut self) -> io::Result<()> {
        let up = named(libc::RTM_NEWLINK, "lo", libc::IFF_UP as u32);
        self.0.acknowledge(up)
    }

    /// Gives a device an address of its own length (/32, /128).
    pub(super) fn add_address(&mut self, device: Device, address: IpAddr) -> io::Result<()> {
        let (family, bytes) = family_and_bytes(address);
        let mut fixed = vec![family, (bytes.len() * 8) as u8, 0, 0];
        fixed.extend_from_slice(&device.index.to_ne_bytes());
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let message = NetlinkRequest::new(libc::RTM_NEWADDR, flags, &fixed)
            .attribute(libc::IFA_LOCAL, &bytes)
            .attribute(libc::IFA_ADDRESS, &bytes)
            .attribute(libc::IFA_FLAGS, &libc::IFA_F_NODAD.to_ne_bytes());
        self.0.acknowledge(message)
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
        let mut message = NetlinkRequest::new(libc::RTM_NEWROUTE, flags, &fixed)
            .attribute(libc::RTA_DST, &bytes)
            .attribute(libc::RTA_OIF, &device.index.to_ne_bytes());
        if let Some(name) = congestion {
            message = message.nested(libc::RTA_METRICS, &[], |message| {
                message.text(RTAX_CC_ALGO, name)
            });
        }
        self.0.acknowledge(message)
    }

    /// Asks for a device.
    pub(super) fn device(&mut self, name: &str) -> io::Result<Device> {
        let asked = named(libc::RTM_GETLINK, name, 0);
        let answer = self.0.ask(asked, libc::RTM_NEWLINK)?;
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
}

/// The eighth number of `rtnl_link_stats64`.
fn tx_dropped(stats: &[u8]) -> Option<u64> {
    let bytes = stats.get(56..64)?.try_into().ok()?;
    Some(u64::from_ne_bytes(bytes))
}

/// A request for the interface with this name.
fn named(kind: u16, name: &str, flags: u32) -> NetlinkRequest {
    NetlinkRequest::new(kind, 0, &interface(flags)).text(libc::IFLA_IFNAME, name)
}

/// `struct ifinfomsg`, which sets these flags.
fn interface(flags: u32) -> [u8; 16] {
    let mut fixed = [0; 16];
    fixed[8..12].copy_from_slice(&flags.to_ne_bytes());
    fixed[12..16].copy_from_slice(&flags.to_ne_bytes());
    fixed
}

fn family_and_bytes(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (libc::AF_INET as u8, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6 as u8, address.octets().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_is_there_and_another_is_not() {
        let mut devices = Devices::open().unwrap();
        assert!(devices.device("lo").is_ok());
        let error = devices.device("intact-none").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
