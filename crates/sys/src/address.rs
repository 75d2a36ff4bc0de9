//! `struct sockaddr` as bytes, as system calls take and give it.

use socket2::SockAddr;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Bytes of the larger of the two address structures of the Internet.
pub const MAX_LEN: usize = 28;
/// Bytes of the address structure of Unix sockets.
pub const UNIX_LEN: usize = size_of::<libc::sockaddr_un>();
const V4_LEN: usize = 16;

/// The kind of an address argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressKind {
    /// An address of the Internet.
    Inet(SocketAddr),
    /// Anything else: Unix, netlink, or the request to disconnect.
    Other,
}

/// Any port of the loopback address of a family.
pub fn loopback(v6: bool) -> SocketAddr {
    match v6 {
        true => (Ipv6Addr::LOCALHOST, 0).into(),
        false => (Ipv4Addr::LOCALHOST, 0).into(),
    }
}

/// Reads a `struct sockaddr` of any family; `None` if it is too short for its family.
pub fn parse(bytes: &[u8]) -> Option<AddressKind> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = |bytes: &[u8]| Some(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?));
    match i32::from(family) {
        libc::AF_INET => {
            let host: [u8; 4] = *bytes.get(4..)?.first_chunk()?;
            (bytes.len() >= V4_LEN).then_some(())?;
            let address = SocketAddrV4::new(Ipv4Addr::from(host), port(bytes)?);
            Some(AddressKind::Inet(address.into()))
        }
        libc::AF_INET6 => {
            // in the order of the network, which the standard library keeps
            let flow = u32::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
            let host: [u8; 16] = *bytes.get(8..)?.first_chunk()?;
            // old callers leave the scope out
            let scope = bytes
                .get(24..)
                .and_then(|rest| rest.first_chunk())
                .map_or(0, |scope| u32::from_ne_bytes(*scope));
            let address = SocketAddrV6::new(Ipv6Addr::from(host), port(bytes)?, flow, scope);
            Some(AddressKind::Inet(address.into()))
        }
        _ => Some(AddressKind::Other),
    }
}

/// The name of a Unix socket in a `struct sockaddr`: a path, or `@` and an abstract name. `None`
/// for other families and for a socket without a name. Bytes that are no UTF-8 are replaced.
pub fn unix_name(bytes: &[u8]) -> Option<String> {
    let (family, name) = bytes.split_first_chunk()?;
    if i32::from(u16::from_ne_bytes(*family)) != libc::AF_UNIX {
        return None;
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match name {
        [] => None,
        [0, abstract_name @ ..] => Some(format!("@{}", text(abstract_name))),
        path => path.split(|byte| *byte == 0).next().map(text),
    }
}

/// An address as the kernel would write it for a socket of that family.
pub fn write(address: SocketAddr, v6: bool) -> Vec<u8> {
    let address = SockAddr::from(on_socket(address, v6));
    // SAFETY: an address of this length lies there, whose fields leave no gaps.
    let bytes = unsafe {
        std::slice::from_raw_parts(address.as_ptr().cast::<u8>(), address.len() as usize)
    };
    bytes.to_vec()
}

/// The IPv4 address for an IPv4-mapped IPv6 address; other addresses stay as they are.
pub fn unmapped(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        host if host.is_ipv4() => SocketAddr::new(host, address.port()),
        _ => address,
    }
}

/// The form of an address that a socket of that family can connect to.
pub fn on_socket(address: SocketAddr, v6: bool) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v6 => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_v4_address_is_mapped_on_a_v6_socket() {
        let address: SocketAddr = "127.0.0.1:80".parse().unwrap();
        assert_eq!(
            parse(&write(address, false)),
            Some(AddressKind::Inet(address))
        );
        let Some(AddressKind::Inet(mapped)) = parse(&write(address, true)) else {
            panic!("no address");
        };
        assert_eq!(mapped.to_string(), "[::ffff:127.0.0.1]:80");
        assert_eq!(unmapped(mapped), address);
    }

    #[test]
    fn the_request_to_disconnect_is_no_address() {
        assert_eq!(parse(&[0; 16]), Some(AddressKind::Other));
        let unix = |name: &[u8]| [&(libc::AF_UNIX as u16).to_ne_bytes()[..], name].concat();
        assert_eq!(unix_name(&unix(b"/run/a\0\0")).unwrap(), "/run/a");
        assert_eq!(unix_name(&unix(b"\0a\0")).unwrap(), "@a\0");
        assert_eq!(unix_name(&unix(b"")), None);
        assert_eq!(unix_name(&[0; 16]), None);
        assert_eq!(parse(&[2, 0, 0, 80]), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn what_is_written_reads_back(host: u128, port: u16, scope: u32) {
            let address = SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::from(host), port, 0, scope));
            prop_assert_eq!(parse(&write(address, true)), Some(AddressKind::Inet(address)));
        }
    }
}
