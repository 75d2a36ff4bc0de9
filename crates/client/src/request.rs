//! A request: described once, and formatted for each HTTP version.

use crate::{BodyCheck, ServerUrl};
use intact_ledger::{Exchange, ExpectedStatus, Method, Protocol, Scheme, Target};
use intact_wire::h2::is_grpc;
use intact_wire::http1::{
    Kind, check_authority, check_field, check_method, check_target, split_field,
};
use std::sync::Arc;

/// Fields that belong to a connection, which HTTP/2 forbids (RFC 9113 section 8.2.2).
pub const CONNECTION_FIELDS: [&str; 5] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

/// A part of a request that cannot be sent. Values are not in the messages, because they may be
/// secrets.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The method.
    #[error("-X {method:?}: {reason}")]
    Method {
        /// The given method.
        method: String,
        /// The problem.
        reason: &'static str,
    },
    /// A header field.
    #[error("-H {field:?}: {reason}")]
    Field {
        /// The name of the field.
        field: String,
        /// The problem.
        reason: &'static str,
    },
    /// The path of the URL.
    #[error("the path {path:?}: {reason}")]
    Path {
        /// The path without its query.
        path: String,
        /// The problem.
        reason: &'static str,
    },
}

/// Whether a status leads to another URL (RFC 9110 section 15.4).
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// A request before it is formatted.
#[derive(Clone, Debug)]
pub struct RequestSpec {
    /// The method.
    pub method: Method,
    /// The path as sent, including the query.
    pub path: String,
    scheme: Scheme,
    authority: String,
    /// The given fields and our own, without `Host` and `Content-Length`.
    fields: Vec<(String, String)>,
    /// The value of `Connection` in HTTP/1, unless the user gave the field.
    pub connection: Option<&'static str>,
    /// The body.
    pub body: Arc<[u8]>,
    /// The text before the path in HTTP/1: the origin, for a proxy.
    pub absolute: Option<String>,
    /// The statuses that count as ok; `None`: every status.
    pub expect: Option<ExpectedStatus>,
    /// Whether redirects are followed, so that they are ok with any status.
    pub follows: bool,
}

impl RequestSpec {
    /// A request for `address`, with `headers` as `Name: value`. `refuse` returns the reason why a
    /// field, in lower case, is not allowed.
    ///
    /// # Errors
    /// If a part cannot be sent, or a field is refused.
    pub fn new(
        address: &ServerUrl,
        method: Method,
        user_agent: &str,
        headers: &[String],
        refuse: impl Fn(&str) -> Option<&'static str>,
    ) -> Result<RequestSpec, RequestError> {
        check_method(method.as_str()).map_err(|reason| RequestError::Method {
            method: method.as_str().to_owned(),
            reason,
        })?;
        check_target(&address.path).map_err(|reason| RequestError::Path {
            path: address.path.split('?').next().unwrap_or("").to_owned(),
            reason,
        })?;
        let wrong = |field: &str, reason| RequestError::Field {
            field: field.to_owned(),
            reason,
        };
        check_field("User-Agent", user_agent).map_err(|reason| wrong("User-Agent", reason))?;
        let mut host = None;
        let mut given = Vec::new();
        for header in headers {
            let named = intact_ledger::redact::field_name(header);
            let (name, value) = split_field(header).map_err(|reason| wrong(named, reason))?;
            if let Some(reason) = refuse(&name.to_ascii_lowercase()) {
                return Err(wrong(name, reason));
            }
            if name.eq_ignore_ascii_case("host") {
                check_authority(value).map_err(|reason| wrong(name, reason))?;
                if host.replace(value.to_owned()).is_some() {
                    return Err(wrong(name, "a request has one Host (RFC 9112 section 3.2)"));
                }
            } else {
                given.push((name.to_owned(), value.to_owned()));
            }
        }
        let mut spec = RequestSpec {
            method,
            path: address.path.clone(),
            scheme: address.scheme,
            authority: host.unwrap_or_else(|| address.authority()),
            fields: given,
            connection: None,
            body: Arc::default(),
            absolute: None,
            expect: None,
            follows: false,
        };
        for (name, value) in [("Accept", "*/*"), ("User-Agent", user_agent)] {
            if spec.field(name).is_none() {
                spec.fields.insert(0, (name.to_owned(), value.to_owned()));
            }
        }
        Ok(spec)
    }

    /// The value of a field, if it is sent.
    fn field(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| &**value)
    }

    /// The same request to the URL of a redirect. Fields that may hold secrets are dropped if the
    /// host differs, or TLS ends.
    pub fn led_to(&self, address: &ServerUrl) -> RequestSpec {
        let mut led = self.clone();
        let may_know = self.authority == address.authority()
            && (self.scheme == Scheme::Http || address.scheme == Scheme::Https);
        led.path.clone_from(&address.path);
        led.scheme = address.scheme;
        led.authority = address.authority();
        if !may_know {
            led.fields.retain(|(name, _)| {
                name.eq_ignore_ascii_case("user-agent") || name.eq_ignore_ascii_case("accept")
            });
        }
        led
    }

    /// The same request with another method.
    pub fn by(&self, method: Method) -> RequestSpec {
        RequestSpec {
            method,
            ..self.clone()
        }
    }

    /// The same request for another path.
    pub fn at(&self, path: &str) -> RequestSpec {
        RequestSpec {
            path: path.to_owned(),
            ..self.clone()
        }
    }

    /// The same request with this `Connection`, in HTTP/1.
    pub fn saying(&self, connection: &'static str) -> RequestSpec {
        RequestSpec {
            connection: Some(connection),
            ..self.clone()
        }
    }

    /// The same request with other statuses that count as ok; with `follows`, redirects do, too.
    pub fn expecting(&self, expect: Option<ExpectedStatus>, follows: bool) -> RequestSpec {
        RequestSpec {
            expect,
            follows,
            ..self.clone()
        }
    }

    /// The same request with one more field.
    pub fn with(&self, name: &str, value: &str) -> RequestSpec {
        let mut request = self.clone();
        request.fields.push((name.to_owned(), value.to_owned()));
        request
    }

    /// The same request with a body, which is JSON unless a field names another type.
    pub fn carrying(&self, body: &str) -> RequestSpec {
        let mut request = if self.field("content-type").is_some() {
            self.clone()
        } else {
            self.with("Content-Type", "application/json")
        };
        request.body = body.as_bytes().into();
        request
    }

    /// Formats the request for connections with `version`.
    pub fn format(&self, version: Protocol) -> Request {
        let mut fields = self.fields.clone();
        // a method that usually has a body announces that there is none (RFC 9110 section 8.6)
        if !self.body.is_empty() || matches!(self.method.as_str(), "POST" | "PUT" | "PATCH") {
            fields.push(("Content-Length".to_owned(), self.body.len().to_string()));
        }
        let own_connection = self.field("connection");
        let http1 = self.http1_head(version, &fields, own_connection);
        let head = http1.len();
        let mut http1 = http1.into_bytes();
        http1.extend_from_slice(&self.body);
        Request {
            method: self.method.clone(),
            target: Target::new(&self.path),
            http1: http1.into(),
            head,
            http2: self.http2_fields(&fields),
            body: self.body.clone(),
            kind: Kind::of(self.method.as_str().as_bytes()),
            closes: own_connection
                .or(self.connection)
                .is_some_and(|value| value.to_ascii_lowercase().contains("close")),
            expect: self.expect,
            follows: self.follows,
            is_grpc: self
                .field("content-type")
                .is_some_and(|kind| is_grpc(kind.as_bytes())),
            tag: None,
            check: None,
        }
    }

    fn http1_head(
        &self,
        version: Protocol,
        fields: &[(String, String)],
        own_connection: Option<&str>,
    ) -> String {
        let RequestSpec {
            method,
            path,
            authority,
            ..
        } = self;
        let origin = self.absolute.as_deref().unwrap_or("");
        let version = if version == Protocol::Http10 {
            "1.0"
        } else {
            "1.1"
        };
        let mut text = format!("{method} {origin}{path} HTTP/{version}\r\nHost: {authority}\r\n");
        for (name, value) in fields {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let (None, Some(option)) = (own_connection, self.connection) {
            text.push_str(&format!("Connection: {option}\r\n"));
        }
        text.push_str("\r\n");
        text
    }

    /// Pseudo-header fields first, names in lower case, without fields of the connection.
    fn http2_fields(&self, fields: &[(String, String)]) -> Fields {
        let pseudo = [
            (":method", self.method.as_str()),
            (":scheme", self.scheme.as_str()),
            (":authority", &self.authority),
            (":path", &self.path),
        ];
        let pseudo = pseudo.map(|(name, value)| (name.to_owned(), value));
        let fields = fields
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), &**value))
            .filter(|(name, _)| !CONNECTION_FIELDS.contains(&name.as_str()));
        pseudo
            .into_iter()
            .chain(fields)
            .map(|(name, value)| (name.into_bytes().into(), value.as_bytes().into()))
            .collect()
    }
}

/// Header fields as (name, value).
type Fields = Vec<(Box<[u8]>, Box<[u8]>)>;

/// A formatted request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path as recorded.
    pub target: Target,
    /// HTTP/1: header section and body as sent.
    http1: Box<[u8]>,
    /// HTTP/1: length of the header section in bytes.
    head: usize,
    /// HTTP/2: the fields in order.
    http2: Fields,
    pub(crate) body: Arc<[u8]>,
    /// The kind that the framing of the response depends on.
    pub(crate) kind: Kind,
    /// Whether it asks to close the connection, or in HTTP/1.0 does not ask to keep it.
    /// [`RequestSpec::format`] sets it for `Connection: close`.
    pub closes: bool,
    expect: Option<ExpectedStatus>,
    follows: bool,
    /// Whether its response has to have a `grpc-status` of 0.
    pub(crate) is_grpc: bool,
    /// The name under which its exchanges are counted.
    pub tag: Option<Arc<str>>,
    /// What the body of its response has to have.
    pub check: Option<Arc<BodyCheck>>,
}

impl Request {
    /// Header section and body as sent in HTTP/1.
    #[inline]
    pub fn http1_bytes(&self) -> &[u8] {
        &self.http1
    }

    /// Length of the header section in HTTP/1, in bytes.
    #[inline]
    pub(crate) fn http1_head_len(&self) -> usize {
        self.head
    }

    /// The fields in HTTP/2, pseudo-header fields first.
    pub(crate) fn http2_fields(&self) -> &Fields {
        &self.http2
    }

    /// The statuses that count as ok, for a response with this status.
    #[inline]
    pub(crate) fn expected(&self, status: Option<u16>) -> Option<ExpectedStatus> {
        self.expect
            .filter(|_| !(self.follows && status.is_some_and(is_redirect)))
    }

    /// The same request with the entity tag of a stored response (RFC 9110 section 13.1.2).
    pub fn revalidating(&self, etag: &str) -> Request {
        let mut request = self.clone();
        let field = format!("If-None-Match: {etag}\r\n");
        // before the empty line
        let end = self.head - 2;
        let (before, after) = self.http1.split_at(end);
        request.http1 = [before, field.as_bytes(), after].concat().into();
        request.head += field.len();
        let etag = etag.as_bytes().into();
        request.http2.push((b"if-none-match"[..].into(), etag));
        request
    }

    /// Whether it is the same object as `other`.
    #[inline]
    pub(crate) fn is(&self, other: &Option<Arc<Request>>) -> bool {
        other
            .as_deref()
            .is_some_and(|other| std::ptr::eq(self, other))
    }

    /// Records method, target and tag in an exchange.
    pub fn describe(&self, exchange: &mut Exchange) {
        exchange.tag.clone_from(&self.tag);
        exchange.method = Some(self.method.clone());
        exchange.target = Some(self.target.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> ServerUrl {
        ServerUrl::parse(url).unwrap()
    }

    fn request(url: &str, headers: &[&str]) -> RequestSpec {
        let headers: Vec<String> = headers.iter().map(|&header| header.to_owned()).collect();
        RequestSpec::new(&address(url), Method::GET, "intact/test", &headers, |_| {
            None
        })
        .unwrap()
    }

    fn http1(request: &RequestSpec, version: Protocol) -> String {
        String::from_utf8(request.format(version).http1_bytes().to_vec()).unwrap()
    }

    fn http2(request: &RequestSpec) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        request
            .format(Protocol::Http2)
            .http2_fields()
            .iter()
            .map(|(name, value)| (text(name), text(value)))
            .collect()
    }

    #[test]
    fn each_version_has_its_own_form() {
        let asked = request("http://h:8/p?q=1", &["X-A: b", "Host: other"]).saying("keep-alive");
        assert_eq!(
            http1(&asked, Protocol::Http10),
            "GET /p?q=1 HTTP/1.0\r\nHost: other\r\nUser-Agent: intact/test\r\nAccept: */*\r\nX-A: b\r\n\
             Connection: keep-alive\r\n\r\n"
        );
        let fields = http2(&asked);
        assert_eq!(fields[2], (":authority".to_owned(), "other".to_owned()));
        assert_eq!(fields.last().unwrap().0, "x-a");
        assert!(fields.iter().all(|(name, _)| *name != "connection"));
    }

    #[test]
    fn a_given_connection_field_wins_and_close_is_detected() {
        let asked = request("http://h/", &["Connection: Close"]).saying("keep-alive");
        let text = http1(&asked, Protocol::Http11);
        assert!(text.ends_with("Connection: Close\r\n\r\n"), "{text}");
        assert!(asked.format(Protocol::Http11).closes);
        assert!(!request("http://h/", &[]).format(Protocol::Http11).closes);
    }

    #[test]
    fn a_proxy_gets_the_absolute_form_of_the_url_and_not_of_the_host_field() {
        let mut asked = request("http://h:8/p", &["Host: other"]);
        asked.absolute = Some("http://h:8".to_owned());
        let text = http1(&asked, Protocol::Http11);
        let start = "GET http://h:8/p HTTP/1.1\r\nHost: other\r\n";
        assert!(text.starts_with(start), "{text}");
    }

    #[test]
    fn a_body_comes_with_its_length_and_type() {
        let post = request("http://h/", &[]).by(Method::POST);
        let text = http1(&post.carrying("{}"), Protocol::Http11);
        assert!(
            text.ends_with("Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"),
            "{text}"
        );
        let text = http1(&post, Protocol::Http11);
        assert!(text.ends_with("Content-Length: 0\r\n\r\n"), "{text}");
        let own = request("http://h/", &["Content-Type: text/plain"]).carrying("{}");
        let fields = http2(&own);
        let has = |name: &str, value: &str| fields.contains(&(name.to_owned(), value.to_owned()));
        assert!(!has("content-type", "application/json"));
        assert!(has("content-length", "2"));
    }

    #[test]
    fn secrets_do_not_follow_to_another_host_or_out_of_tls() {
        let secure = request("https://h:8443/p", &["Cookie: secret"]);
        let plain = secure.led_to(&address("http://h:8443/p"));
        assert!(!http1(&plain, Protocol::Http11).contains("secret"));
        let asked = request("http://h:8/p", &["Authorization: secret"]);
        let sent = |url: &str| http1(&asked.led_to(&address(url)), Protocol::Http11);
        assert!(sent("http://h:8/x").contains("secret"));
        assert!(!sent("http://other/x").contains("secret"));
        assert!(!sent("https://h:9/x").contains("secret"));
    }

    #[test]
    fn a_field_that_is_malformed_or_refused_is_an_error() {
        let refuse = |name: &str| (name == "connection").then_some("not here");
        for bad in ["CONNECTION: close", "no colon", "a b: c", "a: b\nc: d"] {
            let headers = [bad.to_owned()];
            let spec = RequestSpec::new(&address("http://h/"), Method::GET, "t", &headers, refuse);
            assert!(spec.is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_second_host_is_refused() {
        let headers = ["Host: a".to_owned(), "host: b".to_owned()];
        let of = |headers: &[String]| {
            RequestSpec::new(&address("http://h/"), Method::GET, "t", headers, |_| None)
        };
        assert!(of(&headers[..1]).is_ok());
        let error = of(&headers).unwrap_err().to_string();
        assert!(error.contains("one Host"), "{error}");
    }

    #[test]
    fn no_part_of_a_request_ends_its_line() {
        let spec = |method: &str, agent: &str, header: &str| {
            let headers = [header.to_owned()];
            let method = Method::new(method);
            RequestSpec::new(&address("http://h/"), method, agent, &headers, |_| None)
        };
        assert!(spec("M-SEARCH", "a b", "x: y").is_ok());
        for bad in ["\r\nX: 1", "\n", "\r", "\0", "\u{7f}"] {
            assert!(spec(&format!("GET{bad}"), "a", "x: y").is_err());
            assert!(spec("GET", &format!("a{bad}"), "x: y").is_err());
            assert!(spec("GET", "a", &format!("x{bad}: y")).is_err());
            assert!(spec("GET", "a", &format!("x: y{bad}")).is_err());
            assert!(spec("GET", "a", &format!("Host: h{bad}")).is_err());
        }
        assert!(spec("GET / HTTP/1.1\r\nX:", "a", "x: y").is_err());
        assert!(spec("", "a", "x: y").is_err());
        assert!(spec("GET", "a", "Host: a b").is_err());
        let mut odd = address("http://h/");
        odd.path = "/ HTTP/1.1\r\nX: 1".to_owned();
        let made = RequestSpec::new(&odd, Method::GET, "a", &[], |_| None);
        assert!(matches!(made, Err(RequestError::Path { .. })));
    }

    #[test]
    fn a_revalidation_has_the_entity_tag_in_its_header_section() {
        let spec = request("http://h/p", &[]).carrying("{}");
        let plain = spec.format(Protocol::Http11);
        let again = plain.revalidating("W/\"a\"");
        let bytes = std::str::from_utf8(again.http1_bytes()).unwrap();
        let end = "Content-Length: 2\r\nIf-None-Match: W/\"a\"\r\n\r\n{}";
        assert!(bytes.ends_with(end), "{bytes}");
        assert_eq!(&bytes[again.http1_head_len()..], "{}");
        let (name, value) = again.http2_fields().last().unwrap();
        assert_eq!(
            (&name[..], &value[..]),
            (&b"if-none-match"[..], &b"W/\"a\""[..])
        );
    }

    #[test]
    fn a_followed_redirect_is_expected_for_any_statuses_of_the_user() {
        let expect: ExpectedStatus = "2xx".parse().unwrap();
        let expected = |follows, status| {
            let spec = request("http://h/", &[]).expecting(Some(expect), follows);
            spec.format(Protocol::Http11).expected(Some(status))
        };
        assert_eq!(expected(true, 302), None);
        assert_eq!(expected(false, 302), Some(expect));
        assert_eq!(expected(true, 404), Some(expect));
    }
}
