//! The fixed addresses of both sides, inside the link's namespaces. 198.18.0.0/15 (RFC 2544) and
//! 2001:2::/48 (RFC 5180) are reserved for benchmarks; `.test` is a reserved name (RFC 6761).

use std::net::{Ipv4Addr, Ipv6Addr};

/// The client side.
pub const CLIENT_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The client side.
pub const CLIENT_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1);
/// The server side.
pub const SERVER_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// The server side.
pub const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 2);
/// The server's name, for its IPv4 address.
pub const SERVER_NAME: &str = "server.test";
