//! A connection under observation: any bytes of both sides, at any times, with holes. No panic, the
//! connection is opened once and before its exchanges, and ids are unique.
//!
//! A mutation of bytes seldom leaves a record or a frame whole. So a connection may begin with a
//! handshake of rustls, and a piece may be records of given lengths or a frame of HTTP/2.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/wire/tests/it/tls/tape.rs"]
mod tape;

use intact_ledger::{CloseKind, Connection, ConnectionId, Event, FingerprintKey, Nanos, Span};
use intact_observe::{Ending, ObservedConnection, RunContext, Side, TlsReading};
use intact_wire::h2::PREFACE;
use intact_wire::tls::decrypt::KeyLog;
use libfuzzer_sys::fuzz_target;
use rustls::version::{TLS12, TLS13};
use std::collections::HashSet;
use std::sync::OnceLock;
use tape::{Pair, Setup, Tape};

/// Checks the rows as they come.
struct Run {
    key: FingerprintKey,
    next: u64,
    is_opened: bool,
    ids: HashSet<u64>,
}

impl RunContext for Run {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Opened(_) => assert!(!std::mem::replace(&mut self.is_opened, true)),
            Event::Revised(_) | Event::Closed(_) => assert!(self.is_opened),
            Event::Exchange(exchange) => {
                assert!(self.is_opened && self.ids.insert(exchange.id));
                assert!(exchange.at <= exchange.end);
            }
            _ => {}
        }
    }

    fn next_exchange(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn fingerprint_key(&self) -> &FingerprintKey {
        &self.key
    }

    fn add_secrets(&mut self, _: &[u8; 32], _: &mut KeyLog) -> bool {
        false
    }
}

/// The flights of a handshake of TLS 1.2 and of TLS 1.3.
fn handshakes() -> &'static [Tape; 2] {
    static HANDSHAKES: OnceLock<[Tape; 2]> = OnceLock::new();
    HANDSHAKES.get_or_init(|| {
        [&TLS12, &TLS13].map(|version| {
            let mut tape = Pair::new(&Setup::new(version)).talk();
            // two flights of each side
            tape.pieces.truncate(4);
            tape
        })
    })
}

/// What a side sends, of the bytes of a piece.
fn payload(form: u8, bytes: Vec<u8>) -> Vec<u8> {
    let record = |kind: u8, len: u16| [&[kind, 3, 3][..], &len.to_be_bytes()].concat();
    match form % 8 {
        // an encrypted record for each byte, as long as the byte says
        1 | 2 => {
            let records = bytes.iter().take(64).map(|&len| {
                let mut whole = record(23, len.into());
                whole.resize(whole.len() + usize::from(len), 0);
                whole
            });
            records.collect::<Vec<_>>().concat()
        }
        // one record of any type
        3 => {
            let bytes = &bytes[..bytes.len().min(16 * 1024)];
            [&record(20 + form / 8 % 5, bytes.len() as u16)[..], bytes].concat()
        }
        // a frame on one of the first streams
        4 | 5 => {
            let bytes = &bytes[..bytes.len().min(16 * 1024)];
            let [.., high, low] = bytes.len().to_be_bytes();
            let (kind, stream) = (form / 8 % 10, bytes.first().map_or(0, |byte| byte % 8));
            [&[0, high, low, kind, 5, 0, 0, 0, stream][..], bytes].concat()
        }
        6 => [&PREFACE[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0], &bytes].concat(),
        _ => bytes,
    }
}

/// What is decided before the first byte: late, secrets are awaited, requests are inferred, the end
/// is observed.
type Setting = [bool; 4];
/// What a side sends after this number of microseconds, and what follows: a hole, a FIN or a RST.
/// The form is that of [`payload`].
type Piece = (bool, u8, Vec<u8>, u16, u8);

fuzz_target!(|data: (Setting, u8, Vec<Piece>)| {
    let ([is_late, expects_secrets, infers_requests, is_whole], start, pieces) = data;
    let mut run = Run {
        key: FingerprintKey::new(&[7; 32]),
        next: 0,
        is_opened: false,
        ids: HashSet::new(),
    };
    let reading = TlsReading {
        expects_secrets,
        infers_requests,
        process: None,
    };
    let about = Connection::new(ConnectionId(1), Nanos(0));
    let mut observed = ObservedConnection::new(about, is_late, reading);
    let mut at = Nanos(1_000);
    if !is_late {
        observed.establish(Span::new(Nanos(0), at));
        observed.hear_client();
    }
    if let Some(handshake) = handshakes().get(usize::from(start % 4)) {
        for (side, bytes) in &handshake.pieces {
            at = at.after(1_000);
            observed.read(*side, bytes, at, &mut run);
        }
    }
    for (is_client, form, bytes, later_us, then) in pieces {
        let from = if is_client {
            Side::Client
        } else {
            Side::Server
        };
        at = at.after(u64::from(later_us) * 1_000);
        observed.read(from, &payload(form, bytes), at, &mut run);
        match then {
            250.. => observed.lose(from, u64::from(then), at, &mut run),
            249 => observed.end(from, CloseKind::Fin, at, &mut run),
            248 => observed.end(from, CloseKind::Rst, at, &mut run),
            247 => observed.tick(at, &mut run),
            _ => {}
        }
    }
    let ending = if is_whole {
        Ending::Observed
    } else {
        Ending::Unobserved
    };
    observed.finish(at, ending, &mut run);
});
