//! PPP frames (RFC 1661), on serial links, in PPPoE and in L2TP. Verifies nothing and allocates
//! nothing.

use super::ether::mpls;
use super::link::Inside;
use super::opaque::Opaque;

/// Protocols from here on control the link (RFC 1661 section 2).
const CONTROL: u16 = 0x4000;

/// The contents of a PPP frame. Address and control may be left out, and the protocol may have one
/// octet (RFC 1661 section 6.5): an odd first octet is the whole protocol.
pub(super) fn ppp(frame: &[u8]) -> Inside<'_> {
    let frame = frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame);
    let (protocol, rest) = match frame {
        [low, rest @ ..] if low & 1 == 1 => (u16::from(*low), rest),
        [high, low, rest @ ..] => (u16::from_be_bytes([*high, *low]), rest),
        _ => return Inside::Short,
    };
    match protocol {
        0x0021 | 0x0057 => Inside::Ip(rest),
        0x0281 | 0x0283 => mpls(rest),
        // RFC 1962, RFC 1968
        0x00fb | 0x00fd | 0x0053 | 0x0055 => {
            Inside::Opaque(Opaque::Named("compressed or encrypted PPP"))
        }
        0x002d | 0x002f | 0x0061..=0x0069 => {
            Inside::Opaque(Opaque::Named("PPP with compressed headers"))
        }
        0x003d => Inside::Opaque(Opaque::Named("multilink PPP")),
        protocol if protocol >= CONTROL => Inside::Other,
        // padding; other networks: OSI, DECnet, AppleTalk, IPX, spanning trees
        0x0001 | 0x0023 | 0x0025 | 0x0027 | 0x0029 | 0x002b | 0x0201..=0x0207 => Inside::Other,
        protocol => Inside::Opaque(Opaque::Ppp(protocol)),
    }
}
