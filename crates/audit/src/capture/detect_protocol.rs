//! What is spoken on a connection, told by the first bytes of either end.

use intact_ledger::Protocol;
use intact_wire::h2;

/// What the bytes mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guess {
    /// HTTP/1.0 or 1.1.
    Http1,
    /// A request of HTTP/0.9: one line, the answer is what comes until the end.
    Http09,
    /// HTTP/2 with prior knowledge.
    Http2,
    /// TLS.
    Tls,
    /// Not HTTP; a name if it has one.
    Other(Option<Protocol>),
    /// Too few bytes to tell.
    More,
}

/// The longest request line that is waited for, in bytes.
const MAX_LINE: usize = 16 << 10;

/// What a client says that begins like this.
pub(super) fn guess_client(bytes: &[u8]) -> Guess {
    if is_start_of(h2::PREFACE, bytes) {
        return if bytes.len() < h2::PREFACE.len() {
            Guess::More
        } else {
            Guess::Http2
        };
    }
    match bytes {
        [] => Guess::More,
        [0x16, 0x03, _, ..] => Guess::Tls,
        [0x16] | [0x16, 0x03] => Guess::More,
        _ if bytes.starts_with(b"AMQP\0") => Guess::Other(Some(Protocol::Amqp)),
        [b'*', b'1'..=b'9', ..] => Guess::Other(Some(Protocol::Redis)),
        [0, _, _, _, rest @ ..] => guess_postgresql(rest),
        _ => guess_request(bytes),
    }
}

/// What a server says that begins like this, its client having said nothing that was seen.
pub(super) fn guess_server(bytes: &[u8]) -> Guess {
    match bytes {
        [0x16, 0x03, _, ..] => Guess::Tls,
        // MySQL greets first: three bytes of length, packet 0, protocol version 10
        [_, _, 0, 0, 10, ..] => Guess::Other(Some(Protocol::Mysql)),
        _ if is_start_of(b"HTTP/1.", bytes) => {
            if bytes.len() < 7 {
                Guess::More
            } else {
                Guess::Http1
            }
        }
        _ => Guess::Other(None),
    }
}

/// Whether bytes in the middle of a stream are one or more TLS records from a border on.
pub(super) fn is_tls_record(bytes: &[u8]) -> bool {
    matches!(bytes, [0x14..=0x17, 0x03, 0x01..=0x04, ..])
}

/// The version of a StartupMessage, or an SSLRequest, after the length.
fn guess_postgresql(rest: &[u8]) -> Guess {
    match rest.first_chunk() {
        Some([0, 3, 0, 0] | [0x04, 0xd2, 0x16, 0x2f]) => Guess::Other(Some(Protocol::Postgresql)),
        Some(_) => Guess::Other(None),
        None => Guess::More,
    }
}

fn guess_request(bytes: &[u8]) -> Guess {
    let is_letter = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'-' || *byte == b'_';
    let method = bytes.iter().take(25).take_while(|byte| is_letter(byte));
    let method = &bytes[..method.count()];
    match bytes.get(method.len()) {
        None if method.len() < 25 => return Guess::More,
        Some(b' ') if !method.is_empty() => {}
        _ => return Guess::Other(None),
    }
    // other protocols have commands in capitals, too: `EHLO`, `USER`. What makes it HTTP is the end of the line
    let Some(end) = memchr::memchr(b'\n', bytes) else {
        return if bytes.len() < MAX_LINE {
            Guess::More
        } else {
            Guess::Http1
        };
    };
    let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
    let words: Vec<&[u8]> = line
        .split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty())
        .collect();
    match words[..] {
        [.., version] if version.starts_with(b"HTTP/") => Guess::Http1,
        [_, _] if method == b"GET" => Guess::Http09,
        _ => Guess::Other(None),
    }
}

/// Whether the two agree as far as both go.
fn is_start_of(whole: &[u8], bytes: &[u8]) -> bool {
    let len = bytes.len().min(whole.len());
    len > 0 && bytes[..len] == whole[..len]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_the_protocol() {
        for (bytes, guess) in [
            (&b"GET / HTTP/1.1\r\n"[..], Guess::Http1),
            (b"POST /", Guess::More),
            (b"POST / HTTP/1.1\r\n", Guess::Http1),
            (b"M-SEARCH * HTTP/1.1\r\n", Guess::Http1),
            (b"GET /old\r\n", Guess::Http09),
            (b"GET \n", Guess::Other(None)),
            (b"EHLO mail.example\r\n", Guess::Other(None)),
            (b"OPTIONS rtsp://a RTSP/1.0\r\n", Guess::Other(None)),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Guess::Http2),
            (b"PRI *", Guess::More),
            (b"G", Guess::More),
            (b"\x16\x03\x01\x02", Guess::Tls),
            (b"*1\r\n$4\r\nPING", Guess::Other(Some(Protocol::Redis))),
            (
                b"\0\0\0\x08\x04\xd2\x16\x2f",
                Guess::Other(Some(Protocol::Postgresql)),
            ),
            (b"AMQP\0\0\x09\x01", Guess::Other(Some(Protocol::Amqp))),
            (b"SSH-2.0-OpenSSH", Guess::Other(None)),
            (b"\xff\xff", Guess::Other(None)),
        ] {
            assert_eq!(guess_client(bytes), guess, "{}", bytes.escape_ascii());
        }
        assert_eq!(guess_server(b"HTTP/1.1 200"), Guess::Http1);
        assert_eq!(
            guess_server(b"\x4a\0\0\0\x0a8.0"),
            Guess::Other(Some(Protocol::Mysql))
        );
    }
}
