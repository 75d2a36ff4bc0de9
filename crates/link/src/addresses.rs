//! Where the two sides are: always the same, in namespaces of their own. 198.18.0.0/15 is for tests between networks (RFC 2544),
//! 2001:2::/48 likewise (RFC 5180), and no one owns `.test` (RFC 6761).

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
