//! One entry of a HAR file as it is stored, and its conversion.

use crate::client::{Entry, Timings};
use crate::fields::{add_terms, closes, har_error, nanos_of_ms, protocol, scheme, split};
use crate::lenient::{Lenient, LenientText};
use crate::timestamp;
use intact_ledger::{Failure, Outcome};
use intact_observe::server_product;
use intact_observe::user_agent::product;
use serde::Deserialize;
use serde::de::{SeqAccess, Visitor};
use std::fmt;

/// Values of Safari's `_fetchType` for entries without a request.
const LOCAL_SOURCES: [&str; 4] = [
    "Memory Cache",
    "Disk Cache",
    "Service Worker",
    "Inspector Override",
];

/// The header fields that are read.
const FIELDS: [&str; 6] = [
    "connection",
    "keep-alive",
    "non-authoritative-reason",
    "server",
    "user-agent",
    "via",
];
/// Nanoseconds of the last digit of a time, where all times of a file are whole numbers.
const STEP: u64 = 1_000_000;
/// Limit of header fields that are kept per message.
const MOST_FIELDS: usize = 64;

/// An entry as it is stored in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawEntry {
    started_date_time: Lenient,
    pub(super) pageref: Lenient,
    time: Lenient,
    #[serde(deserialize_with = "or_nothing")]
    request: RawRequest,
    #[serde(deserialize_with = "or_nothing")]
    response: RawResponse,
    #[serde(deserialize_with = "or_nothing")]
    timings: RawTimings,
    connection: Lenient,
    /// Chrome: id of the socket. `connection` is the server's port then.
    #[serde(rename = "_connectionId")]
    connection_id: Lenient,
    /// WebPageTest: id of the socket.
    #[serde(rename = "_socket")]
    socket: Lenient,
    /// WebPageTest: the version of HTTP, where `httpVersion` is empty.
    #[serde(rename = "_protocol")]
    protocol: Lenient,
    /// Browsertime: an earlier request used the socket.
    #[serde(rename = "_connectionReused")]
    connection_reused: Lenient,
    /// Safari: where the response came from.
    #[serde(rename = "_fetchType")]
    fetch_type: Lenient,
    #[serde(deserialize_with = "or_nothing")]
    cache: RawCache,
    #[serde(rename = "serverIPAddress")]
    server_ip_address: Lenient,
    #[serde(rename = "_fromCache")]
    from_cache: Lenient,
    #[serde(rename = "_fetchedViaServiceWorker")]
    by_service_worker: Lenient,
    /// WebPageTest, Browsertime: the server pushed the response.
    #[serde(rename = "_was_pushed")]
    was_pushed: Lenient,
    #[serde(rename = "_error")]
    error: Lenient,
}

/// State of the cache. Firefox and Firebug write `afterRequest` only for a response from their
/// cache, Firefox as `null`. Other programs write both keys, as `null`, for every entry.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawCache {
    #[serde(deserialize_with = "presence")]
    before_request: Presence,
    #[serde(deserialize_with = "presence")]
    after_request: Presence,
}

/// A key of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Presence {
    #[default]
    Absent,
    Null,
    Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawRequest {
    method: Lenient,
    url: Lenient,
    http_version: Lenient,
    headers_size: Lenient,
    body_size: Lenient,
    headers: RawHeaders,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawResponse {
    status: Lenient,
    http_version: Lenient,
    headers_size: Lenient,
    body_size: Lenient,
    headers: RawHeaders,
    status_text: Lenient,
    #[serde(rename = "_error")]
    error: Lenient,
    /// Playwright.
    #[serde(rename = "_failureText")]
    failure_text: Lenient,
    /// Chrome: bytes on the wire with the header section; 0 from its cache.
    #[serde(rename = "_transferSize")]
    transfer_size: Lenient,
    /// Chrome.
    #[serde(rename = "_fetchedViaServiceWorker")]
    by_service_worker: Lenient,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawTimings {
    blocked: Lenient,
    dns: Lenient,
    connect: Lenient,
    ssl: Lenient,
    send: Lenient,
    wait: Lenient,
    receive: Lenient,
}

/// A header field of the text: most of them are not read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BorrowedHeader<'a> {
    #[serde(borrow)]
    name: LenientText<'a>,
    #[serde(borrow)]
    value: LenientText<'a>,
}

/// The header fields that are used, at most [`MOST_FIELDS`] of them.
#[derive(Debug, Default)]
struct RawHeaders(Vec<(String, String)>);

impl<'de> Deserialize<'de> for RawHeaders {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<RawHeaders, D::Error> {
        deserializer.deserialize_any(HeaderList)
    }
}

/// Reads the list of header fields; `null` is an empty list.
struct HeaderList;

impl<'de> Visitor<'de> for HeaderList {
    type Value = RawHeaders;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of header fields")
    }

    fn visit_unit<E>(self) -> Result<RawHeaders, E> {
        Ok(RawHeaders::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RawHeaders, A::Error> {
        let mut kept = Vec::new();
        while let Some(field) = list.next_element::<Option<BorrowedHeader<'_>>>()? {
            let BorrowedHeader { name, value } = field.unwrap_or_default();
            let is_read = FIELDS.iter().any(|one| name.0.eq_ignore_ascii_case(one));
            if is_read && kept.len() < MOST_FIELDS {
                kept.push((name.0.into_owned(), value.0.into_owned()));
            }
        }
        Ok(RawHeaders(kept))
    }
}

/// Whether the key that is present has a value.
fn presence<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Presence, D::Error> {
    let value = Option::<serde::de::IgnoredAny>::deserialize(deserializer)?;
    Ok(value.map_or(Presence::Null, |_| Presence::Value))
}

/// Reads `null` as the default value.
fn or_nothing<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl RawEntry {
    /// Converts the entry; `None` if it did not go over a network, or has no time or no URL.
    pub(super) fn read(&self) -> Option<Entry> {
        let at = timestamp::nanos(&self.started_date_time.text()?)?;
        let url = self.request.url.text()?;
        split(&url)?;
        if self.is_local() {
            return None;
        }
        let mut entry = Entry::begun(at);
        let method = self.request.method.text().unwrap_or_default();
        entry.set_request(Some(url), Some(method));
        entry.set_status(self.response.status.count());
        entry.timings = timings(&self.timings);
        if self.timings.connect.number() == Some(0.0) {
            entry.set_setup_step(STEP);
        }
        entry.time = self.time.number().map_or(0, nanos_of_ms);
        let ids = [&self.connection_id, &self.connection, &self.socket];
        let id = ids.into_iter().find_map(Lenient::text);
        entry.id = id.map(|id| egress(&id).into());
        entry.used_before = self.is_on_used_socket();
        entry.address = self
            .server_ip_address
            .text()
            .and_then(|text| text.trim_matches(['[', ']']).parse().ok());
        entry.outcome = self.outcome(&entry)?;
        entry.may_lack_connection = entry.status.is_none()
            && entry.is_nowhere()
            && !entry.timings.has_setup()
            && !entry.timings.has_round_trip();
        if entry.outcome.is_ok() && self.is_cached(&entry) {
            return None;
        }
        let versions = [
            &self.protocol,
            &self.response.http_version,
            &self.request.http_version,
        ];
        entry.protocol = versions
            .iter()
            .find_map(|version| protocol(&version.text()?));
        entry.request_head = self.request.headers_size.count().unwrap_or(0);
        entry.request_body = self.request.body_size.count();
        entry.head = self.response.headers_size.count().unwrap_or(0);
        entry.body = self.response.body_size.count();
        self.read_fields(&mut entry);
        Some(entry)
    }

    /// Whether the entry lacks the time or the URL that every request has. An entry with a URL of
    /// another scheme is no request.
    pub(super) fn is_damaged(&self) -> bool {
        let url = self.request.url.text().unwrap_or_default();
        let name = url.split_once(':').map(|(name, _)| name);
        let is_other = |name: &str| !name.contains('/') && scheme(name).is_none();
        let start = self.started_date_time.text();
        let has_start = start.is_some_and(|start| timestamp::nanos(&start).is_some());
        !name.is_some_and(is_other) && (!has_start || split(&url).is_none())
    }

    /// The outcome of a request; `None` if the browser blocked it, or if it was cancelled before it
    /// went anywhere.
    fn outcome(&self, entry: &Entry) -> Option<Outcome> {
        let response = &self.response;
        let mut errors = vec![&response.error, &response.failure_text];
        // of an entry with a response, it may be an error of the page
        errors.extend(entry.status.is_none().then_some(&self.error));
        let error = errors.into_iter().find_map(Lenient::text);
        // WebPageTest: no response came before the end of the recording
        let is_open = response.status.number().is_some_and(|status| status < 0.0);
        match (error, entry.status) {
            (Some(error), status) => har_error(&error).outcome(status.is_some()),
            (None, Some(_)) => Some(Outcome::Ok),
            // the browser did not ask for it
            (None, None) if self.was_pushed.number() == Some(1.0) => None,
            (None, None) if is_open => entry.timings.has_progress().then_some(Outcome::Unknown),
            (None, None) if entry.timings.has_progress() => {
                Some(Outcome::Failed(Failure::UnknownKind))
            }
            // mitmproxy: it had a connection when the recording ended
            (None, None) => {
                let has_connection = entry.address.is_some() || entry.id.is_some();
                has_connection.then_some(Outcome::Unknown)
            }
        }
    }

    /// Whether the response of an entry came from a cache, without a mark of its own.
    fn is_cached(&self, entry: &Entry) -> bool {
        let timings = &entry.timings;
        // without a duration, an address and a connection
        let is_instant = entry.time == 0 && entry.ended_at() == entry.at;
        let is_nowhere = entry.is_nowhere();
        let is_marked = match self.cache.after_request {
            Presence::Absent => false,
            Presence::Null => is_nowhere && self.cache.before_request == Presence::Absent,
            // the cache keeps the address that the response came from
            Presence::Value => entry.id.is_none(),
        };
        let is_marked = is_marked && !timings.has_setup() && !timings.has_round_trip();
        // Chrome before it had the mark; a WebSocket has no size either
        let is_empty = self.response.transfer_size.number() == Some(0.0)
            && !timings.has_setup()
            && !self.has_socket_id()
            && entry.status != Some(101);
        is_nowhere && is_instant || is_marked || is_empty
    }

    /// Whether the browser itself redirected to HTTPS (HSTS), as Chrome reports it.
    fn is_internal_redirect(&self) -> bool {
        let text = self.response.status_text.text();
        let by_text = text.is_some_and(|text| text == "Internal Redirect");
        self.response.status.count() == Some(307)
            && (by_text
                || fields(&self.response.headers.0, "non-authoritative-reason")
                    .next()
                    .is_some())
    }

    /// Whether a cache, the browser or a service worker responded, so that no request was sent.
    fn is_local(&self) -> bool {
        let flags = [
            &self.from_cache,
            &self.by_service_worker,
            &self.response.by_service_worker,
        ];
        let source = self.fetch_type.text();
        flags.into_iter().any(Lenient::is_set)
            || self.is_internal_redirect()
            || source.is_some_and(|source| LOCAL_SOURCES.contains(&source.as_str()))
    }

    /// Whether the browser reports that an earlier request used the socket. Chrome writes -1 as the
    /// time for connecting then. The first request on a socket has the time of its setup, even if
    /// the socket was opened ahead.
    fn is_on_used_socket(&self) -> bool {
        let connect = self.timings.connect.number();
        let is_chrome = self.has_socket_id();
        self.connection_reused.is_set() || (is_chrome && connect.is_some_and(|ms| ms < 0.0))
    }

    /// Whether no time of the entry has a part of a millisecond.
    pub(super) fn has_whole_times(&self) -> bool {
        let RawTimings {
            blocked,
            dns,
            connect,
            ssl,
            send,
            wait,
            receive,
        } = &self.timings;
        let all = [blocked, dns, connect, ssl, send, wait, receive];
        all.into_iter()
            .filter_map(Lenient::number)
            .all(|ms| ms.fract() == 0.0)
    }

    /// Whether the entry has Chrome's socket id.
    pub(super) fn has_socket_id(&self) -> bool {
        self.connection_id.text().is_some()
    }

    fn read_fields(&self, entry: &mut Entry) {
        let (request, response) = (&self.request.headers.0, &self.response.headers.0);
        entry.agent = fields(request, "user-agent").find_map(product);
        let server = fields(response, "server").next();
        let via = fields(response, "via").last();
        entry.server = server_product(server, via);
        entry.client_closes = fields(request, "connection").any(closes);
        entry.server_closes = fields(response, "connection").any(closes);
        for value in fields(response, "keep-alive") {
            add_terms(&mut entry.terms, value);
        }
    }
}

/// Converts the timings. -1 means that a phase did not apply; some programs write 0 for a setup
/// that did not apply.
fn timings(raw: &RawTimings) -> Timings {
    let phase = |value: &Lenient| value.number().filter(|ms| *ms >= 0.0).map(nanos_of_ms);
    let step = |value: &Lenient| phase(value).filter(|&nanos| nanos > 0);
    let ssl = step(&raw.ssl);
    // HAR 1.2: connect includes ssl. In HAR 1.1 and Firefox the two are separate, so ssl may be the
    // longer one
    let connect = step(&raw.connect).map(|both| match ssl {
        Some(ssl) if ssl <= both => both - ssl,
        _ => both,
    });
    Timings {
        blocked: step(&raw.blocked),
        dns: step(&raw.dns),
        connect,
        ssl,
        send: phase(&raw.send),
        wait: phase(&raw.wait),
        receive: phase(&raw.receive),
    }
}

/// Fiddler names both of its connections; the second one reaches the server.
fn egress(id: &str) -> &str {
    id.split_once("EgressPort:").map_or(id, |(_, port)| port)
}

fn fields<'a>(headers: &'a [(String, String)], name: &'a str) -> impl Iterator<Item = &'a str> {
    let named = headers
        .iter()
        .filter(move |(known, value)| known.eq_ignore_ascii_case(name) && !value.is_empty());
    named.map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(json: &str) -> Option<Entry> {
        let raw: RawEntry = serde_json::from_str(json).unwrap();
        raw.read()
    }

    #[test]
    fn values_of_any_type_are_read() {
        let one = entry(
            r#"{"startedDateTime":"2024-01-01T00:00:00.5+01:00","time":"12.5","connection":443,"serverIPAddress":"[::1]",
            "request":{"method":"GET","url":"https://u:p@A.example:8443/x?token=1","headers":null},
            "response":{"status":"200","httpVersion":"h2","headers":[{"name":"Keep-Alive","value":"timeout=5, max=9"}]},
            "timings":{"blocked":-1,"connect":10,"ssl":4,"send":0,"wait":"1","receive":1}}"#,
        )
        .unwrap();
        assert_eq!(
            one.origin.as_ref().unwrap().to_string(),
            "https://a.example:8443"
        );
        assert_eq!(one.target().unwrap().as_str(), "/x");
        assert_eq!(one.timings.connect, Some(6_000_000));
        assert_eq!((one.terms.timeout_s, one.terms.max), (Some(5), Some(9)));
        assert_eq!(one.id.as_deref(), Some("443"));
        assert_eq!(one.protocol, Some(intact_ledger::Protocol::Http2));
    }

    #[test]
    fn entries_without_network_are_skipped() {
        let with = |url: &str, time: u32, rest: &str| {
            let at = r#""startedDateTime":"2024-01-01T00:00:00Z""#;
            entry(&format!(
                r#"{{{at},"time":{time},"request":{{"method":"GET","url":"{url}"}},"response":{{"status":200}}{rest}}}"#
            ))
        };
        assert!(with("http://a/", 1, "").is_some());
        assert!(with("http://a/", 0, "").is_none());
        assert!(with("data:text/plain,x", 1, "").is_none());
        assert!(with("http://a/", 1, r#","_fromCache":"disk""#).is_none());
    }

    #[test]
    fn a_request_on_a_connection_without_a_response_is_not_lost() {
        let with = |rest: &str| {
            entry(&format!(
                r#"{{"startedDateTime":"2024-01-01T00:00:00Z","time":0,"request":{{"method":"GET",
                "url":"http://a/"}},"response":{{"status":0}},"timings":{{"send":0,"wait":0}}{rest}}}"#
            ))
        };
        let one = with(r#","serverIPAddress":"192.0.2.1""#).unwrap();
        assert_eq!(one.outcome, Outcome::Unknown);
        // the browser blocked it
        assert!(with("").is_none());
    }
}
