//! Observes the connections of an environment. A *watcher* process starts the function's process,
//! follows it with `watch`, and sends each row of the ledger to the platform over a socket.
//!
//! The watcher is a separate process because `watch` takes over the signals of its process. It is
//! not frozen with the function. Data that it relays waits in the function's sockets, as without a
//! watcher.

use super::freezer;
use intact_ledger::{Caveat, Event, Row, Sink};
use intact_sys::timer;
use intact_watch::{
    Clock, CodeReading, Config, Ended, FaultConfig, KeyLogging, Mode, Numbers, RunPosition,
    WatchError, WatchSink,
};
use rustix::process::getpid;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Size of the range of row ids that each environment has.
const NUMBERS: u64 = 1 << 32;

/// The first message to a watcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WatcherConfig {
    /// The start of the run on CLOCK_MONOTONIC, which all processes share.
    pub(crate) start: Duration,
    pub(crate) environment: u64,
    pub(crate) variant: u32,
    pub(crate) round: u32,
    /// The Runtime API: only our own connection.
    pub(crate) apart: SocketAddr,
    pub(crate) fingerprint_key: [u8; 32],
    pub(crate) code_root: Option<PathBuf>,
    pub(crate) fault: Option<FaultConfig>,
}

/// A message of a watcher.
#[derive(Debug, Serialize, Deserialize)]
enum WatcherMessage {
    Row(Box<Row>),
    Ended(Ended),
    NotRun(NotRun, String),
}

/// Why it was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NotRun {
    NotFound,
    NotRunnable,
    Refused,
    Failed,
}

/// The final state of a watcher.
#[derive(Debug, Default)]
pub(crate) struct WatcherSummary {
    pub(crate) how: Option<Ended>,
    pub(crate) not_run: Option<(NotRun, String)>,
}

/// Reads the messages of an environment's watcher until it ends. One that was killed leaves a
/// caveat.
pub(crate) fn listen(stream: impl Read, environment: u64, rows: &Sender<Row>) -> WatcherSummary {
    let mut last = WatcherSummary::default();
    let mut unread = 0u64;
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        // an empty line asks whether we are still there
        if line.is_empty() {
            continue;
        }
        match serde_json::from_str(&line) {
            Ok(WatcherMessage::Row(row)) => drop(rows.send(*row)),
            Ok(WatcherMessage::Ended(how)) => last.how = Some(how),
            Ok(WatcherMessage::NotRun(why, words)) => last.not_run = Some((why, words)),
            Err(_) => unread += 1,
        }
    }
    let is_whole = last.how.is_some() || last.not_run.is_some();
    if !is_whole || unread > 0 {
        let words = format!(
            "the watcher of environment {environment} ended before it had reported everything: connections of this environment are missing"
        );
        let caveat = Caveat::incomplete("watcher-cut", words);
        drop(rows.send(Row::Caveat(caveat)));
    }
    last
}

/// The moment on CLOCK_MONOTONIC at which `start` was.
pub(crate) fn on_monotonic(start: Instant) -> Duration {
    Duration::from_nanos(timer::monotonic()).saturating_sub(start.elapsed())
}

/// Runs as the watcher: runs the command of an environment until it ends. Sends its rows to the
/// platform over standard input, which is a socket. `node_options` is what `NODE_OPTIONS` is so
/// far. Returns the exit code. The process must have a single thread.
///
/// # Errors
/// If standard input is not a socket to a platform.
pub fn follow(
    command: Vec<OsString>,
    keys: Option<KeyLogging>,
    node_options: OsString,
) -> io::Result<u8> {
    let platform = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(OwnedFd::from(std::fs::File::open("/dev/null")?))?;
    let stream = UnixStream::from(platform);
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    let given: WatcherConfig = serde_json::from_str(&line)?;
    let mut config = Config::new(command, given.fingerprint_key);
    config.keys = keys;
    config.code = given.code_root.map(|root| CodeReading {
        root,
        node_options: Some(node_options),
    });
    config.apart = Some(given.apart);
    if given.fault.is_some() {
        // a fault needs the relay, which is otherwise only preferred
        config.mode = Mode::Relay;
    }
    config.fault = given.fault;
    config.numbers = Numbers::after(given.environment * NUMBERS);
    config.place = Some(RunPosition {
        variant: given.variant,
        round: given.round,
        environment: Some(given.environment),
    });
    let ago = Duration::from_nanos(timer::monotonic()).saturating_sub(given.start);
    let now = Instant::now();
    let clock = Clock::started_at(now.checked_sub(ago).unwrap_or(now));
    let mut sender = RowSender {
        out: stream,
        alone: false,
    };
    let (last, code) = match intact_watch::run(&config, clock, &mut sender) {
        Ok(outcome) => {
            let code = match outcome.ended {
                Ended::Code(code) => code as u8,
                Ended::Signal(number) => 128_u8.wrapping_add(number as u8),
            };
            (WatcherMessage::Ended(outcome.ended), code)
        }
        Err(error) => {
            let why = match error {
                WatchError::NotFound(_) => NotRun::NotFound,
                WatchError::NotRunnable { .. } => NotRun::NotRunnable,
                WatchError::Unsupported | WatchError::Refused(_) | WatchError::Closed(..) => {
                    NotRun::Refused
                }
                WatchError::Nested
                | WatchError::Setup(..)
                | WatchError::NoProcess(_)
                | WatchError::NoSuch(_) => NotRun::Failed,
            };
            (WatcherMessage::NotRun(why, error.to_string()), 125)
        }
    };
    sender.send(&last);
    Ok(code)
}

/// Hands rows over.
struct RowSender {
    out: UnixStream,
    /// The platform has ended.
    alone: bool,
}

impl RowSender {
    fn send(&mut self, message: &WatcherMessage) {
        let Ok(mut line) = serde_json::to_vec(message) else {
            return;
        };
        line.push(b'\n');
        self.alone |= self.out.write_all(&line).is_err();
    }
}

impl Sink for RowSender {
    fn record(&mut self, event: Event<'_>) {
        self.send(&WatcherMessage::Row(Box::new(event.to_row())));
    }
}

impl WatchSink for RowSender {
    fn tick(&mut self) {
        self.alone |= self.out.write_all(b"\n").is_err();
        if self.alone {
            // the platform was killed: its functions must end with it
            freezer::end_below(getpid());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// The rows of a watcher that sent these messages, and then this text.
    fn rows(lines: &[WatcherMessage], rest: &str) -> Vec<Row> {
        let (send, rows) = mpsc::channel();
        let lines = lines.iter().map(|one| serde_json::to_string(one).unwrap());
        let text: String = lines.map(|line| line + "\n").collect();
        listen((text + rest).as_bytes(), 3, &send);
        drop(send);
        rows.iter().collect()
    }

    #[test]
    fn a_watcher_that_was_killed_leaves_an_incomplete_record() {
        let caveat = Row::Caveat(Caveat::new("one", "of the run"));
        let messages = [
            WatcherMessage::Row(Box::new(caveat.clone())),
            WatcherMessage::Ended(Ended::Code(0)),
        ];
        assert_eq!(rows(&messages, "\n"), std::slice::from_ref(&caveat));
        let not_run = [WatcherMessage::NotRun(NotRun::Refused, String::new())];
        assert!(rows(&not_run, "").is_empty());
        for rest in ["", "{\"Row\":{\"Exch"] {
            let rows = rows(&messages[..1], rest);
            assert_eq!(rows[0], caveat);
            assert!(
                matches!(&rows[1..], [Row::Caveat(one)] if one.id == "watcher-cut" && one.incomplete),
                "{rows:?}"
            );
        }
    }
}
