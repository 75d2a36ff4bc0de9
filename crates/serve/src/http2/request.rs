//! What the header block of a request says, and whether HTTP/2 allows it (RFC 9113 section 8).

use crate::caching::Preconditions;
use intact_wire::h2::hpack::Field;
use intact_wire::h2::is_grpc;
use intact_wire::http1::is_token;

/// A request head, or trailers, while their fields come in.
#[derive(Debug, Default)]
pub(crate) struct RequestHead {
    pub(crate) method: Vec<u8>,
    pub(crate) path: Vec<u8>,
    pub(crate) length: Option<u64>,
    pub(crate) is_grpc: bool,
    pub(crate) preconditions: Preconditions,
    has_scheme: bool,
    has_path: bool,
    authority: Option<Vec<u8>>,
    /// The first `host` field.
    host: Option<Vec<u8>>,
    regular: bool,
    /// The first rule that is broken.
    fault: Option<&'static str>,
}

impl RequestHead {
    /// Takes the next field.
    pub(crate) fn take(&mut self, field: Field<'_>) {
        if self.fault.is_none() {
            self.fault = self.check(field);
        }
    }

    fn check(&mut self, Field { name, value, .. }: Field<'_>) -> Option<&'static str> {
        if let Some(pseudo) = name.strip_prefix(b":") {
            return self.take_pseudo(pseudo, value);
        }
        self.regular = true;
        if name.is_empty() || name.iter().any(|byte| !is_name(*byte)) {
            return Some("a field name with an upper-case letter or worse");
        }
        if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
            return Some("a field value with a line end");
        }
        match name {
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => Some("a field that belongs to an HTTP/1 connection"),
            b"te" if value != b"trailers" => Some("te other than trailers"),
            b"content-length" => self.take_length(value),
            b"content-type" => {
                self.is_grpc = is_grpc(value);
                None
            }
            b"if-none-match" | b"accept-encoding" => {
                self.preconditions.take(name, value);
                None
            }
            b"host" if self.host.is_some() => Some("host twice"),
            b"host" => {
                self.host = Some(value.to_vec());
                None
            }
            _ => None,
        }
    }

    fn take_pseudo(&mut self, name: &[u8], value: &[u8]) -> Option<&'static str> {
        if self.regular {
            return Some("a pseudo-header behind a field");
        }
        let twice = match name {
            b"method" => !std::mem::replace(&mut self.method, value.to_vec()).is_empty(),
            b"path" => {
                self.path = value.to_vec();
                std::mem::replace(&mut self.has_path, true)
            }
            b"scheme" => std::mem::replace(&mut self.has_scheme, true),
            b"authority" => self.authority.replace(value.to_vec()).is_some(),
            _ => return Some("a pseudo-header that no request has"),
        };
        twice.then_some("a pseudo-header twice")
    }

    fn take_length(&mut self, value: &[u8]) -> Option<&'static str> {
        let digits = value.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(value)
            .ok()
            .filter(|_| digits)
            .and_then(|text| text.parse().ok());
        if length.is_none() || self.length.is_some_and(|before| Some(before) != length) {
            return Some("a content-length that is none");
        }
        self.length = length;
        None
    }

    /// The values that name the host: `:authority`, or else `host`.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &[u8]> {
        self.authority
            .as_deref()
            .or(self.host.as_deref())
            .into_iter()
    }

    /// The rule that a request with these fields breaks.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let complete = if self.method == b"CONNECT" {
            self.authority.is_some() && !self.has_path && !self.has_scheme
        } else {
            !self.method.is_empty() && self.has_scheme && !self.path.is_empty()
        };
        // two names of the host: an intermediary may read the other one (RFC 9113 section 8.3.1)
        let differs = self.authority.as_ref().zip(self.host.as_ref());
        let differs = differs.is_some_and(|(one, other)| !one.eq_ignore_ascii_case(other));
        if differs && self.fault.is_none() {
            return Some("a host that is not the authority");
        }
        let incomplete = (!complete).then_some("a request without its pseudo-headers");
        self.fault.or(incomplete)
    }

    /// The rule that trailers with these fields break.
    pub(crate) fn trailer_fault(&self) -> Option<&'static str> {
        let pseudo =
            !self.method.is_empty() || self.has_path || self.has_scheme || self.authority.is_some();
        self.fault
            .or_else(|| pseudo.then_some("a pseudo-header in trailers"))
    }
}

/// A token of RFC 9110 section 5.6.2 without upper-case letters.
fn is_name(byte: u8) -> bool {
    is_token(byte) && !byte.is_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&str, &str)]) -> RequestHead {
        let mut head = RequestHead::default();
        for (name, value) in fields {
            head.take(Field {
                name: name.as_bytes(),
                value: value.as_bytes(),
                sensitive: false,
            });
        }
        head
    }

    const GET: [(&str, &str); 3] = [(":method", "GET"), (":scheme", "http"), (":path", "/")];

    #[test]
    fn a_request_needs_its_pseudo_headers_once_and_first() {
        assert_eq!(head(&GET).fault(), None);
        assert_eq!(
            head(&[(":method", "CONNECT"), (":authority", "a:1")]).fault(),
            None
        );
        for missing in 0..3 {
            let mut fields = GET.to_vec();
            fields.remove(missing);
            assert!(head(&fields).fault().is_some(), "{fields:?}");
        }
        for bad in [
            &[(":path", "/")][..],
            &[(":method", "GET")],
            &[(":status", "200")],
            &[("a", "b"), (":authority", "a")],
            &[("A", "b")],
            &[("connection", "close")],
            &[("te", "gzip")],
            &[("content-length", "1"), ("content-length", "2")],
            &[("content-length", "+1")],
            &[("a", "b\r\nc: d")],
            &[("", "b")],
        ] {
            let fields = [&GET, bad].concat();
            assert!(head(&fields).fault().is_some(), "{fields:?}");
        }
    }

    #[test]
    fn trailers_have_no_pseudo_headers() {
        assert_eq!(head(&[("a", "b")]).trailer_fault(), None);
        assert!(head(&[(":path", "/")]).trailer_fault().is_some());
        assert!(head(&[("A", "b")]).trailer_fault().is_some());
    }
}
