//! One line of an access log as values, and the names that logs use for them.

use crate::failure_words::in_words;
use crate::fields::{protocol, status, tls_version, whole};
use crate::timestamp::{self, Timestamp};
use intact_ledger::{Failure, Protocol, TlsVersion};
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A value that a log may hold about a request, under any server's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// Address of the client, perhaps with its port.
    Client,
    ClientPort,
    /// The server's id of the connection.
    Connection,
    /// Position on the connection, from 1.
    Nth,
    /// Position on the connection, from 0 (Apache's `%k`).
    Before,
    /// State of the connection after the response (Apache's `%X`: `X` aborted, `+` kept, `-`
    /// closed).
    Fate,
    /// How Envoy judged the response (`%RESPONSE_FLAGS%`).
    Flags,
    /// `Connection` of the response as it was sent. nginx's `$sent_http_connection` is not: it is
    /// `close` when the log is written.
    ConnectionSent,
    /// When the line was written: at the end of the request.
    End,
    /// When the request arrived.
    Start,
    Seconds,
    Millis,
    Micros,
    Nanos,
    /// A number and its unit.
    WithUnit,
    /// In seconds (Caddy) or milliseconds (Envoy).
    Duration,
    /// Method, target and version.
    Request,
    Method,
    Target,
    Protocol,
    Status,
    Sent,
    Agent,
    Host,
    Scheme,
    Tls,
    Cipher,
    /// Any value that only a request over TLS has.
    Secure,
    Resumed,
    /// What a client reports of a request that got no response.
    Error,
    /// `OK` if nginx completed the request, else empty (`$request_completion`).
    Completion,
    /// A value that is not used.
    Other,
}

impl Field {
    /// The field of a name of nginx's variables, of a JSON key, or of a `key=value` pair.
    pub(super) fn named(name: &str) -> Field {
        match name {
            "remote_addr"
            | "remote_address"
            | "remote_ip"
            | "remote"
            | "client"
            | "client_addr"
            | "client_address"
            | "client_ip"
            | "clientip"
            | "peer"
            | "src_ip"
            | "c_ip"
            | "downstream_remote_address"
            | "downstream_direct_remote_address" => Field::Client,
            "remote_port" | "client_port" | "port" => Field::ClientPort,
            "connection" | "connection_id" | "conn" | "conn_id" => Field::Connection,
            "connection_requests" | "conn_requests" | "reqs" => Field::Nth,
            "k" | "keepalives" => Field::Before,
            "X" | "connection_status" => Field::Fate,
            "response_flags" => Field::Flags,
            "msec" | "time_local" | "time_iso8601" | "time" | "timestamp" | "@timestamp" | "ts" => {
                Field::End
            }
            "start_time" | "start" | "start_usec" => Field::Start,
            "request_time" | "rt" => Field::Seconds,
            "request_time_ms" | "ms" | "duration_ms" => Field::Millis,
            "usec" | "D" => Field::Micros,
            "took" => Field::WithUnit,
            "duration" => Field::Duration,
            "request" | "request_line" => Field::Request,
            "request_completion" => Field::Completion,
            "method" | "request_method" => Field::Method,
            "uri" | "request_uri" | "path" | "url" => Field::Target,
            "protocol" | "server_protocol" | "proto" | "version" => Field::Protocol,
            "status" | "response_code" | "status_code" | "code" => Field::Status,
            "body_bytes_sent" | "bytes_sent" | "bytes" | "size" => Field::Sent,
            "http_user_agent" | "user_agent" | "ua" => Field::Agent,
            "host" | "http_host" | "authority" | "vhost" => Field::Host,
            "scheme" => Field::Scheme,
            "ssl_protocol" | "tls" | "tls_version" | "downstream_tls_version" => Field::Tls,
            "ssl_cipher" | "downstream_tls_cipher" => Field::Cipher,
            "ssl_session_reused" | "resumed" => Field::Resumed,
            _ => Field::Other,
        }
    }
}

/// Why a response is not complete, according to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogFailure {
    pub(crate) kind: Failure,
    pub(crate) detail: Cow<'static, str>,
}

/// Status that nginx logs for a request that the client gave up.
const CLIENT_CLOSED: u16 = 499;
/// Status that nginx logs where it closes the connection instead of a response.
const NO_RESPONSE: u16 = 444;
/// Envoy's flag for a client that closed the connection.
const CLIENT_GONE: &str = "DC";

/// What a flag of Envoy says of a response that had begun (its documentation of access logs).
fn of_flag(flag: &str) -> Option<LogFailure> {
    let (kind, why) = match flag {
        CLIENT_GONE => return Some(LogFailure::in_the_middle()),
        "UC" => (Failure::Truncated, "the server closed the connection"),
        "UR" | "LR" => (Failure::Truncated, "the stream was reset"),
        "UPE" => (Failure::Malformed, "the server broke the protocol"),
        "UT" | "SI" | "DT" | "UMSDR" => (Failure::Timeout, "a limit of Envoy passed"),
        _ => return None,
    };
    let detail = format!("{why} in the middle of the response (response flag {flag})").into();
    Some(LogFailure { kind, detail })
}

impl LogFailure {
    /// The client closed the connection while the response was on its way.
    pub(crate) fn in_the_middle() -> LogFailure {
        LogFailure {
            kind: Failure::ClientClosed,
            detail: "the client closed the connection in the middle of the response".into(),
        }
    }

    /// The client closed the connection before the response.
    pub(crate) fn by_client() -> LogFailure {
        LogFailure {
            kind: Failure::ClientClosed,
            detail: "the client closed the connection before the response".into(),
        }
    }
}

/// The values of a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Line<'a> {
    pub(crate) client: Option<IpAddr>,
    pub(crate) port: Option<u16>,
    pub(crate) connection: Option<Cow<'a, str>>,
    pub(crate) nth: Option<u32>,
    /// The server reports that it closes, or that the connection is closed.
    pub(crate) closes: bool,
    pub(crate) end: Option<Timestamp>,
    pub(crate) start: Option<Timestamp>,
    /// Duration in nanoseconds.
    pub(crate) took: Option<u64>,
    /// Duration in a unit that is not known yet.
    pub(crate) duration: Option<f64>,
    pub(crate) method: Option<Cow<'a, str>>,
    pub(crate) target: Option<Cow<'a, str>>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) status: Option<u16>,
    /// The log has a status that HTTP has not, such as 0 or a hyphen.
    pub(crate) has_no_status: bool,
    /// Why the response is not complete, according to the log, in addition to the status.
    pub(crate) failure: Option<LogFailure>,
    pub(crate) sent: Option<u64>,
    /// The client's `User-Agent`.
    pub(crate) agent: Option<Cow<'a, str>>,
    pub(crate) host: Option<Cow<'a, str>>,
    pub(crate) secure: Option<bool>,
    pub(crate) tls: Option<TlsVersion>,
    pub(crate) resumed: Option<bool>,
    /// The flags of Envoy: whether they cut the response depends on its status.
    pub(crate) flags: Option<Cow<'a, str>>,
    /// The log has a request line, perhaps a malformed or an empty one.
    pub(crate) has_request: bool,
    /// nginx did not complete the request.
    pub(crate) is_incomplete: bool,
    /// Duration of the TLS handshake in nanoseconds.
    pub(crate) handshake: Option<u64>,
    /// The line is the beginning of a connection.
    pub(crate) opens: bool,
    /// The line is about a request, even if no value of a request is in it.
    pub(crate) is_row: bool,
}

impl<'a> Line<'a> {
    /// Sets a value; a value that cannot be parsed is ignored.
    pub(super) fn set(&mut self, field: Field, value: Cow<'a, str>) {
        // a hyphen is a value of Apache's %X, and the status of a request without one
        let is_absent = match field {
            Field::Completion => false,
            Field::Fate | Field::Status => value.is_empty(),
            Field::Request if value.is_empty() => {
                // nginx writes one for a request that it cannot parse
                self.has_request = true;
                true
            }
            _ => value.is_empty() || value == "-",
        };
        if is_absent {
            return;
        }
        match field {
            Field::Client => self.set_client(&value),
            Field::ClientPort => self.port = port(value.parse().ok()),
            Field::Connection => self.connection = Some(value),
            Field::Nth => self.nth = value.parse().ok(),
            Field::Before => {
                self.nth = value
                    .parse()
                    .ok()
                    .map(|before: u32| before.saturating_add(1));
            }
            Field::Fate => {
                self.closes |= value != "+";
                if value == "X" {
                    self.failure = Some(LogFailure::in_the_middle());
                }
            }
            Field::Flags => self.flags = Some(value),
            Field::ConnectionSent => self.closes |= value.eq_ignore_ascii_case("close"),
            // the time with the finest unit is used
            Field::End => self.end = finer(self.end, timestamp::read(&value)),
            Field::Start => self.start = finer(self.start, timestamp::read(&value)),
            Field::Seconds => self.took = nanos(&value, 1e9),
            Field::Millis => self.took = nanos(&value, 1e6),
            Field::Micros => self.took = nanos(&value, 1e3),
            Field::Nanos => self.took = nanos(&value, 1.0),
            Field::WithUnit => self.took = with_unit(&value),
            Field::Duration => self.duration = value.parse().ok(),
            Field::Request => self.set_request(value),
            Field::Method => self.method = Some(value),
            Field::Target => self.target = Some(value),
            Field::Protocol => self.protocol = protocol(&value),
            Field::Status => {
                let number = value.parse().ok();
                self.status = number.and_then(status);
                let is_none = value == "-" || number.is_some();
                self.has_no_status = is_none && self.status.is_none();
            }
            Field::Sent => self.sent = value.parse().ok(),
            Field::Host => self.host = Some(value),
            Field::Scheme => self.secure = Some(value.eq_ignore_ascii_case("https")),
            Field::Tls => {
                self.secure = Some(true);
                self.tls = tls_version(&value);
            }
            Field::Cipher | Field::Secure => self.secure = Some(true),
            Field::Resumed => self.resumed = Some(matches!(&*value, "r" | "true" | "Resumed")),
            Field::Agent => self.agent = Some(value),
            Field::Error => {
                self.failure = Some(LogFailure {
                    kind: in_words(&value),
                    detail: "the client reported an error".into(),
                });
            }
            Field::Completion => self.is_incomplete = value != "OK",
            Field::Other => {}
        }
    }

    /// Computes what depends on several values. `duration_unit`: nanoseconds in one unit of
    /// `duration`.
    pub(super) fn settle(&mut self, duration_unit: f64) {
        if let (None, Some(duration)) = (self.took, self.duration) {
            self.took = whole(duration * duration_unit);
        }
        if let (None, Some(start), Some(end)) = (self.took, self.start, self.end)
            && !start.coarse
            && !end.coarse
        {
            self.took = end.nanos.checked_sub(start.nanos);
        }
    }

    /// Whether the line is about a request. A server also responds to a request that it cannot
    /// parse, and logs it without a method. A 408 without a method ended a connection without a
    /// request.
    pub(super) fn is_request(&self) -> bool {
        let responded = self.status.is_some_and(|status| status != 408)
            && (self.protocol.is_some() || self.sent > Some(0))
            || self.has_request && self.status == Some(400) && self.sent != Some(0);
        self.is_row || self.method.is_some() || self.target.is_some() || responded
    }

    /// Why the response is not complete, by what the log says and by its status.
    pub(super) fn failure(&self) -> Option<LogFailure> {
        let cut = || {
            // a response of Envoy itself is complete, unless its client went away
            let is_own = self.status >= Some(500);
            let flags = self.flags.as_deref()?.split(',');
            let mut cuts = flags.filter(|flag| !is_own || *flag == CLIENT_GONE);
            cuts.find_map(of_flag)
        };
        let of_status = || match self.status? {
            CLIENT_CLOSED => Some(LogFailure::by_client()),
            NO_RESPONSE => Some(LogFailure {
                kind: Failure::Closed,
                detail: "the server closed the connection without a response".into(),
            }),
            _ => None,
        };
        let incomplete = || {
            let detail = "nginx did not complete the request ($request_completion is empty)";
            self.is_incomplete.then(|| LogFailure {
                kind: Failure::UnknownKind,
                detail: detail.into(),
            })
        };
        let known = self.failure.clone().or_else(cut).or_else(of_status);
        known.or_else(incomplete)
    }

    fn set_client(&mut self, value: &str) {
        if let Some(address) = dotted(value) {
            self.client = Some(address.into());
        } else if let Ok(address) = value.parse() {
            self.client = Some(address);
        } else if let Ok(both) = value.parse::<SocketAddr>() {
            self.client = Some(both.ip());
            self.port = port(Some(both.port()));
        } else if let Some((_, last)) = value.rsplit_once(' ').filter(|_| !value.contains(',')) {
            // a virtual host precedes the first value of a line
            self.set_client(last);
        }
    }

    fn set_request(&mut self, value: Cow<'a, str>) {
        self.has_request = true;
        let (method, target, version) = match value {
            Cow::Borrowed(text) => {
                let (method, target, version) = request_line(text);
                (
                    method.map(Cow::Borrowed),
                    target.map(Cow::Borrowed),
                    version,
                )
            }
            Cow::Owned(text) => {
                let (method, target, version) = request_line(&text);
                let owned = |word: Option<&str>| word.map(|word| Cow::Owned(word.to_owned()));
                (owned(method), owned(target), version)
            }
        };
        self.protocol = version.or(self.protocol);
        self.method = method;
        self.target = target;
    }
}

/// A port of a connection: a proxy writes 0 for an address that a header field named.
fn port(port: Option<u16>) -> Option<u16> {
    port.filter(|port| *port > 0)
}

/// Method, target and version of a request line; `None` if it is malformed.
fn request_line(text: &str) -> (Option<&str>, Option<&str>, Option<Protocol>) {
    let mut words = words(text);
    let is_method = |word: &&str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'-')
    };
    let method = words.next().filter(is_method);
    let target = words.next().filter(|_| method.is_some());
    (method, target, words.next().and_then(protocol))
}

/// Four numbers with dots, without a zero in front: most addresses of a log, in a third of the
/// time. The parser of the standard library reads the others.
fn dotted(text: &str) -> Option<Ipv4Addr> {
    let mut parts = [0u16; 4];
    let (mut part, mut digits) = (0, 0);
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' if digits == 0 || parts[part] > 0 => {
                parts[part] = parts[part] * 10 + u16::from(byte - b'0');
                digits += 1;
            }
            b'.' if digits > 0 && part < 3 => (part, digits) = (part + 1, 0),
            _ => return None,
        }
        if parts[part] > 255 {
            return None;
        }
    }
    let is_whole = part == 3 && digits > 0;
    is_whole.then(|| Ipv4Addr::from(parts.map(|part| part as u8)))
}

/// The words between single blanks, as `split(' ')` has them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = memchr::memchr(b' ', text.as_bytes());
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

fn finer(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) if !one.coarse || other.coarse => Some(one),
        (one, None) => one,
        (_, other) => other,
    }
}

fn nanos(text: &str, unit: f64) -> Option<u64> {
    whole(text.parse::<f64>().ok()? * unit)
}

/// The nanoseconds of a number with its unit, which a blank or nothing separates: `5 msecs`, `5ms`.
fn with_unit(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, unit) = text.split_at(end);
    let unit = match words(unit.trim_start()).next()? {
        "s" => 1e9,
        "ms" | "msecs" => 1e6,
        "us" | "µs" | "micros" => 1e3,
        "ns" => 1.0,
        _ => return None,
    };
    nanos(number, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_statuses_show_responses_that_are_not_complete() {
        let kind = |fields: &[(Field, &'static str)]| {
            let mut line = Line::default();
            for (field, value) in fields {
                line.set(*field, Cow::Borrowed(value));
            }
            line.failure().map(|failure| failure.kind)
        };
        let (status, flags) = (Field::Status, Field::Flags);
        for (wanted, fields) in [
            (None, [(status, "200"), (flags, "-")]),
            (
                Some(Failure::ClientClosed),
                [(status, "200"), (flags, "DC")],
            ),
            (Some(Failure::Truncated), [(flags, "UC"), (status, "200")]),
            (
                Some(Failure::Truncated),
                [(status, "200"), (flags, "RL,UR")],
            ),
            // Envoy's own response
            (None, [(status, "503"), (flags, "UC")]),
            (Some(Failure::Closed), [(status, "444"), (flags, "-")]),
            (
                Some(Failure::ClientClosed),
                [(status, "499"), (Field::Fate, "-")],
            ),
            (
                Some(Failure::ClientClosed),
                [(status, "200"), (Field::Fate, "X")],
            ),
            (None, [(status, "200"), (Field::Fate, "+")]),
        ] {
            assert_eq!(kind(&fields), wanted, "{fields:?}");
        }
    }

    #[test]
    fn a_malformed_request_that_was_answered_is_a_request() {
        let mut line = Line::default();
        line.set(Field::Request, Cow::Borrowed("\u{16}GARBAGE"));
        assert!(!line.is_request());
        line.set(Field::Status, Cow::Borrowed("400"));
        assert!(line.is_request());
    }

    #[test]
    fn a_request_line_is_split_and_a_malformed_one_is_not() {
        let mut line = Line::default();
        line.set(Field::Request, "GET /a?b=1 HTTP/2.0".into());
        assert_eq!(line.method.as_deref(), Some("GET"));
        assert_eq!(line.target.as_deref(), Some("/a?b=1"));
        assert_eq!(line.protocol, Some(Protocol::Http2));
        let mut line = Line::default();
        line.set(Field::Request, "\\x16\\x03\\x01".into());
        assert_eq!((line.method, line.target), (None, None));
    }

    #[test]
    fn a_response_without_a_request_line_is_one_to_a_request() {
        let with = |status: &str, sent: &str| {
            let mut line = Line::default();
            line.set(Field::Request, "-".into());
            line.set(Field::Status, status.to_owned().into());
            line.set(Field::Sent, sent.to_owned().into());
            line.is_request()
        };
        assert!(with("400", "157"));
        // the client closed, or sent nothing
        assert!(!with("400", "0"));
        assert!(!with("408", "217"));
        assert!(!with("-", "-"));
    }

    #[test]
    fn the_finest_time_is_used() {
        let mut line = Line::default();
        line.set(Field::End, "971211336.250".into());
        line.set(Field::End, "10/Oct/2000:20:55:36 +0000".into());
        assert_eq!(line.end.unwrap().nanos, 971_211_336_250_000_000);
    }

    #[test]
    fn a_client_may_come_with_its_port() {
        let mut line = Line::default();
        line.set(Field::Client, "[2001:db8::1]:5000".into());
        assert_eq!(line.port, Some(5000));
        line.set(Field::Client, "www.example 192.0.2.1".into());
        assert_eq!(line.client.unwrap().to_string(), "192.0.2.1");
        let mut listed = Line::default();
        listed.set(Field::Client, "192.0.2.1, 192.0.2.2".into());
        assert_eq!(listed.client, None);
    }

    proptest::proptest! {
        #[test]
        fn an_address_is_that_of_the_standard_library(text in "[0-9]{0,3}(\\.[0-9]{0,3}){2,4}|[0-9.]{0,16}") {
            proptest::prop_assert_eq!(dotted(&text), text.parse().ok());
        }
    }
}
