//! Any bytes as the events of a NetLog. Each line is `type source id phase` in a byte each, then a
//! byte that chooses parameters, so that the fuzzer need not find out how they are spelt; a line
//! that begins with `{` is an event as it stands.
#![no_main]

use intact_audit::{Audit, Input, InputOptions, KeyLog, Options};
use intact_ledger::{Event, Sink};
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;
use std::io::Cursor;
use std::path::Path;

const EVENTS: [&str; 26] = [
    "REQUEST_ALIVE",
    "URL_REQUEST_START_JOB",
    "HTTP_STREAM_REQUEST",
    "HTTP_STREAM_REQUEST_BOUND_TO_JOB",
    "HTTP_TRANSACTION_SEND_REQUEST",
    "HTTP_TRANSACTION_SEND_REQUEST_HEADERS",
    "HTTP_TRANSACTION_READ_RESPONSE_HEADERS",
    "HTTP_TRANSACTION_READ_BODY",
    "HTTP_STREAM_JOB",
    "SOCKET_POOL_BOUND_TO_SOCKET",
    "HTTP2_SESSION_POOL_FOUND_EXISTING_SESSION",
    "HTTP2_SESSION_INITIALIZED",
    "HTTP2_SESSION_RECV_GOAWAY",
    "HTTP2_SESSION_RECV_SETTING",
    "QUIC_SESSION",
    "HTTP_STREAM_JOB_BOUND_TO_QUIC_SESSION",
    "SOCKET_POOL_CONNECT_JOB_CREATED",
    "CONNECT_JOB",
    "SOCKET_ALIVE",
    "TCP_CONNECT",
    "SSL_CONNECT",
    "SOCKET_BYTES_SENT",
    "SOCKET_BYTES_RECEIVED",
    "SOCKET_READ_ERROR",
    "SOCKET_POOL_CLOSING_SOCKET",
    "OTHER",
];
const SOURCES: [&str; 6] = [
    "URL_REQUEST",
    "HTTP_STREAM_JOB",
    "SOCKET",
    "HTTP2_SESSION",
    "QUIC_SESSION",
    "SSL_CONNECT_JOB",
];
const PARAMS: [&str; 8] = [
    "null",
    r#"{"url":"https://a.example/x","method":"GET"}"#,
    r#"{"source_dependency":{"id":1}}"#,
    r#"{"source_dependency":{"id":2}}"#,
    r#"{"net_error":-105}"#,
    r#"{"headers":["HTTP/1.1 200 OK","Connection: close","Keep-Alive: timeout=5"]}"#,
    r#"{"group_id":"pm/https://a.example <x>"}"#,
    r#"{"local_address":"127.0.0.1:1","remote_address":"127.0.0.1:2","cipher_suite":4865,"next_proto":"h2","version":"TLS 1.3","byte_count":7}"#,
];

/// Holds what comes to what is true of every stream of events.
#[derive(Default)]
struct Strict {
    open: HashSet<u64>,
    over: HashSet<u64>,
}

impl Sink for Strict {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Opened(one) => assert!(self.open.insert(one.id.0)),
            Event::Revised(one) => assert!(self.open.contains(&one.id.0)),
            Event::Closed(end) => {
                assert!(self.open.contains(&end.connection.0));
                assert!(self.over.insert(end.connection.0), "closed twice");
            }
            Event::Exchange(one) => {
                assert!(one.end >= one.at);
                let known = |id: intact_ledger::ConnectionId| {
                    self.open.contains(&id.0) && !self.over.contains(&id.0)
                };
                assert!(one.connection.is_none_or(known));
                for phase in intact_ledger::Phase::ALL {
                    if let Some(span) = one.spans.of(phase) {
                        assert!(span.start >= one.at && span.end <= one.end, "{one:?}");
                    }
                }
            }
            _ => {}
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let numbered = |names: &[&str]| {
        let all: Vec<String> = names
            .iter()
            .enumerate()
            .map(|(at, name)| format!("\"{name}\":{at}"))
            .collect();
        all.join(",")
    };
    let mut file = format!(
        "{{\"constants\":{{\"logEventTypes\":{{{}}},\"logSourceType\":{{{}}},\"timeTickOffset\":\"1000\",\"netError\":{{\"ERR_NAME_NOT_RESOLVED\":-105}}}},\n\"events\": [\n",
        numbered(&EVENTS),
        numbered(&SOURCES)
    )
    .into_bytes();
    for (at, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        match line {
            [b'{', ..] => file.extend(line),
            [kind, source, id, phase, params, ..] => file.extend(
                format!(
                    "{{\"params\":{},\"phase\":{},\"source\":{{\"id\":{},\"type\":{}}},\"time\":\"{at}\",\"type\":{}}},",
                    PARAMS[usize::from(*params) % PARAMS.len()],
                    phase % 3,
                    id % 8,
                    usize::from(*source) % SOURCES.len(),
                    usize::from(*kind) % EVENTS.len(),
                )
                .into_bytes(),
            ),
            _ => continue,
        }
        file.push(b'\n');
    }
    let input = Input::from_reader(
        Path::new("fuzz"),
        Box::new(Cursor::new(file)),
        None,
        &InputOptions::default(),
    );
    let Ok(input) = input else { return };
    let mut audit = Audit::new(Options {
        keys: KeyLog::default(),
        ladder: None,
        random: [7; 32],
        base: 0,
    });
    let mut strict = Strict::default();
    let _ = audit.read(input, &mut strict, &mut || true);
    audit.finish(&mut strict);
});
