//! Events of the Chrome DevTools protocol: a list or lines, as puppeteer and Lighthouse keep them,
//! or inside the messages of chromedriver's performance log. Each response names its connection,
//! and whether an earlier request used it.
//!
//! Times are seconds of a monotonic clock; the first event of a request also has the time of day.

use crate::client::{DocumentFormat, Entry, Recording, Timings, syntax};
use crate::fields::{HarError, har_error, nanos_of_ms, protocol, split};
use crate::input::Stream;
use crate::lenient::Lenient;
use crate::read_buffer::ReadBuffer;
use intact_ledger::Outcome;
use intact_observe::server_product;
use intact_observe::user_agent::product;
use memchr::memmem;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::io::BufReader;

pub(crate) static FORMAT: DocumentFormat = DocumentFormat {
    name: "DevTools protocol log",
    detect,
    begins_at,
    read,
    kind: "tool",
    better: "A NetLog of the browser (chrome://net-export) shows it",
    shows_lookups: true,
};

/// Limit of requests that are open at the same time.
const MOST_OPEN: usize = 65_536;
/// Levels of messages around an event.
const LEVELS: u32 = 4;

fn detect(prefix: &[u8]) -> bool {
    let is_json = matches!(prefix.trim_ascii_start().first(), Some(b'{' | b'['));
    let names = ["Network.requestWillBeSent", "Network.responseReceived"];
    is_json
        && names
            .iter()
            .any(|name| memmem::find(prefix, name.as_bytes()).is_some())
}

fn begins_at(prefix: &[u8]) -> Option<u64> {
    const KEY: &[u8] = b"wallTime";
    let times = memmem::find_iter(prefix, KEY).filter_map(|at| {
        let value = prefix[at + KEY.len()..].iter();
        let digits: Vec<u8> = value
            .copied()
            .skip_while(|byte| b"\\\": ".contains(byte))
            .take_while(|byte| byte.is_ascii_digit() || *byte == b'.')
            .collect();
        wall(std::str::from_utf8(&digits).ok()?.parse().ok()?)
    });
    times.min()
}

/// Seconds since 1970 in nanoseconds.
fn wall(seconds: f64) -> Option<u64> {
    (0.0..9e9)
        .contains(&seconds)
        .then_some((seconds * 1e9) as u64)
}

fn read(window: &mut ReadBuffer<Stream>, recording: &mut Recording) -> Result<(), String> {
    let mut requests = Requests {
        recording,
        open: HashMap::new(),
        left: 0,
    };
    "Chrome".clone_into(&mut requests.recording.program);
    let is_list = window.available().trim_ascii_start().first() == Some(&b'[');
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(window));
    let end = if is_list {
        json.deserialize_seq(&mut requests)
    } else {
        let mut events = json.into_iter::<Event>();
        events.try_for_each(|event| {
            requests.take(event?, LEVELS);
            Ok(())
        })
    };
    requests.finish();
    end.map_err(|error: serde_json::Error| syntax(&error))
}

/// An event, or a message around one.
#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    method: Lenient,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    message: Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Params {
    request_id: Lenient,
    timestamp: Lenient,
    wall_time: Lenient,
    request: Option<Request>,
    response: Option<Response>,
    redirect_response: Option<Response>,
    encoded_data_length: Lenient,
    error_text: Lenient,
    blocked_reason: Lenient,
    canceled: Lenient,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Request {
    url: Lenient,
    method: Lenient,
    headers: HashMap<String, Lenient>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Response {
    status: Lenient,
    protocol: Lenient,
    connection_id: Lenient,
    #[serde(rename = "remoteIPAddress")]
    remote_ip_address: Lenient,
    from_disk_cache: Lenient,
    from_service_worker: Lenient,
    from_prefetch_cache: Lenient,
    encoded_data_length: Lenient,
    headers: HashMap<String, Lenient>,
    timing: Option<Timing>,
}

/// Milliseconds since `request_time`, which is in seconds; -1 where a step did not apply.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Timing {
    request_time: Lenient,
    dns_start: Lenient,
    dns_end: Lenient,
    connect_start: Lenient,
    connect_end: Lenient,
    ssl_start: Lenient,
    ssl_end: Lenient,
    send_start: Lenient,
    send_end: Lenient,
    receive_headers_end: Lenient,
}

/// A request without its end.
struct OpenRequest {
    entry: Entry,
    /// Seconds of the monotonic clock.
    begun: f64,
    /// Seconds of the monotonic clock at the end of the header section.
    head_at: Option<f64>,
    is_local: bool,
}

struct Requests<'a> {
    recording: &'a mut Recording,
    open: HashMap<String, OpenRequest>,
    /// Requests that were given up to limit memory.
    left: u64,
}

impl<'de> Visitor<'de> for &mut Requests<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(event) = list.next_element()? {
            self.take(event, LEVELS);
        }
        Ok(())
    }
}

impl Requests<'_> {
    fn take(&mut self, event: Event, levels: u32) {
        let inner = match event.message {
            Value::String(text) => serde_json::from_str(&text).ok(),
            message @ Value::Object(_) => serde_json::from_value(message).ok(),
            _ => None,
        };
        if let Some(inner) = inner
            && levels > 0
        {
            return self.take(inner, levels - 1);
        }
        let Some(name) = event.method.text() else {
            return;
        };
        let Some(kind) = name.strip_prefix("Network.") else {
            return;
        };
        let Ok(params) = serde_json::from_value::<Params>(event.params) else {
            return;
        };
        let Some(id) = params.request_id.text() else {
            return;
        };
        let at = params.timestamp.number();
        match kind {
            "requestWillBeSent" => {
                if let Some(response) = &params.redirect_response {
                    self.respond(&id, response, at);
                    self.end(&id, at, response.encoded_data_length.count());
                }
                self.begin(id, &params, at);
            }
            "requestServedFromCache" => {
                if let Some(open) = self.open.get_mut(&id) {
                    open.is_local = true;
                }
            }
            "responseReceived" => {
                if let Some(response) = &params.response {
                    self.respond(&id, response, at);
                }
            }
            "loadingFinished" => self.end(&id, at, params.encoded_data_length.count()),
            "loadingFailed" => self.fail(&id, &params, at),
            _ => {}
        }
    }

    fn begin(&mut self, id: String, params: &Params, at: Option<f64>) {
        let times = at.zip(params.wall_time.number().and_then(wall));
        let (Some((begun, wall)), Some(request)) = (times, &params.request) else {
            return;
        };
        if self.open.len() >= MOST_OPEN {
            self.left += 1;
            return;
        }
        let mut entry = Entry::begun(wall);
        let url = request.url.text();
        // data: and other schemes use no network
        let is_local = url.as_deref().and_then(split).is_none();
        entry.set_request(url, request.method.text());
        entry.agent = field(&request.headers, "user-agent").and_then(|value| product(&value));
        let open = OpenRequest {
            entry,
            begun,
            head_at: None,
            is_local,
        };
        self.open.insert(id, open);
    }

    fn respond(&mut self, id: &str, response: &Response, at: Option<f64>) {
        let Some(open) = self.open.get_mut(id) else {
            return;
        };
        let flags = [
            &response.from_disk_cache,
            &response.from_service_worker,
            &response.from_prefetch_cache,
        ];
        open.is_local |= flags.into_iter().any(Lenient::is_set);
        let entry = &mut open.entry;
        entry.set_status(response.status.count());
        entry.protocol = response.protocol.text().as_deref().and_then(protocol);
        let id = response.connection_id.count();
        // a cache responded, also where no flag shows it
        open.is_local |= id == Some(0);
        entry.id = id.map(|id| id.to_string().into());
        // Chrome also calls a connection reused that was opened ahead and carried nothing: only the
        // other requests of the file show an earlier one
        entry.address = response
            .remote_ip_address
            .text()
            .and_then(|text| text.trim_matches(['[', ']']).parse().ok());
        let server = field(&response.headers, "server");
        let via = field(&response.headers, "via");
        entry.server = server_product(server.as_deref(), via.as_deref());
        open.head_at = at;
        if let Some(timing) = &response.timing {
            let (timings, head_at) = timing.steps(open.begun);
            open.entry.timings = timings;
            open.head_at = head_at.or(at);
        }
    }

    /// Ends a request with its whole response.
    fn end(&mut self, id: &str, at: Option<f64>, bytes: Option<u64>) {
        let Some(mut open) = self.open.remove(id) else {
            return;
        };
        let ms = |from: f64| at.map(|at| nanos_of_ms((at - from) * 1e3));
        open.entry.timings.receive = open.head_at.and_then(ms);
        open.entry.time = ms(open.begun).unwrap_or(0);
        open.entry.body = bytes;
        let is_request = !open.is_local && open.entry.status.is_some();
        self.recording.take(is_request.then_some(open.entry));
    }

    fn fail(&mut self, id: &str, params: &Params, at: Option<f64>) {
        let error = params.error_text.text().unwrap_or_default();
        let error = match har_error(&error) {
            _ if params.blocked_reason.is_set() => HarError::NotSent,
            HarError::Outcome(_) if params.canceled.is_set() => HarError::Cancelled,
            error => error,
        };
        let Some(mut open) = self.open.remove(id) else {
            return;
        };
        let has_response = open.entry.status.is_some();
        let outcome = error.outcome(has_response);
        open.is_local |= outcome.is_none();
        open.entry.outcome = outcome.unwrap_or(Outcome::Unknown);
        open.entry.may_lack_connection = !has_response;
        let ms = at.map(|at| nanos_of_ms((at - open.begun) * 1e3));
        open.entry.time = ms.unwrap_or(0);
        self.recording.take((!open.is_local).then_some(open.entry));
    }

    /// Ends the requests that were open at the end of the log.
    fn finish(&mut self) {
        self.recording.seen += self.left;
        let mut open: Vec<OpenRequest> = self.open.drain().map(|(_, open)| open).collect();
        open.sort_by_key(|open| open.entry.at);
        for mut open in open {
            open.entry.outcome = Outcome::Pending;
            open.entry.may_lack_connection = open.entry.status.is_none();
            self.recording.take((!open.is_local).then_some(open.entry));
        }
    }
}

impl Timing {
    /// The steps of a request that began at `begun`, and the end of the header section in seconds.
    fn steps(&self, begun: f64) -> (Timings, Option<f64>) {
        let at = |value: &Lenient| value.number().filter(|ms| *ms >= 0.0);
        let step = |start: &Lenient, end: &Lenient| {
            let length = at(end)? - at(start)?;
            (length > 0.0).then(|| nanos_of_ms(length))
        };
        let request_time = self.request_time.number();
        let starts = [&self.dns_start, &self.connect_start, &self.send_start];
        let first = starts.into_iter().find_map(at).unwrap_or(0.0);
        let waited = request_time.map(|time| nanos_of_ms((time - begun) * 1e3 + first));
        let ssl = step(&self.ssl_start, &self.ssl_end);
        let both = step(&self.connect_start, &self.connect_end);
        let timings = Timings {
            blocked: waited.filter(|nanos| *nanos > 0),
            dns: step(&self.dns_start, &self.dns_end),
            connect: both.map(|both| both.saturating_sub(ssl.unwrap_or(0))),
            ssl,
            send: step(&self.send_start, &self.send_end),
            wait: step(&self.send_end, &self.receive_headers_end),
            receive: None,
        };
        let head = at(&self.receive_headers_end).zip(request_time);
        (timings, head.map(|(ms, time)| time + ms / 1e3))
    }
}

fn field(headers: &HashMap<String, Lenient>, name: &str) -> Option<String> {
    let named = headers
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name));
    named.and_then(|(_, value)| value.text())
}
