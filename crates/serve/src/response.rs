//! What is answered to which path, independent of the HTTP version.

use crate::config::Config;
use crate::delay::Delay;
use crate::fault::Fault;
#[cfg(feature = "reflection")]
use crate::reflection;
use intact_wire::grpc;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The largest body that a path may ask for, in bytes.
const LARGEST: u64 = 1 << 30;
/// The longest pause that a path may ask for, in milliseconds: a day.
const LONGEST_DELAY: u64 = 86_400_000;
/// The largest request body that is sent back, in bytes.
pub(crate) const LARGEST_ECHO: usize = 1 << 20;
/// Where the server reports about itself.
const ADMIN: &[u8] = b"/.intact/";

/// A message of gRPC: `HealthCheckResponse { status: SERVING }`, not compressed, two bytes long.
const SERVING: [u8; 7] = [0, 0, 0, 0, 2, 8, 1];
/// The status of a response that is too large for a message.
const RESOURCE_EXHAUSTED: u16 = 8;
/// The status of a message that cannot be read.
#[cfg(feature = "reflection")]
const INVALID_ARGUMENT: u16 = 3;
/// The status of a method that the server does not have.
const UNIMPLEMENTED: u16 = 12;

static FILLER: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// A body; the usual one takes no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// That many `x`.
    Filler(u64),
    /// These bytes.
    Given(Vec<u8>),
    /// The request's own.
    Echo,
    /// The descriptors that the request asks for.
    #[cfg(feature = "reflection")]
    Reflection,
}

impl Body {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Body::Filler(len) => *len,
            Body::Given(bytes) => bytes.len() as u64,
            _ => 0,
        }
    }

    /// A message with its prefix: an `EchoMessage` with this content as `data`; `None` if that is
    /// too long.
    fn message(&self) -> Option<Vec<u8>> {
        let mut left = usize::try_from(self.len()).ok()?;
        if left > LARGEST_ECHO {
            return None;
        }
        // field 3, with its length in groups of seven bits, the lowest first
        let mut message = vec![0x1a];
        while left >= 0x80 {
            message.push(left as u8 | 0x80);
            left >>= 7;
        }
        message.push(left as u8);
        let head = message.len();
        loop {
            let read = (message.len() - head) as u64;
            match self.piece(read, LARGEST_ECHO) {
                [] => return grpc::frame(&message).ok(),
                piece => message.extend_from_slice(piece),
            }
        }
    }

    /// Whether it replies to a stream of queries.
    fn is_query(&self) -> bool {
        !matches!(self, Body::Filler(_) | Body::Given(_) | Body::Echo)
    }

    /// Whether it is made of the request's body.
    pub(crate) fn takes_request(&self) -> bool {
        !matches!(self, Body::Filler(_) | Body::Given(_))
    }

    /// Up to `most` bytes from `at` on, at least one while there are any.
    pub(crate) fn piece(&self, at: u64, most: usize) -> &[u8] {
        let left = usize::try_from(self.len().saturating_sub(at)).unwrap_or(usize::MAX);
        let most = most.min(left);
        match self {
            Body::Filler(_) => &FILLER[..most.min(FILLER.len())],
            Body::Given(bytes) => &bytes[bytes.len() - left..][..most],
            _ => &[],
        }
    }
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Body,
    /// Its length is not announced: chunked in HTTP/1.1.
    pub(crate) unannounced: bool,
    pub(crate) content_type: &'static str,
    pub(crate) location: Option<&'static str>,
    /// Further fields, with names in lower case.
    pub(crate) fields: Vec<(&'static str, String)>,
    pub(crate) delay: Delay,
    /// A pause in addition to the usual one, asked for by the path.
    pub(crate) extra_delay: Duration,
    /// The connection is closed after it.
    pub(crate) closes: bool,
    pub(crate) fault: Option<Fault>,
    /// The `grpc-status` of a call of gRPC: in the trailers after a message, in the header section
    /// without one.
    pub(crate) grpc: Option<u16>,
}

impl Response {
    /// An answer of our own, neither delayed nor recorded.
    pub(crate) fn ours(status: u16, content_type: &'static str, text: String) -> Response {
        Response {
            status,
            body: Body::Given(text.into_bytes()),
            unannounced: false,
            content_type,
            location: None,
            fields: Vec::new(),
            delay: Delay::default(),
            extra_delay: Duration::ZERO,
            closes: false,
            fault: None,
            grpc: None,
        }
    }

    /// The response to a call of gRPC: the health service, server reflection, the content of `/` in
    /// a message, and every method that is called `Echo`. The usual delay and the path's stay.
    pub(crate) fn for_call(self, path: &[u8]) -> Response {
        let (body, status) = match path {
            b"/grpc.health.v1.Health/Check" => (Body::Given(SERVING.to_vec()), 0),
            b"/intact.Test/Get" => match self.body.message() {
                Some(message) => (Body::Given(message), 0),
                None => (Body::Filler(0), RESOURCE_EXHAUSTED),
            },
            path if path.ends_with(b"/Echo") => (Body::Echo, 0),
            #[cfg(feature = "reflection")]
            path if reflection::is_reflection(path) => (Body::Reflection, 0),
            _ => (Body::Filler(0), UNIMPLEMENTED),
        };
        Response {
            status: 200,
            unannounced: status == 0,
            content_type: "application/grpc",
            grpc: Some(status),
            body,
            ..self
        }
    }

    /// Whether the response is due before the request ends, after this much of its body: a client
    /// that streams ends its request only after the response. A query of server reflection is a
    /// stream; the response ends it, and a client opens another one for its next query. `read`
    /// is what was looked at before.
    pub(crate) fn is_due_after(&self, request: &[u8], read: &mut usize) -> bool {
        self.grpc.is_some_and(|status| status != 0)
            || self.body.is_query() && grpc::is_whole(request, read)
    }

    /// Keeps a piece of the request's body where the response sends it back.
    pub(crate) fn keep(&mut self, piece: &[u8], kept: &mut Vec<u8>) {
        if self.body != Body::Echo {
            return;
        }
        if kept.len() + piece.len() > LARGEST_ECHO {
            *kept = Vec::new();
            let words = format!("/echo takes up to {LARGEST_ECHO} bytes\n");
            *self = Response::ours(413, "text/plain", words);
        } else {
            kept.extend_from_slice(piece);
        }
    }

    /// The body of the request is complete: a response that is made of it has its own now.
    pub(crate) fn take_request(&mut self, request: Vec<u8>) {
        match self.body {
            Body::Echo => self.body = Body::Given(request),
            #[cfg(feature = "reflection")]
            Body::Reflection => match reflection::reply(&request) {
                Some(reply) => self.body = Body::Given(reply),
                None => {
                    self.body = Body::Filler(0);
                    self.unannounced = false;
                    self.grpc = Some(INVALID_ARGUMENT);
                }
            },
            Body::Filler(_) | Body::Given(_) => {}
        }
    }

    /// The answer where calls to the upstream failed.
    pub(crate) fn bad_gateway(calls: u32, failed: u32) -> Response {
        let words = format!("{failed} of {calls} calls to the upstream failed\n");
        Response::ours(502, "text/plain", words)
    }

    /// Whether it has no body whatever the request was (RFC 9110 section 6.4.1).
    pub(crate) fn is_bodiless(&self) -> bool {
        matches!(self.status, 204 | 304)
    }
}

/// Whether the server itself is asked, not what it serves.
pub(crate) fn is_admin(target: &[u8]) -> bool {
    target.starts_with(ADMIN)
}

/// Answers by path: `/bytes/N`, `/chunked/N`, `/status/CODE`, `/delay/MS`, `/close`, `/echo`,
/// `/redirect`, `/fault/NAME`; all others alike.
pub(crate) struct ResponseRoutes {
    usual: Response,
}

impl ResponseRoutes {
    pub(crate) fn new(config: &Config) -> ResponseRoutes {
        ResponseRoutes {
            usual: Response {
                body: Body::Filler(config.body),
                delay: config.delay,
                ..Response::ours(config.status, "text/plain", String::new())
            },
        }
    }

    /// The answer to a request target.
    pub(crate) fn to(&self, target: &[u8]) -> Response {
        let path = target.split(|&byte| byte == b'?').next().unwrap_or(b"");
        // by far the most frequent
        if path == b"/" {
            return self.usual.clone();
        }
        self.by_path(path)
            .unwrap_or_else(|words| Response::ours(400, "text/plain", words))
    }

    /// The answer to a path, or why its last part is none that the path takes.
    fn by_path(&self, path: &[u8]) -> Result<Response, String> {
        let mut answer = self.usual.clone();
        let rest = |prefix: &[u8]| path.strip_prefix(prefix).map(String::from_utf8_lossy);
        if path == b"/close" {
            answer.closes = true;
        } else if path == b"/echo" {
            answer.body = Body::Echo;
        } else if path == b"/redirect" {
            answer.status = 302;
            answer.location = Some("/");
        } else if let Some(bytes) = rest(b"/bytes/") {
            answer.body = Body::Filler(number(&bytes, 0..=LARGEST)?);
        } else if let Some(bytes) = rest(b"/chunked/") {
            answer.body = Body::Filler(number(&bytes, 0..=LARGEST)?);
            answer.unannounced = true;
        } else if let Some(ms) = rest(b"/delay/") {
            answer.extra_delay = Duration::from_millis(number(&ms, 0..=LONGEST_DELAY)?);
        } else if let Some(status) = rest(b"/status/") {
            answer.status = number(&status, 200..=999)? as u16;
        } else if let Some(fault) = rest(b"/fault/") {
            let fault = fault.parse().map_err(|error| format!("{error}\n"))?;
            answer.fault = Some(fault);
        }
        Ok(answer)
    }
}

/// A number as digits alone, within a range.
fn number(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    number
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            format!(
                "not a whole number from {} to {}\n",
                range.start(),
                range.end()
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_choose_the_answer() {
        let answers = ResponseRoutes::new(&Config::default());
        assert_eq!(answers.to(b"/").body.len(), 100);
        assert_eq!(answers.to(b"/bytes/7?x").body.len(), 7);
        assert!(answers.to(b"/chunked/7").unannounced);
        assert_eq!(answers.to(b"/status/404").status, 404);
        for bad in [
            &b"/status/7"[..],
            b"/status/199",
            b"/status/1000",
            b"/status/",
            b"/status/20x",
            b"/bytes/-5",
            b"/bytes/+5",
            b"/bytes/",
            b"/bytes/ff",
            b"/bytes/1073741825",
            b"/bytes/18446744073709551616",
            b"/bytes/99999999999999999999999999",
            b"/bytes/\xff",
            b"/chunked/1e3",
            b"/delay/-1",
            b"/delay/18446744073709551615",
            b"/fault/none",
        ] {
            let name = String::from_utf8_lossy(bad);
            assert_eq!(answers.to(bad).status, 400, "{name}");
        }
        assert_eq!(answers.to(b"/status/200").status, 200);
        assert_eq!(answers.to(b"/status/999").status, 999);
        assert_eq!(answers.to(b"/bytes/1073741824").body.len(), LARGEST);
        assert_eq!(
            answers.to(b"/delay/5").extra_delay,
            Duration::from_millis(5)
        );
        assert_eq!(answers.to(b"/redirect").location, Some("/"));
        assert_eq!(answers.to(b"/fault/stall").fault, Some(Fault::Stall));
        assert_eq!(answers.to(b"/fault/none").fault, None);
        assert!(answers.to(b"/close").closes);
    }

    #[test]
    fn a_call_returns_the_content_of_the_root_in_a_message() {
        let config = Config {
            body: 300,
            ..Config::default()
        };
        let root = ResponseRoutes::new(&config).to(b"/");
        let call = root.clone().for_call(b"/intact.Test/Get");
        let Body::Given(framed) = call.body else {
            panic!("{:?}", call.body)
        };
        // 300 is 2 x 128 + 44
        assert_eq!(framed[..8], [0, 0, 0, 1, 47, 0x1a, 0x80 | 44, 2]);
        assert_eq!(framed[8..], [b'x'; 300]);
        let large = Response {
            body: Body::Filler(LARGEST_ECHO as u64 + 1),
            ..root
        };
        let refused = large.for_call(b"/intact.Test/Get");
        assert_eq!((refused.body.len(), refused.grpc), (0, Some(8)));
    }

    #[test]
    fn the_pieces_of_a_body_add_up_to_it() {
        for body in [
            Body::Filler(200_000),
            Body::Given((0..=255).collect()),
            Body::Filler(0),
        ] {
            let mut at = 0;
            while !body.piece(at, 1000).is_empty() {
                at += body.piece(at, 1000).len() as u64;
            }
            assert_eq!(at, body.len());
        }
        assert_eq!(Body::Given(b"abcdef".to_vec()).piece(2, 3), b"cde");
    }
}
