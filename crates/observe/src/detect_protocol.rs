//! Detects the protocol of a connection from the first bytes of either side.
//!
//! An HTTP/1 request is recognised by its whole first line: other protocols have commands in
//! capitals, too. The bytes are examined, never kept.

use intact_ledger::Protocol;
use intact_wire::{h2, http1};

/// The protocol that the first bytes show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetectedProtocol {
    /// HTTP/1.0 or 1.1.
    Http1,
    /// A request of HTTP/0.9: one line; the response lasts until the close.
    Http09,
    /// HTTP/2 with prior knowledge.
    Http2,
    /// TLS.
    Tls,
    /// Not HTTP; with its name if it is known.
    Other(Option<Protocol>),
    /// Too few bytes to decide.
    More,
}

/// Limit of a request line in bytes.
const MAX_LINE: usize = 16 << 10;
/// Limit of a method in bytes.
const MAX_METHOD: usize = 24;

/// The protocol of a client with these first bytes.
pub fn detect_client(bytes: &[u8]) -> DetectedProtocol {
    if is_start_of(h2::PREFACE, bytes) {
        return if bytes.len() < h2::PREFACE.len() {
            DetectedProtocol::More
        } else {
            DetectedProtocol::Http2
        };
    }
    match bytes {
        [] => DetectedProtocol::More,
        [0x16, 0x03, _, ..] => DetectedProtocol::Tls,
        [0x16] | [0x16, 0x03] => DetectedProtocol::More,
        _ if bytes.starts_with(b"AMQP") => DetectedProtocol::Other(Some(Protocol::Amqp)),
        [b'*', b'0'..=b'9', ..] => DetectedProtocol::Other(Some(Protocol::Redis)),
        [b'*'] => DetectedProtocol::More,
        [0, _, _, _, rest @ ..] => detect_postgresql(rest),
        [0, ..] => DetectedProtocol::More,
        _ => detect_request(bytes),
    }
}

/// Whether a client with these first bytes before a gap sends a request of HTTP/1.
pub(crate) fn detect_cut_client(bytes: &[u8]) -> bool {
    match detect_client(bytes) {
        DetectedProtocol::Http1 => true,
        DetectedProtocol::More => http1::begins_request(bytes),
        _ => false,
    }
}

/// The protocol of a server with these first bytes, if no byte of its client was observed.
pub fn detect_server(bytes: &[u8]) -> DetectedProtocol {
    match bytes {
        [0x16, 0x03, _, ..] => DetectedProtocol::Tls,
        // a MySQL greeting: three bytes of length, packet 0, protocol version 10
        [_, _, 0, 0, 10, ..] => DetectedProtocol::Other(Some(Protocol::Mysql)),
        _ if is_start_of(b"HTTP/1.", bytes) => {
            if bytes.len() < 7 {
                DetectedProtocol::More
            } else {
                DetectedProtocol::Http1
            }
        }
        // a server's SETTINGS may precede the preface; the preface decides
        _ => DetectedProtocol::Other(None),
    }
}

/// Whether bytes within a stream start with a TLS record.
pub(crate) fn is_tls_record(bytes: &[u8]) -> bool {
    matches!(bytes, [0x14..=0x17, 0x03, 0x01..=0x04, ..])
}

/// A StartupMessage of protocol 3, a CancelRequest, an SSLRequest or a GSSENCRequest, after the
/// length.
fn detect_postgresql(rest: &[u8]) -> DetectedProtocol {
    match rest.first_chunk() {
        Some([0, 3, 0, _] | [0x04, 0xd2, 0x16, 0x2e..=0x30]) => {
            DetectedProtocol::Other(Some(Protocol::Postgresql))
        }
        Some(_) => DetectedProtocol::Other(None),
        None => DetectedProtocol::More,
    }
}

fn detect_request(bytes: &[u8]) -> DetectedProtocol {
    let is_letter = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'-' || *byte == b'_';
    let method = bytes
        .iter()
        .take(MAX_METHOD + 1)
        .take_while(|byte| is_letter(byte));
    let method = &bytes[..method.count()];
    match bytes.get(method.len()) {
        None if method.len() <= MAX_METHOD => return DetectedProtocol::More,
        Some(b' ') if !method.is_empty() => {}
        _ => return DetectedProtocol::Other(None),
    }
    // other protocols have commands in capitals, too: `EHLO`, `USER`. The end of the line decides
    let Some(end) = memchr::memchr(b'\n', bytes) else {
        return if bytes.len() < MAX_LINE {
            DetectedProtocol::More
        } else {
            DetectedProtocol::Http1
        };
    };
    let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
    let words: Vec<&[u8]> = line
        .split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty())
        .collect();
    match words[..] {
        [.., version] if version.starts_with(b"HTTP/") => DetectedProtocol::Http1,
        [_, _] if method == b"GET" => DetectedProtocol::Http09,
        _ => DetectedProtocol::Other(None),
    }
}

/// Whether the two are equal in all bytes that both have.
fn is_start_of(whole: &[u8], bytes: &[u8]) -> bool {
    let len = bytes.len().min(whole.len());
    len > 0 && bytes[..len] == whole[..len]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn first_bytes_show_the_protocol() {
        use DetectedProtocol::{Http1, Http2, Http09, More, Other, Tls};
        for (bytes, detected) in [
            (&b"GET / HTTP/1.1\r\n"[..], Http1),
            (b"POST /", More),
            (b"POST / HTTP/1.1\r\n", Http1),
            (b"PROPFIND / HTTP/1.1\r\n", Http1),
            (b"M-SEARCH * HTTP/1.1\r\n", Http1),
            (b"GET /old\r\n", Http09),
            (b"GET \n", Other(None)),
            (b"EHLO mail.example\r\n", Other(None)),
            (b"OPTIONS rtsp://a RTSP/1.0\r\n", Other(None)),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Http2),
            (b"PRI *", More),
            (b"G", More),
            (b"\x16\x03\x01\x02", Tls),
            (b"*1\r\n$4\r\nPING", Other(Some(Protocol::Redis))),
            (
                b"\0\0\0\x08\x04\xd2\x16\x2f",
                Other(Some(Protocol::Postgresql)),
            ),
            (b"\0\0\0\x28\0\x03\0\0", Other(Some(Protocol::Postgresql))),
            (b"AMQP\0\0\x09\x01", Other(Some(Protocol::Amqp))),
            (b"SSH-2.0-OpenSSH", Other(None)),
            (b"\xff\xff", Other(None)),
        ] {
            assert_eq!(detect_client(bytes), detected, "{}", bytes.escape_ascii());
        }
        assert_eq!(detect_server(b"HTTP/1.1 200"), Http1);
        assert_eq!(detect_server(b"220 mail"), Other(None));
        assert_eq!(
            detect_server(b"\x4a\0\0\0\x0a8.0"),
            Other(Some(Protocol::Mysql))
        );
    }

    proptest! {
        #[test]
        fn a_decision_stands_when_more_bytes_come(bytes in prop::collection::vec(any::<u8>(), 1..60), cut in 1usize..60) {
            let early = detect_client(&bytes[..cut.min(bytes.len())]);
            prop_assert!(early == DetectedProtocol::More || early == detect_client(&bytes));
        }

        #[test]
        fn a_request_is_recognised_at_any_split(cut in 0usize..30) {
            let line = b"PROPFIND /a HTTP/1.1\r\nhost: a\r\n";
            let early = detect_client(&line[..cut]);
            prop_assert!(early == DetectedProtocol::More || early == DetectedProtocol::Http1);
        }
    }
}
