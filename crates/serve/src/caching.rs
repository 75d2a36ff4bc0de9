//! Responses for caches: validators and `If-None-Match` (RFC 9110 sections 8.8.3 and 13.1.2),
//! `max-age` (RFC 9111 section 5.2.2.1), and the content coding gzip (RFC 9110 section 8.4.1.3).
//!
//! They apply to what the server generates with the status 200. Must not touch faults, gRPC,
//! `/echo` and `/.intact/`.

use crate::response::{Body, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::cell::RefCell;
use std::io::Write;

/// The largest body that is compressed, in bytes: a request must not cost seconds of CPU.
const LARGEST_COMPRESSED: u64 = 1 << 20;

/// What caches learn of a response, and whether it is compressed. The default says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachingConfig {
    /// Whether responses have an `ETag`, and `If-None-Match` is evaluated.
    pub etag: bool,
    /// The `max-age` of `Cache-Control` in seconds; absent: the field is not sent.
    pub max_age_s: Option<u32>,
    /// Whether a body is compressed for a client that accepts gzip.
    pub compress: bool,
}

impl CachingConfig {
    fn is_on(&self) -> bool {
        *self != CachingConfig::default()
    }
}

/// The fields of a request that choose between a body, a compressed one and none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Preconditions {
    /// The values of `If-None-Match`, as one list.
    if_none_match: Vec<u8>,
    /// The values of `Accept-Encoding`, as one list.
    accept_encoding: Vec<u8>,
}

impl Preconditions {
    /// Takes a field of a request. Field names have no case (RFC 9110 section 5.1).
    pub(crate) fn take(&mut self, name: &[u8], value: &[u8]) {
        let list = if name.eq_ignore_ascii_case(b"if-none-match") {
            &mut self.if_none_match
        } else if name.eq_ignore_ascii_case(b"accept-encoding") {
            &mut self.accept_encoding
        } else {
            return;
        };
        if !list.is_empty() {
            list.extend_from_slice(b", ");
        }
        list.extend_from_slice(value);
    }

    /// Whether a stored response has this entity tag, by weak comparison (RFC 9110 section
    /// 8.8.3.2); `*` is any.
    fn has_stored(&self, etag: &str) -> bool {
        let list = self.if_none_match.trim_ascii();
        list == b"*" || opaque_tags(list).any(|tag| tag == etag.as_bytes())
    }

    /// Whether the client accepts gzip (RFC 9110 section 12.5.3). Without the field it gets no
    /// coding.
    fn accepts_gzip(&self) -> bool {
        let mut any = false;
        for member in self.accept_encoding.split(|&byte| byte == b',') {
            let mut parts = member.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
            let coding = parts.next().unwrap_or(b"").to_ascii_lowercase();
            let is_accepted = !parts.any(is_zero_weight);
            match &coding[..] {
                b"gzip" | b"x-gzip" => return is_accepted,
                b"*" => any = is_accepted,
                _ => {}
            }
        }
        any
    }
}

/// The quoted parts of a list of entity tags. A comma within the quotes is part of a tag.
fn opaque_tags(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let start = rest.iter().position(|&byte| byte == b'"')?;
        let length = rest[start + 1..].iter().position(|&byte| byte == b'"')?;
        let (tag, after) = rest[start..].split_at(length + 2);
        rest = after;
        Some(tag)
    })
}

/// Whether a parameter is `q=0`, which refuses a coding (RFC 9110 section 12.4.2).
fn is_zero_weight(parameter: &[u8]) -> bool {
    let Some((name, weight)) = parameter.split_at_checked(2) else {
        return false;
    };
    let is_zero = weight.iter().all(|byte| matches!(byte, b'0' | b'.'));
    name.eq_ignore_ascii_case(b"q=") && weight.first() == Some(&b'0') && is_zero
}

/// Adapts responses to what a client has stored and accepts.
pub(crate) struct Caching {
    config: CachingConfig,
    /// The last compressed body, with its length before.
    compressed: RefCell<(u64, Vec<u8>)>,
}

impl Caching {
    pub(crate) fn new(config: CachingConfig) -> Caching {
        Caching {
            config,
            compressed: RefCell::default(),
        }
    }

    /// Whether the fields of a request have an effect.
    pub(crate) fn is_on(&self) -> bool {
        self.config.is_on()
    }

    /// Adapts a response to a request.
    pub(crate) fn adapt(&self, response: &mut Response, method: &[u8], request: &Preconditions) {
        let Body::Filler(length) = response.body else {
            return;
        };
        if !self.is_on() || response.status != 200 || response.grpc.is_some() {
            return;
        }
        let is_gzip = self.config.compress
            && (1..=LARGEST_COMPRESSED).contains(&length)
            && request.accepts_gzip();
        // a strong validator differs between codings (RFC 9110 section 8.8.3.3)
        let etag = format!("\"{length}{}\"", if is_gzip { "-gzip" } else { "" });
        let has_stored = self.config.etag && request.has_stored(&etag);
        if !matches!(method, b"GET" | b"HEAD") {
            if has_stored {
                response.status = 412;
                response.body = Body::Filler(0);
                response.unannounced = false;
            }
            return;
        }
        if self.config.etag {
            response.fields.push(("etag", etag));
        }
        if let Some(seconds) = self.config.max_age_s {
            let value = format!("max-age={seconds}");
            response.fields.push(("cache-control", value));
        }
        if self.config.compress {
            response.fields.push(("vary", "accept-encoding".to_owned()));
        }
        if has_stored {
            response.status = 304;
            response.body = Body::Filler(0);
            response.unannounced = false;
        } else if is_gzip {
            response
                .fields
                .push(("content-encoding", "gzip".to_owned()));
            response.body = Body::Given(self.compress(length));
        }
    }

    /// The generated body of this length, compressed.
    fn compress(&self, length: u64) -> Vec<u8> {
        let mut last = self.compressed.borrow_mut();
        if last.0 != length {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            let body = Body::Filler(length);
            let mut at = 0;
            while at < length {
                let piece = body.piece(at, usize::MAX);
                // writing to memory does not fail
                let _ = encoder.write_all(piece);
                at += piece.len() as u64;
            }
            *last = (length, encoder.finish().unwrap_or_default());
        }
        last.1.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::response::ResponseRoutes;

    fn request(fields: &[(&str, &str)]) -> Preconditions {
        let mut request = Preconditions::default();
        for (name, value) in fields {
            request.take(name.as_bytes(), value.as_bytes());
        }
        request
    }

    fn adapted(method: &str, fields: &[(&str, &str)]) -> Response {
        let caching = Caching::new(CachingConfig {
            etag: true,
            max_age_s: Some(60),
            compress: true,
        });
        let mut response = ResponseRoutes::new(&Config::default()).to(b"/");
        caching.adapt(&mut response, method.as_bytes(), &request(fields));
        response
    }

    #[test]
    fn any_of_the_stored_tags_is_enough_by_weak_comparison() {
        for (tags, status) in [
            ("\"100\"", 304),
            ("W/\"100\"", 304),
            ("\"a,b\", W/\"x\" ,\"100\"", 304),
            ("*", 304),
            ("\"10\"", 200),
            ("\"a\"100\"b\"", 200),
            ("\"100", 200),
            ("100", 200),
            ("\"100-gzip\"", 200),
            ("", 200),
        ] {
            let response = adapted("GET", &[("If-None-Match", tags)]);
            assert_eq!(response.status, status, "{tags}");
        }
        let twice = [("if-none-match", "\"a\""), ("IF-NONE-MATCH", "\"100\"")];
        assert_eq!(adapted("HEAD", &twice).status, 304);
        let unsafe_method = adapted("PUT", &[("if-none-match", "*")]);
        assert_eq!((unsafe_method.status, unsafe_method.fields), (412, vec![]));
    }

    #[test]
    fn a_weight_of_zero_refuses_gzip() {
        for (codings, accepts) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("*", true),
            ("x-gzip", true),
            ("gzip;q=0", false),
            ("gzip; Q=0.000, *", false),
            ("*;q=0", false),
            ("*;q=0, gzip;q=0.001", true),
            ("br, identity", false),
            ("", false),
        ] {
            let accepted = request(&[("accept-encoding", codings)]).accepts_gzip();
            assert_eq!(accepted, accepts, "{codings}");
        }
    }

    #[test]
    fn a_compressed_body_has_a_tag_of_its_own_and_the_same_content() {
        let gzip = ("accept-encoding", "gzip");
        let response = adapted("GET", &[gzip, ("if-none-match", "\"100\"")]);
        assert_eq!(response.status, 200);
        assert_eq!(
            response.fields,
            [
                ("etag", "\"100-gzip\"".to_owned()),
                ("cache-control", "max-age=60".to_owned()),
                ("vary", "accept-encoding".to_owned()),
                ("content-encoding", "gzip".to_owned()),
            ]
        );
        let Body::Given(bytes) = response.body else {
            panic!("{:?}", response.body)
        };
        let mut content = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(&bytes[..]);
        std::io::Read::read_to_end(&mut decoder, &mut content).unwrap();
        assert_eq!(content, [b'x'; 100]);
        let again = adapted("GET", &[gzip, ("if-none-match", "\"100-gzip\"")]);
        assert_eq!(again.status, 304);
        assert_eq!(again.fields.len(), 3, "{:?}", again.fields);
    }

    #[test]
    fn other_responses_stay_as_they_are() {
        let caching = Caching::new(CachingConfig {
            etag: true,
            ..CachingConfig::default()
        });
        let routes = ResponseRoutes::new(&Config::default());
        for path in [&b"/echo"[..], b"/status/404", b"/redirect", b"/bytes/x"] {
            let before = routes.to(path);
            let mut response = before.clone();
            caching.adapt(&mut response, b"GET", &request(&[("if-none-match", "*")]));
            assert_eq!(response, before);
        }
        let mut call = routes.to(b"/").for_call(b"/a.B/C");
        caching.adapt(&mut call, b"POST", &request(&[("if-none-match", "*")]));
        assert_eq!(call.status, 200);
    }
}
