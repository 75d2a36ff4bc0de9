//! A whole `check` against a server that plays any script: it comes to its end within its budget,
//! in bounded time, without panic.
//!
//! The first byte chooses the options of the check. What follows are parts that are separated by
//! 0x1e, for a connection each: those that begin with 0x02 for connections that speak HTTP/2, the
//! others for the rest, both in turn. A part has responses that are separated by 0x1f. The server
//! writes one for each read, then closes. A response that ends in 0x18 resets the connection.
#![no_main]

use intact_check::{Check, CheckProgress, Config, ProbeKind, ServerProfile};
use intact_client::Clock;
use intact_client::tls::Verify;
use intact_fuzz::mutate_text;
use intact_ledger::{Event, Protocol};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long the check waits for a response.
const TIMEOUT: Duration = Duration::from_millis(60);
/// How long the server waits for a request before it goes on with its script.
const PATIENCE: Duration = Duration::from_millis(4);
/// No hang: far more than all waits of one check together.
const HANG: Duration = Duration::from_secs(20);
/// Connections that a script has parts for.
const PARTS: usize = 16;

type Part = Vec<Vec<u8>>;

/// What the server plays now: the parts for HTTP/2 and for other connections, and the number of the
/// next connection.
static SCRIPT: Mutex<([Vec<Part>; 2], usize)> = Mutex::new(([Vec::new(), Vec::new()], 0));

fuzz_mutator!(|data: &mut [u8], size: usize, room: usize, seed: u32| {
    mutate_text(data, size, room, seed)
});

fuzz_target!(|data: &[u8]| {
    static SERVER: OnceLock<SocketAddr> = OnceLock::new();
    let Some((&how, rest)) = data.split_first() else {
        return;
    };
    let address = *SERVER.get_or_init(start);
    let mut parts = [Vec::new(), Vec::new()];
    for part in rest.split(|byte| *byte == 0x1e).take(PARTS) {
        let http2 = part.strip_prefix(&[0x02]);
        let responses = http2
            .unwrap_or(part)
            .split(|byte| *byte == 0x1f)
            .map(<[u8]>::to_vec);
        parts[usize::from(http2.is_none())].push(responses.collect());
    }
    *SCRIPT.lock().unwrap_or_else(PoisonError::into_inner) = (parts, 0);

    let scheme = if how & 2 == 0 { "http" } else { "https" };
    let mut config = Config::new(&format!("{scheme}://{address}/")).expect("an address");
    config.timeout = TIMEOUT;
    config.max_time = Duration::from_secs(1);
    config.idle = how & 4 != 0;
    config.idle_limit = Duration::from_millis(20);
    config.http = Some(if how & 1 == 0 {
        Protocol::Http11
    } else {
        Protocol::Http2
    });
    config.follow = how & 8 != 0;
    config.credentials.verify = Verify::Insecure;
    let check = Check::new(config).expect("a configuration");
    let mut rows = Rows::default();
    let begun = Instant::now();
    let profile = check
        .run(Clock::start(), None, &mut rows)
        .expect("an event loop");
    assert!(begun.elapsed() < HANG, "{:?}", begun.elapsed());
    assert!(profile.requests_sent <= check.budget().requests());
    assert_eq!(profile.requests_sent as usize, rows.exchanges.len());
});

/// Checks the rows as they come.
#[derive(Default)]
struct Rows {
    opened: HashSet<u64>,
    closed: HashSet<u64>,
    exchanges: HashSet<u64>,
}

impl CheckProgress for Rows {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Opened(connection) => assert!(self.opened.insert(connection.id.0)),
            Event::Closed(closed) => {
                assert!(self.opened.contains(&closed.connection.0));
                assert!(self.closed.insert(closed.connection.0), "closed twice");
            }
            Event::Exchange(exchange) => {
                assert!(self.exchanges.insert(exchange.id));
                assert!(exchange.at <= exchange.end);
            }
            _ => {}
        }
    }
    fn stage(&mut self, _: ProbeKind, _: &ServerProfile) {}
    fn waiting(&mut self, _: Duration) {}
    fn stopped(&self) -> bool {
        false
    }
}

fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("a port");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || play(stream));
        }
    });
    address
}

/// Plays a part on a connection. An error ends it, as a peer's end would.
fn play(mut stream: TcpStream) -> Option<()> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_nodelay(true).ok()?;
    let mut buffer = [0; 4096];
    let mut read = stream.read(&mut buffer);
    let is_http2 = read
        .as_ref()
        .is_ok_and(|&count| buffer[..count].starts_with(b"PRI "));
    let part = {
        let mut script = SCRIPT.lock().unwrap_or_else(PoisonError::into_inner);
        let (parts, next) = &mut *script;
        *next += 1;
        let parts = &parts[usize::from(!is_http2)];
        parts.get(*next % parts.len().max(1))?.clone()
    };
    for response in part {
        if let Some(response) = response.strip_suffix(&[0x18]) {
            stream.write_all(response).ok()?;
            return socket2::SockRef::from(&stream)
                .set_linger(Some(Duration::ZERO))
                .ok();
        }
        stream.write_all(&response).ok()?;
        if matches!(read, Ok(0)) {
            return None;
        }
        read = stream.read(&mut buffer);
    }
    let _ = stream.shutdown(std::net::Shutdown::Write);
    while matches!(stream.read(&mut buffer), Ok(1..)) {}
    Some(())
}
