//! The socket over which tests open windows. A connection to it is a window: an empty line opens
//! it, `end` ends it, and the end of the connection closes it without a verdict. Replies are a word
//! (`open`, `passed`, `failed`, `error`) on a line, then text.
//!
//! The socket is in a folder that only this user can enter, and its path is in the program's
//! environment.

use super::judge::judge;
use super::request::{Begin, next_line};
use super::{Order, Orders};
use crate::system::{self, Channel, Listener};
use anyhow::{Context, bail};
use intact_ledger::private_file;
use intact_units::foreign_text::escape_lines;
use intact_watch::Marker;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufReader, Write};
use std::path::PathBuf;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The variable that has the path of the socket.
const VARIABLE: &str = "INTACT_CONTROL";
/// How long the relay may take for a mark; it waits for keys for 2 s.
const LONGEST: Duration = Duration::from_secs(30);
/// How long the end of a window may be on its way when the next one is asked for.
const END_ON_ITS_WAY: Duration = Duration::from_millis(200);
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// The socket, until the run is over.
pub(in crate::cmd::watch) struct Control {
    folder: PathBuf,
    orders: Orders,
    marker: Marker,
}

impl Control {
    /// Listens. To be called with signals blocked, as the threads that serve tests inherit that.
    pub(in crate::cmd::watch) fn start() -> anyhow::Result<Control> {
        if !cfg!(target_os = "linux") {
            bail!("--windows needs Linux, as `watch` does: run it in a container");
        }
        let folder = std::env::temp_dir().join(format!("intact-{:016x}", random()?));
        let made = private_file::create_folder(&folder);
        made.with_context(|| format!("--windows: {}", folder.display()))?;
        let control = Control {
            folder,
            orders: Orders::default(),
            marker: Marker::default(),
        };
        let path = control.path();
        let listener = Listener::bind(&path)
            .with_context(|| format!("--windows: cannot listen on {}", path.display()))?;
        let (orders, marker) = (control.orders.clone(), control.marker.clone());
        thread::Builder::new()
            .name("windows".to_owned())
            .spawn(move || serve(&listener, &orders, &marker))
            .context("--windows: a thread")?;
        Ok(control)
    }

    /// The variable for the program.
    pub(in crate::cmd::watch) fn environment(&self) -> (OsString, OsString) {
        (VARIABLE.into(), self.path().into())
    }

    /// What requests marks of the run.
    pub(in crate::cmd::watch) fn marker(&self) -> Marker {
        self.marker.clone()
    }

    /// What tests ask for.
    pub(in crate::cmd::watch) fn orders(&self) -> Orders {
        self.orders.clone()
    }

    fn path(&self) -> PathBuf {
        self.folder.join("control")
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.path());
        let _ = fs::remove_dir(&self.folder);
    }
}

fn random() -> anyhow::Result<u64> {
    let key = crate::cmd::run_header::fingerprint_key()?;
    Ok(key
        .iter()
        .fold(0, |all, byte| (all << 8) ^ u64::from(*byte)))
}

/// Serves each connection on a thread of its own.
fn serve(listener: &Listener, orders: &Orders, marker: &Marker) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        let session = Session {
            orders: orders.clone(),
            marker: marker.clone(),
        };
        let begun = thread::Builder::new()
            .name("window".to_owned())
            .spawn(move || session.serve(&stream));
        // without a thread the test sees the end of its connection
        drop(begun);
    }
}

/// One connection.
struct Session {
    orders: Orders,
    marker: Marker,
}

impl Session {
    fn serve(&self, stream: &Channel) -> io::Result<()> {
        let mut lines = BufReader::new(stream);
        let Some(begin) = Begin::read(&mut lines)? else {
            return Ok(());
        };
        let begun = begin.and_then(|begin| Ok((self.begin(&begin, stream)?, begin)));
        let (window, begin) = match begun {
            Ok(begun) => begun,
            Err(error) => return send(stream, "error", &error),
        };
        let ended = send(stream, "open", "").and_then(|()| next_line(&mut lines));
        if !matches!(&ended, Ok(Some(line)) if line == "end") {
            self.order(Order::Drop { window });
            return ended.map(drop);
        }
        let (reply, facts) = mpsc::channel();
        self.order(Order::End { window, reply });
        let Ok(facts) = facts.recv_timeout(LONGEST) else {
            return send(stream, "error", &gone());
        };
        let (passed, text) = judge(&begin, &facts);
        self.orders.has_passed.fetch_or(passed, Ordering::Relaxed);
        send(stream, if passed { "passed" } else { "failed" }, &text)
    }

    /// Opens a window for the process at the other end; its mark. A test that failed a moment ago
    /// has ended its own window, which another thread may not have read yet.
    fn begin(&self, begin: &Begin, stream: &Channel) -> Result<u64, String> {
        let process = system::peer_process(stream)
            .map_err(|error| format!("the process of the window is unknown: {error}"))?;
        let until = Instant::now() + END_ON_ITS_WAY;
        loop {
            match self.begin_for(process, begin) {
                Err(_) if Instant::now() < until => thread::sleep(BETWEEN_TRIES),
                begun => return begun,
            }
        }
    }

    fn begin_for(&self, process: u32, begin: &Begin) -> Result<u64, String> {
        let (reply, begun) = mpsc::channel();
        let window = self.order(Order::Begin {
            name: begin.name.clone(),
            process,
            reply,
        });
        begun.recv_timeout(LONGEST).map_err(|_| gone())??;
        Ok(window)
    }

    /// Has something done at a new mark; its number.
    fn order(&self, order: Order) -> u64 {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let waiting = self.orders.waiting.lock();
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        waiting.insert(number, order);
        drop(waiting);
        self.marker.request(number);
        number
    }
}

fn gone() -> String {
    "intact does not record any more: its relay has ended".to_owned()
}

/// Sends a word, and a text that ends with the connection.
fn send(mut stream: &Channel, word: &str, text: &str) -> io::Result<()> {
    let reply = format!("{word}\n{}", escape_lines(text));
    stream.write_all(reply.as_bytes())
}
