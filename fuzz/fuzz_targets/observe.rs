//! A connection under observation: any bytes of both sides, at any times, with holes. No panic, the connection is opened once
//! and before its exchanges, and ids are unique.
#![no_main]

use intact_ledger::{CloseKind, Connection, ConnectionId, Event, FingerprintKey, Nanos, Span};
use intact_observe::{Ending, ObservedConnection, RunContext, Side, TlsReading};
use intact_wire::tls::decrypt::KeyLog;
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;

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

/// What is decided before the first byte: late, secrets are awaited, requests are inferred, the end is observed.
type Setting = [bool; 4];
/// Bytes of a side after so many microseconds, and what follows them: a hole, a FIN or a RST.
type Piece = (bool, Vec<u8>, u16, u8);

fuzz_target!(|data: (Setting, Vec<Piece>)| {
    let ([is_late, expects_secrets, infers_requests, is_whole], pieces) = data;
    let mut run = Run {
        key: FingerprintKey::new(&[7; 32]),
        next: 0,
        is_opened: false,
        ids: HashSet::new(),
    };
    let reading = TlsReading { expects_secrets, infers_requests, process: None };
    let about = Connection::new(ConnectionId(1), Nanos(0));
    let mut observed = ObservedConnection::new(about, is_late, reading);
    let mut at = Nanos(1_000);
    if !is_late {
        observed.establish(Span::new(Nanos(0), at));
        observed.hear_client();
    }
    for (is_client, bytes, later_us, then) in pieces {
        let from = if is_client { Side::Client } else { Side::Server };
        at = at.after(u64::from(later_us) * 1_000);
        observed.read(from, &bytes, at, &mut run);
        match then {
            250.. => observed.lose(from, u64::from(then), at, &mut run),
            249 => observed.end(from, CloseKind::Fin, at, &mut run),
            248 => observed.end(from, CloseKind::Rst, at, &mut run),
            247 => observed.tick(at, &mut run),
            _ => {}
        }
    }
    let ending = if is_whole { Ending::Observed } else { Ending::Unobserved };
    observed.finish(at, ending, &mut run);
});
