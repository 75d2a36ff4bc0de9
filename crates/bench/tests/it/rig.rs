//! Scripted servers on loopback, and a bench in a few words.

use intact_bench::{Bench, BenchObserver, Coalesce, Config, IoChoice, Length, Position, RowPolicy};
use intact_client::Clock;
use intact_experiment::Axes;
use intact_ledger::{Group, Row, Rows, Tally};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Collects everything.
#[derive(Default)]
pub(crate) struct Everything {
    pub(crate) rows: Vec<Row>,
}

impl BenchObserver for Everything {
    fn rows(&mut self, rows: &[Row]) {
        self.rows.extend_from_slice(rows);
    }
    fn tick(&mut self, _: Position) {}
}

/// Set for the run of all tests on io_uring, see `back_ends.rs`.
pub(crate) const ON_URING: &str = "INTACT_TEST_URING";

/// The back end of the tests.
pub(crate) fn io() -> IoChoice {
    match std::env::var_os(ON_URING) {
        None => IoChoice::Epoll,
        Some(_) => IoChoice::Uring,
    }
}

/// How long a request may take. Wine passes each call on sockets through one process, which is slow
/// on a busy machine.
pub(crate) const PATIENCE: Duration =
    Duration::from_millis(if cfg!(windows) { 5_000 } else { 500 });

/// A small bench of one URL: keep-alive on, 20 requests in 2 rounds.
pub(crate) fn config(url: &str) -> Config {
    Config {
        length: Length::Exchanges(20),
        rounds: Some(2),
        seed: 7,
        timeout: PATIENCE,
        coalesce: Coalesce::Always,
        io: io(),
        keep: RowPolicy::Ledger(Rows::All),
        ..Config::new(url.to_owned(), Axes::default())
    }
}

/// What a bench recorded.
pub(crate) struct Record {
    pub(crate) tally: Tally,
    pub(crate) rows: Vec<Row>,
}

impl Record {
    /// Exchanges that went well, and failed ones by kind; warm-up included.
    pub(crate) fn outcomes(&self) -> (u64, Vec<(String, u64)>) {
        let mut ok = 0;
        let mut failed: Vec<(String, u64)> = Vec::new();
        for group in self.groups() {
            match group.key.outcome.failure() {
                None => ok += group.count(),
                Some(kind) => match failed.iter_mut().find(|(id, _)| id == kind.id()) {
                    Some((_, count)) => *count += group.count(),
                    None => failed.push((kind.id().to_owned(), group.count())),
                },
            }
        }
        (ok, failed)
    }

    fn groups(&self) -> impl Iterator<Item = &Group> {
        self.tally.cells.iter().flat_map(|cell| &cell.groups)
    }

    /// Connections opened.
    pub(crate) fn opened(&self) -> u64 {
        self.tally
            .cells
            .iter()
            .map(|cell| cell.connections.opened)
            .sum()
    }

    /// Connections that ended, by who ended them.
    pub(crate) fn ended_by(&self, by: intact_ledger::EndedBy) -> u64 {
        self.tally
            .cells
            .iter()
            .filter_map(|cell| cell.connections.ended_by.get(&by))
            .sum()
    }
}

/// Runs a bench to its end.
pub(crate) fn run(config: Config) -> Record {
    let bench = Bench::new(config).unwrap();
    let mut everything = Everything::default();
    let tally = bench.run(Clock::start(), &mut everything).unwrap();
    Record {
        tally,
        rows: everything.rows,
    }
}

/// What a scripted server does with a connection; `u64` is its number, from 0.
pub(crate) type Script = dyn Fn(TcpStream, u64, &Counts) + Send + Sync;

/// What a scripted server saw.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) connections: AtomicU64,
    pub(crate) requests: AtomicU64,
}

/// A server that runs a script for each connection, in a thread of its own that ends with the test
/// process.
pub(crate) fn server(script: Box<Script>) -> (SocketAddr, Arc<Counts>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let counts = Arc::new(Counts::default());
    let seen = counts.clone();
    let script: Arc<Script> = script.into();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let number = seen.connections.fetch_add(1, Ordering::SeqCst);
            let (script, seen) = (script.clone(), seen.clone());
            thread::spawn(move || script(stream, number, &seen));
        }
    });
    (address, counts)
}

/// Reads one request head; `None` at the end of the stream.
pub(crate) fn request(stream: &mut TcpStream, counts: &Counts) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return None,
        }
    }
    counts.requests.fetch_add(1, Ordering::SeqCst);
    Some(String::from_utf8(head).unwrap())
}

/// Sends bytes; a client that has gone does not matter here.
pub(crate) fn send(stream: &mut TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes);
}

/// A plain answer.
pub(crate) const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
