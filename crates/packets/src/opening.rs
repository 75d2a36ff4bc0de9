//! Detects the client of a new connection by its first packet.

use intact_observe::{DetectedProtocol, detect_client, detect_server};
use intact_wire::Side;
use intact_wire::tcp::Segment;
use std::net::SocketAddr;

/// The client of a new connection, and whether its start was captured.
pub(super) struct Opening {
    pub(super) client: SocketAddr,
    pub(super) server: SocketAddr,
    pub(super) late: bool,
}

/// The ends of a new connection. `None` if the segment shows nothing about a connection whose start
/// was not captured.
pub(super) fn opening(
    source: SocketAddr,
    target: SocketAddr,
    segment: &Segment<'_>,
) -> Option<Opening> {
    let opening = |from_client, late| {
        let (client, server) = match from_client {
            true => (source, target),
            false => (target, source),
        };
        Opening {
            client,
            server,
            late,
        }
    };
    if segment.syn {
        return Some(opening(segment.ack.is_none(), false));
    }
    if segment.len == 0 {
        return None;
    }
    let client_guess = detect_client(segment.payload);
    let server_guess = detect_server(segment.payload);
    let says_client = matches!(
        client_guess,
        DetectedProtocol::Http1 | DetectedProtocol::Http2
    );
    let says_server = server_guess == DetectedProtocol::Http1;
    // TLS: a ClientHello is handshake message 1, a ServerHello 2
    let hello = match segment.payload {
        [0x16, 0x03, _, _, _, 1, ..] => Some(Side::Client),
        [0x16, 0x03, _, _, _, 2, ..] => Some(Side::Server),
        _ => None,
    };
    let from_client = match hello {
        Some(side) => side == Side::Client,
        None if says_client != says_server => says_client,
        // servers usually listen on the smaller port
        None => source.port() > target.port(),
    };
    Some(opening(from_client, true))
}
