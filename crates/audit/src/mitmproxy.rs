//! Flows of mitmproxy, as `mitmdump -w` writes them: typed netstrings. Each request names the
//! connection of the proxy to the server, which is one for each connection of the client.

use crate::client::{DocumentFormat, Entry, Recording, cut};
use crate::failure_words::in_words;
use crate::fields::{add_terms, closes, protocol};
use crate::input::Stream;
use crate::read_buffer::ReadBuffer;
use intact_ledger::{Failure, Outcome};
use intact_observe::server_product;
use intact_observe::user_agent::product;
use std::collections::HashSet;

pub(crate) static FORMAT: DocumentFormat = DocumentFormat {
    name: "flows of mitmproxy",
    detect,
    begins_at,
    read,
    kind: "tool",
    better: "`intact watch -- COMMAND` without the proxy shows it",
    shows_lookups: false,
};

/// Largest flow that is read, with the bodies of its messages.
const LARGEST: usize = 256 << 20;
/// Digits of a length at most.
const DIGITS: usize = 10;

/// The length at the beginning of a value, and the number of its digits.
fn length(bytes: &[u8]) -> Option<(usize, usize)> {
    let digits = memchr::memchr(b':', &bytes[..bytes.len().min(DIGITS + 1)])?;
    let text = std::str::from_utf8(&bytes[..digits]).ok()?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    Some((text.parse().ok().filter(|_| is_number)?, digits))
}

/// A typed netstring: its content and its type.
#[derive(Clone, Copy)]
struct Value<'a> {
    content: &'a [u8],
    kind: u8,
}

impl<'a> Value<'a> {
    /// The value at the beginning, and the bytes after it.
    fn take(bytes: &'a [u8]) -> Option<(Value<'a>, &'a [u8])> {
        let (len, digits) = length(bytes)?;
        let rest = &bytes[digits + 1..];
        let (content, rest) = rest.split_at_checked(len)?;
        let (&kind, rest) = rest.split_first()?;
        Some((Value { content, kind }, rest))
    }

    /// The values of a list, or the keys and values of an object in turn.
    fn items(self) -> impl Iterator<Item = Value<'a>> {
        let mut rest = match self.kind {
            b']' | b'}' => self.content,
            _ => &[],
        };
        std::iter::from_fn(move || {
            let (value, after) = Value::take(rest)?;
            rest = after;
            Some(value)
        })
    }

    /// The value of a key of an object.
    fn get(self, key: &str) -> Option<Value<'a>> {
        let mut items = self.items();
        while let (Some(name), Some(value)) = (items.next(), items.next()) {
            if name.content == key.as_bytes() {
                return (value.kind != b'~').then_some(value);
            }
        }
        None
    }

    fn text(self) -> Option<&'a str> {
        std::str::from_utf8(self.content).ok()
    }

    fn number(self) -> Option<f64> {
        self.text()?.parse().ok()
    }

    /// A time in nanoseconds since 1970.
    fn time(self, key: &str) -> Option<u64> {
        let seconds = self.get(key)?.number()?;
        (0.0..9e9)
            .contains(&seconds)
            .then_some((seconds * 1e9) as u64)
    }

    /// The values of a header field.
    fn fields(self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let list = self.get("headers").into_iter().flat_map(Value::items);
        list.filter_map(move |pair| {
            let mut pair = pair.items();
            let is_named = pair.next()?.text()?.eq_ignore_ascii_case(name);
            pair.next()?.text().filter(|_| is_named)
        })
    }
}

fn detect(prefix: &[u8]) -> bool {
    let Some((_, digits)) = length(prefix) else {
        return false;
    };
    let inside = &prefix[digits + 1..];
    Value::take(inside).is_some_and(|(key, _)| {
        let keys = [
            "version",
            "type",
            "id",
            "error",
            "request",
            "response",
            "websocket",
        ];
        let is_key = |name: &str| name.as_bytes() == key.content;
        matches!(key.kind, b';' | b',')
            && (keys.iter().any(|name| is_key(name)) || key.content.ends_with(b"_conn"))
    })
}

fn begins_at(prefix: &[u8]) -> Option<u64> {
    // the first flow may be longer than the prefix: the times of its connections come early
    let times = memchr::memmem::find_iter(prefix, b"timestamp_start").filter_map(|at| {
        let (value, _) = Value::take(prefix.get(at + b"timestamp_start".len() + 1..)?)?;
        let seconds = value.number()?;
        nanos_of_wall(seconds)
    });
    times.min()
}

fn nanos_of_wall(seconds: f64) -> Option<u64> {
    (0.0..9e9)
        .contains(&seconds)
        .then_some((seconds * 1e9) as u64)
}

fn read(window: &mut ReadBuffer<Stream>, recording: &mut Recording) -> Result<(), String> {
    let io = |error: std::io::Error| error.to_string();
    "mitmproxy".clone_into(&mut recording.program);
    let mut known = HashSet::new();
    loop {
        window.fill(DIGITS + 1).map_err(io)?;
        if window.available().is_empty() {
            return Ok(());
        }
        let (len, digits) = length(window.available()).ok_or("a flow has no length")?;
        if len > LARGEST {
            return Err("a flow is too long".to_owned());
        }
        let bytes = window.pull(digits + 1 + len + 1).map_err(io)?;
        let flow = bytes.and_then(Value::take).map(|(flow, _)| flow);
        let flow = flow.ok_or_else(|| cut("within a flow"))?;
        if flow.get("type").and_then(Value::text) == Some("http") {
            recording.take(entry(flow, &mut known));
        }
    }
}

/// The request of a flow; `None` if it has no time, or the proxy responded itself.
fn entry(flow: Value<'_>, known: &mut HashSet<Box<str>>) -> Option<Entry> {
    let request = flow.get("request")?;
    let start = request.time("timestamp_start")?;
    let mut sent = request.time("timestamp_end").unwrap_or(start);
    let mut entry = Entry::begun(start);
    let text = |key: &str| request.get(key).and_then(Value::text);
    let port = request.get("port").and_then(Value::number);
    let url = format!(
        "{}://{}:{}{}",
        text("scheme")?,
        text("host")?,
        port?,
        text("path").unwrap_or("/")
    );
    entry.set_request(Some(url), text("method").map(str::to_owned));
    entry.protocol = text("http_version").and_then(protocol);
    entry.agent = request.fields("user-agent").next().and_then(product);
    entry.client_closes = request.fields("connection").any(closes);
    entry.timings.send = Some(sent.saturating_sub(start));
    let server = flow.get("server_conn");
    let opened = server.and_then(|server| server.time("timestamp_start"));
    let id = server.and_then(|server| server.get("id")?.text());
    if let (Some(server), Some(opened), Some(id)) = (server, opened, id) {
        entry.id = Some(id.into());
        let peer = server.get("peername").or_else(|| server.get("ip_address"));
        let address = peer.and_then(|peer| peer.items().next()?.text());
        entry.address = address.and_then(|address| address.parse().ok());
        if known.insert(id.into()) {
            let connected = server.time("timestamp_tcp_setup").unwrap_or(opened);
            let secured = server.time("timestamp_tls_setup").unwrap_or(connected);
            let step = |from: u64, to: u64| (to > from).then(|| to - from);
            entry.timings.connect = Some(connected.saturating_sub(opened));
            entry.timings.ssl = step(connected, secured);
            if opened >= start {
                // the proxy had the request before it connected
                entry.timings.blocked = step(start, opened);
                entry.timings.send = None;
                sent = secured;
            } else {
                entry.at = start.saturating_sub(entry.timings.before_send());
            }
        }
    }
    match flow.get("response") {
        Some(response) => {
            let status = response.get("status_code").and_then(Value::number);
            entry.set_status(status.map(|status| status as u64));
            let head = response.time("timestamp_start").unwrap_or(sent);
            let end = response.time("timestamp_end").unwrap_or(head);
            entry.timings.wait = Some(head.saturating_sub(sent));
            entry.timings.receive = Some(end.saturating_sub(head));
            let fields = |name| response.fields(name);
            entry.server = server_product(fields("server").next(), fields("via").last());
            entry.server_closes = fields("connection").any(closes);
            for value in fields("keep-alive") {
                add_terms(&mut entry.terms, value);
            }
            // the proxy responded itself, for example from a script
            entry.id.is_some().then_some(entry)
        }
        None => {
            let error = flow.get("error");
            let message = error.and_then(|error| error.get("msg")?.text());
            let ended = error.and_then(|error| error.time("timestamp"));
            entry.timings.wait = ended.map(|end| end.saturating_sub(sent));
            entry.outcome = match message {
                Some("Client disconnected." | "Connection killed.") => {
                    Outcome::Failed(Failure::ClientClosed)
                }
                Some(message) => Outcome::Failed(in_words(message)),
                None => Outcome::Pending,
            };
            Some(entry)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn no_flow_is_trouble(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            detect(&bytes);
            begins_at(&bytes);
            let flow = Value { content: &bytes, kind: b'}' };
            entry(flow, &mut HashSet::new());
        }
    }
}
