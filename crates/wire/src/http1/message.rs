//! The meaning of fields for the connection: framing, persistence, announced terms.
//!
//! Shared by both directions; `request` and `response` decide the framing of a message.

use super::error::Error;
use super::fields;

/// The minor version of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/1.0: closes after each message unless `keep-alive` is sent.
    Http10,
    /// HTTP/1.1 (and any later 1.x): persists unless `close` is sent.
    Http11,
}

impl Version {
    /// The version with this minor digit; every later 1.x counts as 1.1.
    pub(super) fn of_minor(digit: u8) -> Self {
        if digit == b'0' {
            Self::Http10
        } else {
            Self::Http11
        }
    }
}

/// How the end of a message is determined (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Framing {
    /// There is no body.
    None,
    /// The body has this number of bytes.
    Length(u64),
    /// The body comes in chunks.
    Chunked,
    /// The body ends with the connection.
    UntilClose,
    /// The connection leaves HTTP/1 after this header section: a 101, or a successful CONNECT.
    Tunnel,
}

/// What the connection can be used for after a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Persistence {
    /// Another exchange, if the other side agrees.
    Reuse,
    /// Nothing: this side announced or implied that it closes.
    Close,
    /// Another protocol.
    Tunnel,
}

/// The meaning of the end of the byte stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Eof {
    /// No message was open.
    Idle,
    /// It ended a message that lasts until the close, or a tunnel.
    Complete,
    /// Requests had been sent, and no byte of a final response arrived.
    Unanswered {
        /// Number of expected responses.
        requests: usize,
    },
    /// It cut a header section.
    InHead,
    /// It cut a body or its trailers.
    InBody {
        /// The number of missing bytes, if a length was announced.
        missing: Option<u64>,
    },
}

/// The options of the `Connection` field that are used (RFC 9110 section 7.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Options {
    /// `close`: no further message follows this one.
    pub close: bool,
    /// `keep-alive`: HTTP/1.0's request to persist; without effect in HTTP/1.1.
    pub keep_alive: bool,
    /// `upgrade`: the `Upgrade` field names other protocols.
    pub upgrade: bool,
}

/// The announced terms of a `Keep-Alive` field; peers do not always respect them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct KeepAlive {
    /// `timeout=`: longest idle time of the connection, in seconds.
    pub timeout_s: Option<u32>,
    /// `max=`: number of further requests on the connection.
    pub max: Option<u32>,
}

/// The `Transfer-Encoding` of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Coding {
    #[default]
    Absent,
    /// `chunked` is the final coding.
    Chunked,
    /// There are codings, and `chunked` is not the final one.
    Unframed,
}

/// The values of the field lines that matter for the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fields {
    pub(super) length: Option<u64>,
    pub(super) coding: Coding,
    pub(super) options: Options,
    pub(super) keep_alive: KeepAlive,
    pub(super) expects_continue: bool,
}

impl Fields {
    pub(super) fn parse(lines: &[u8]) -> Result<Self, Error> {
        let mut this = Self::default();
        fields::validate(lines, |name, value| {
            // nearly every field has a length of its own, so most names cost one comparison of
            // integers
            match name.len() {
                6 if name.eq_ignore_ascii_case(b"expect") => {
                    this.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
                }
                10 if name.eq_ignore_ascii_case(b"connection") => this.read_options(value),
                10 if name.eq_ignore_ascii_case(b"keep-alive") => this.read_terms(value),
                14 if name.eq_ignore_ascii_case(b"content-length") => this.read_length(value)?,
                17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                    this.read_codings(value)?;
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(this)
    }

    /// Whether the message has both a length and a transfer coding. The coding applies, but another
    /// parser may use the length.
    #[inline]
    pub(super) fn is_ambiguous(&self) -> bool {
        self.length.is_some() && self.coding != Coding::Absent
    }

    /// Whether the connection persists according to this message (RFC 9112 section 9.3).
    #[inline]
    pub(super) fn persists(&self, version: Version) -> bool {
        !self.options.close && (version == Version::Http11 || self.options.keep_alive)
    }

    fn read_options(&mut self, value: &[u8]) {
        for option in list(value) {
            self.options.close |= option.eq_ignore_ascii_case(b"close");
            self.options.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            self.options.upgrade |= option.eq_ignore_ascii_case(b"upgrade");
        }
    }

    fn read_terms(&mut self, value: &[u8]) {
        for term in list(value) {
            let Some(equals) = term.iter().position(|&b| b == b'=') else {
                continue;
            };
            let number = decimal(fields::trim(&term[equals + 1..]))
                .map(|n| u32::try_from(n).unwrap_or(u32::MAX));
            let name = fields::trim(&term[..equals]);
            if name.eq_ignore_ascii_case(b"timeout") {
                self.keep_alive.timeout_s = number;
            } else if name.eq_ignore_ascii_case(b"max") {
                self.keep_alive.max = number;
            }
        }
    }

    /// Repeated identical lengths are one length (RFC 9110 section 8.6); different lengths are an
    /// attack or a bug.
    fn read_length(&mut self, value: &[u8]) -> Result<(), Error> {
        for item in value.split(|&b| b == b',') {
            let length = decimal(fields::trim(item))
                .ok_or_else(|| Error::framing("Content-Length is not a number", value))?;
            if self.length.is_some_and(|earlier| earlier != length) {
                return Err(Error::framing("two Content-Lengths that differ", value));
            }
            self.length = Some(length);
        }
        Ok(())
    }

    fn read_codings(&mut self, value: &[u8]) -> Result<(), Error> {
        for coding in list(value) {
            let chunked = coding.eq_ignore_ascii_case(b"chunked");
            if chunked && self.coding == Coding::Chunked {
                return Err(Error::framing("chunked twice", value));
            }
            self.coding = if chunked {
                Coding::Chunked
            } else {
                Coding::Unframed
            };
        }
        // a field without a value still shows that the sender meant a coding
        if self.coding == Coding::Absent {
            return Err(Error::framing("empty Transfer-Encoding", value));
        }
        Ok(())
    }
}

/// The items of a comma-separated list; empty items are skipped (RFC 9110 section 5.6.1).
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|&b| b == b',')
        .map(fields::trim)
        .filter(|item| !item.is_empty())
}

/// Parses digits only, within `u64`.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |n, &b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        n.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &str) -> Fields {
        Fields::parse(lines.as_bytes()).unwrap()
    }

    #[test]
    fn reads_connection_options_from_several_lines() {
        let fields = parse("Connection: Keep-Alive, foo\r\nCONNECTION: upgrade,,close\r\n\r\n");
        assert_eq!(
            fields.options,
            Options {
                close: true,
                keep_alive: true,
                upgrade: true
            }
        );
    }

    #[test]
    fn reads_keep_alive_terms_and_skips_malformed_ones() {
        let terms = |value: &str| parse(&format!("Keep-Alive: {value}\r\n\r\n")).keep_alive;
        assert_eq!(
            terms("timeout=5, max=100"),
            KeepAlive {
                timeout_s: Some(5),
                max: Some(100)
            }
        );
        assert_eq!(
            terms("Max = 7"),
            KeepAlive {
                timeout_s: None,
                max: Some(7)
            }
        );
        assert_eq!(terms("timeout=-1, 300"), KeepAlive::default());
        assert_eq!(
            terms("timeout=99999999999"),
            KeepAlive {
                timeout_s: Some(u32::MAX),
                max: None
            }
        );
    }

    #[test]
    fn persists_as_rfc_9112_section_9_3_requires() {
        let cases = [
            ("", Version::Http11, true),
            ("", Version::Http10, false),
            ("Connection: keep-alive\r\n", Version::Http10, true),
            ("Connection: close\r\n", Version::Http11, false),
            ("Connection: keep-alive, close\r\n", Version::Http10, false),
            ("Connection: keep-alive, close\r\n", Version::Http11, false),
        ];
        for (lines, version, expected) in cases {
            assert_eq!(
                parse(&format!("{lines}\r\n")).persists(version),
                expected,
                "{lines:?} {version:?}"
            );
        }
    }

    #[test]
    fn accepts_a_repeated_length_and_refuses_two_different_ones() {
        assert_eq!(
            parse("Content-Length: 5\r\ncontent-length: 5\r\n\r\n").length,
            Some(5)
        );
        assert_eq!(parse("Content-Length: 5, 5\r\n\r\n").length, Some(5));
        for bad in [
            "5, 6",
            "+5",
            "-1",
            "",
            "5 5",
            "0x5",
            "18446744073709551616",
            "5,",
        ] {
            let lines = format!("Content-Length: {bad}\r\n\r\n");
            assert!(
                matches!(Fields::parse(lines.as_bytes()), Err(Error::Framing { .. })),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn only_a_final_chunked_frames_a_message() {
        assert_eq!(
            parse("Transfer-Encoding: gzip, Chunked\r\n\r\n").coding,
            Coding::Chunked
        );
        assert_eq!(
            parse("Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n").coding,
            Coding::Unframed
        );
        for bad in ["chunked, chunked", "", ","] {
            let lines = format!("Transfer-Encoding: {bad}\r\n\r\n");
            assert!(
                matches!(Fields::parse(lines.as_bytes()), Err(Error::Framing { .. })),
                "{bad:?}"
            );
        }
    }
}
