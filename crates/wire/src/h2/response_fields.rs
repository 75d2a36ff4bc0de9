//! Checks the rules for the fields of a response (RFC 9113 sections 8.2 and 8.3), field by field as
//! they are decoded.
//!
//! A response that breaks a rule is malformed, and the client treats it as an error. Another reader
//! could take it for another response.

use super::error::Error;
use crate::http1::{decimal, is_token};

/// The fields of one header or trailer section of a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResponseFields {
    status: Option<u16>,
    content_length: Option<u64>,
    grpc_status: Option<u16>,
    /// A field that is no pseudo-header field was read.
    is_past_pseudo: bool,
    wrong: Option<&'static str>,
}

impl ResponseFields {
    /// Takes the next field, in the order of the section.
    #[inline]
    pub fn take(&mut self, name: &[u8], value: &[u8]) {
        if self.wrong.is_none() {
            self.wrong = self.check(name, value).err();
        }
    }

    fn check(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
            return Err("a field value with NUL, CR or LF");
        }
        if name.first() == Some(&b':') {
            return self.check_pseudo(name, value);
        }
        self.is_past_pseudo = true;
        let is_lower_token = |byte: &u8| is_token(*byte) && !byte.is_ascii_uppercase();
        if name.is_empty() || !name.iter().all(is_lower_token) {
            return Err("a field name that is no token in lower case");
        }
        match name {
            _ if is_of_connections(name) => Err("a field of HTTP/1 connections"),
            b"content-length" => {
                let length = decimal(value).ok_or("content-length that is no number")?;
                match self.content_length.replace(length) {
                    Some(other) if other != length => Err("two different content-length fields"),
                    _ => Ok(()),
                }
            }
            b"grpc-status" => {
                self.grpc_status = decimal(value).and_then(|status| u16::try_from(status).ok());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        if name != b":status" {
            return Err("a pseudo-header field that no response has");
        }
        if self.is_past_pseudo {
            return Err(":status after other fields");
        }
        if self.status.is_some() {
            return Err("two :status fields");
        }
        let status = match value {
            [b'1'..=b'9', _, _] => decimal(value).and_then(|status| u16::try_from(status).ok()),
            _ => None,
        };
        self.status = Some(status.ok_or(":status that is no status code")?);
        Ok(())
    }

    /// Status and `content-length` of a header section.
    ///
    /// # Errors
    /// If a field breaks a rule, `:status` is missing, or the status is 101 (RFC 9113 section 8.6).
    pub fn header_section(self) -> Result<(u16, Option<u64>), Error> {
        match (self.wrong, self.status) {
            (Some(wrong), _) => Err(Error::Protocol(wrong)),
            (None, None) => Err(Error::Protocol("a response without :status")),
            (None, Some(101)) => Err(Error::Protocol("status 101, which HTTP/2 has not")),
            (None, Some(status)) => Ok((status, self.content_length)),
        }
    }

    /// The `grpc-status` of the section, if it has one that is a number.
    #[inline]
    pub fn grpc_status(&self) -> Option<u16> {
        self.grpc_status
    }

    /// Checks a trailer section.
    ///
    /// # Errors
    /// If a field breaks a rule or is a pseudo-header field.
    pub fn trailer_section(self) -> Result<(), Error> {
        match (self.wrong, self.status) {
            (Some(wrong), _) => Err(Error::Protocol(wrong)),
            (None, Some(_)) => Err(Error::Protocol(":status among trailers")),
            (None, None) => Ok(()),
        }
    }
}

/// Whether a field is about a connection of HTTP/1 (RFC 9113 section 8.2.2). Go's client, for
/// example, accepts them in HTTP/2.
pub(super) fn is_of_connections(name: &[u8]) -> bool {
    let names: [&[u8]; 5] = [
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"transfer-encoding",
        b"upgrade",
    ];
    names.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(&str, &str)]) -> ResponseFields {
        let mut read = ResponseFields::default();
        for (name, value) in fields {
            read.take(name.as_bytes(), value.as_bytes());
        }
        read
    }

    #[test]
    fn a_response_has_one_status_before_its_fields() {
        let good = read(&[(":status", "200"), ("content-length", "5"), ("a", "b")]);
        assert_eq!(good.header_section(), Ok((200, Some(5))));
        assert!(read(&[("a", "b")]).trailer_section().is_ok());
        let bad: &[&[(&str, &str)]] = &[
            &[],
            &[("a", "b")],
            &[(":status", "200"), (":status", "200")],
            &[(":status", "200"), (":status", "404")],
            &[("a", "b"), (":status", "200")],
            &[(":status", "200"), (":path", "/")],
            &[(":status", "20")],
            &[(":status", "2000")],
            &[(":status", "099")],
            &[(":status", "+20")],
            &[(":status", "abc")],
            &[(":status", "101")],
        ];
        for fields in bad {
            assert!(read(fields).header_section().is_err(), "{fields:?}");
        }
        assert!(read(&[(":status", "200")]).trailer_section().is_err());
    }

    #[test]
    fn a_grpc_status_is_read_in_any_section() {
        assert_eq!(read(&[("grpc-status", "5")]).grpc_status(), Some(5));
        assert_eq!(
            read(&[(":status", "200"), ("grpc-status", "0")]).grpc_status(),
            Some(0)
        );
        for wrong in ["", "-1", "OK", "99999"] {
            assert_eq!(
                read(&[("grpc-status", wrong)]).grpc_status(),
                None,
                "{wrong}"
            );
        }
    }

    #[test]
    fn fields_that_no_response_in_http2_has_are_refused() {
        let bad = [
            ("Server", "s"),
            ("a b", "c"),
            ("a:b", "c"),
            ("", "c"),
            ("a\u{e4}", "c"),
            ("a", "b\r\nc: d"),
            ("a", "b\0"),
            ("connection", "keep-alive"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("content-length", "5x"),
            ("content-length", ""),
        ];
        for field in bad {
            assert!(
                read(&[(":status", "200"), field]).header_section().is_err(),
                "{field:?}"
            );
            assert!(read(&[field]).trailer_section().is_err(), "{field:?}");
        }
        let length = |other| {
            read(&[
                (":status", "200"),
                ("content-length", "5"),
                ("content-length", other),
            ])
        };
        assert!(length("6").header_section().is_err());
        assert!(length("5").header_section().is_ok());
    }
}
