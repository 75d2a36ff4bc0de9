//! Which protocol a connection speaks, told by its first bytes.

use intact_ledger::{Protocol, Side};

/// What the first bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DetectedProtocol {
    /// Not enough of them yet.
    More,
    /// HTTP/1.
    Http1,
    /// HTTP/2 from its preface on.
    Http2,
    /// TLS.
    Tls,
    /// A protocol that is only counted.
    Counted(Protocol),
    /// One that is not known.
    Unknown,
}

/// Bytes after which the answer is always known.
pub(super) const ENOUGH: usize = 24;
/// The longest method that is taken for one.
const MAX_METHOD: usize = 20;

/// Looks at the first bytes of whichever side spoke first.
pub(super) fn look(from: Side, bytes: &[u8]) -> DetectedProtocol {
    match from {
        Side::Client => look_at_client(bytes),
        Side::Server => look_at_server(bytes),
    }
}

fn look_at_client(bytes: &[u8]) -> DetectedProtocol {
    let preface = intact_wire::h2::PREFACE;
    let known = bytes.len().min(preface.len());
    if bytes[..known] == preface[..known] {
        // "P" alone may become "POST"
        return if known == preface.len() {
            DetectedProtocol::Http2
        } else {
            DetectedProtocol::More
        };
    }
    match bytes {
        [0x16, 0x03, ..] => DetectedProtocol::Tls,
        [0x16] => DetectedProtocol::More,
        [b'A', b'M', b'Q', b'P', ..] => DetectedProtocol::Counted(Protocol::Amqp),
        [b'*', b'0'..=b'9', ..] => DetectedProtocol::Counted(Protocol::Redis),
        [b'*'] => DetectedProtocol::More,
        // startup of protocol 3.x, SSLRequest, CancelRequest, GSSENCRequest
        [0, 0, _, _, 0, 3, 0, _, ..] | [0, 0, 0, 8 | 16, 0x04, 0xd2, 0x16, 0x2e..=0x30, ..] => {
            DetectedProtocol::Counted(Protocol::Postgresql)
        }
        [0, 0, ..] if bytes.len() < 8 => DetectedProtocol::More,
        _ => look_for_method(bytes),
    }
}

fn look_for_method(bytes: &[u8]) -> DetectedProtocol {
    let is_letter = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'-';
    match bytes.iter().position(|byte| !is_letter(byte)) {
        Some(1..=MAX_METHOD) if bytes.iter().find(|byte| !is_letter(byte)) == Some(&b' ') => {
            DetectedProtocol::Http1
        }
        None if bytes.len() <= MAX_METHOD => DetectedProtocol::More,
        _ => DetectedProtocol::Unknown,
    }
}

fn look_at_server(bytes: &[u8]) -> DetectedProtocol {
    match bytes {
        // a MySQL greeting: three bytes of length, sequence 0, protocol 10
        [_, _, 0, 0, 10, ..] => DetectedProtocol::Counted(Protocol::Mysql),
        [_] | [_, _] | [_, _, 0] | [_, _, 0, 0] => DetectedProtocol::More,
        // a server that speaks HTTP/1 unasked is about to close
        [b'H', b'T', b'T', b'P', ..] => DetectedProtocol::Http1,
        // HTTP/2 SETTINGS need not wait for the preface: six bytes a setting, no flags, stream 0 (RFC 9113 section 6.5)
        [0, _, len, rest @ ..] if len % 2 == 0 => {
            let head = [4, 0, 0, 0, 0, 0];
            let known = rest.len().min(head.len());
            match rest[..known] == head[..known] {
                true if known == head.len() => DetectedProtocol::Http2,
                true => DetectedProtocol::More,
                false => DetectedProtocol::Unknown,
            }
        }
        _ => DetectedProtocol::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn protocols_are_told_by_their_first_bytes() {
        let client = |bytes: &[u8]| look(Side::Client, bytes);
        assert_eq!(client(b"POST / HTTP/1.1\r\n"), DetectedProtocol::Http1);
        assert_eq!(
            client(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
            DetectedProtocol::Http2
        );
        assert_eq!(client(b"PROPFIND / HTTP/1.1"), DetectedProtocol::Http1);
        assert_eq!(client(&[0x16, 0x03, 0x01, 0x02]), DetectedProtocol::Tls);
        assert_eq!(
            client(b"*1\r\n$4\r\nPING\r\n"),
            DetectedProtocol::Counted(Protocol::Redis)
        );
        assert_eq!(
            client(&[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]),
            DetectedProtocol::Counted(Protocol::Postgresql)
        );
        assert_eq!(
            client(&[0, 0, 0, 40, 0, 3, 0, 0]),
            DetectedProtocol::Counted(Protocol::Postgresql)
        );
        assert_eq!(client(b"SSH-2.0-x\r\n"), DetectedProtocol::Unknown);
        assert_eq!(
            look(Side::Server, b"\x4a\0\0\0\x0a8.0"),
            DetectedProtocol::Counted(Protocol::Mysql)
        );
        assert_eq!(look(Side::Server, b"220 mail"), DetectedProtocol::Unknown);
        let settings = [0, 0, 18, 4, 0, 0, 0, 0, 0, 0, 3];
        assert_eq!(look(Side::Server, &settings), DetectedProtocol::Http2);
        assert_eq!(look(Side::Server, &settings[..5]), DetectedProtocol::More);
    }

    proptest! {
        #[test]
        fn more_is_never_wanted_of_enough(bytes in prop::collection::vec(any::<u8>(), ENOUGH..40)) {
            prop_assert_ne!(look(Side::Client, &bytes), DetectedProtocol::More);
            prop_assert_ne!(look(Side::Server, &bytes), DetectedProtocol::More);
        }

        #[test]
        fn an_answer_stands_when_more_comes(bytes in prop::collection::vec(any::<u8>(), 1..40), cut in 1usize..40) {
            let early = look(Side::Client, &bytes[..cut.min(bytes.len())]);
            prop_assert!(early == DetectedProtocol::More || early == look(Side::Client, &bytes));
        }
    }
}
