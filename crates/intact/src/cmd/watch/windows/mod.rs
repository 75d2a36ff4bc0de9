//! `--windows`: tests of the watched program judge the part of the run that they cause (`kits/`).
//!
//! A test opens a window over a socket (`control`), which only the watched program can know of. The
//! window has the connections of the process that opened it, and of its descendants. The relay
//! completes the record at its begin and at its end, and the requirements are evaluated as at the
//! end of a run. Must not conclude: `findings` does.

mod control;
mod judge;
mod request;

pub(super) use control::Control;

use crate::cmd::observing::Observing;
use crate::system;
use intact_ledger::{Caveat, ConnectionId, Event, Sink};
use intact_traffic::{ObservedFacts, TrafficAnalysis, Window};
use intact_units::plural::counted;
use intact_watch::{Mark, WatchSink};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

/// Caveats that come at the end of a run, about connections of any time in it.
const LATE: [&str; 3] = ["unwatched-unseen", "observer-fault", "kernel-differs"];

/// What a test asks for, to be done at a mark.
enum Order {
    /// Open a window for this process.
    Begin {
        name: String,
        process: u32,
        reply: Sender<Result<(), String>>,
    },
    /// Close the window that was opened at this mark, and give its facts.
    End {
        window: u64,
        reply: Sender<ObservedFacts>,
    },
    /// Close it without facts.
    Drop { window: u64 },
}

/// The orders that wait for their marks, by the number of the mark.
#[derive(Clone, Default)]
pub(super) struct Orders {
    waiting: Arc<Mutex<BTreeMap<u64, Order>>>,
    /// A window has passed.
    has_passed: Arc<AtomicBool>,
}

impl Orders {
    fn take(&self, mark: u64) -> Option<Order> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(&mark)
    }
}

/// Records the run, and keeps the windows that are open.
pub(super) struct Windows<'a> {
    recording: &'a mut Observing<TrafficAnalysis>,
    /// `None` where no window can be opened.
    orders: Option<Orders>,
    open: Vec<OpenWindow>,
    /// The processes of the connections that are open.
    owners: HashMap<ConnectionId, u32>,
    /// What a late caveat says.
    late: Option<String>,
}

/// A window.
struct OpenWindow {
    /// The mark of its begin.
    mark: u64,
    name: String,
    process: u32,
    window: Window,
    /// Whether processes are in it.
    processes: HashMap<u32, bool>,
    /// Connections without the relay at its begin.
    not_relayed: Option<u64>,
}

impl<'a> Windows<'a> {
    /// Records into `recording`; `orders` come from [`Control`].
    pub(super) fn new(
        recording: &'a mut Observing<TrafficAnalysis>,
        orders: Option<Orders>,
    ) -> Windows<'a> {
        Windows {
            recording,
            orders,
            open: Vec::new(),
            owners: HashMap::new(),
            late: None,
        }
    }

    /// What was found out of the whole run so far.
    #[cfg_attr(
        not(all(feature = "live", unix)),
        allow(dead_code, reason = "only the live view asks")
    )]
    pub(super) fn facts(&self) -> ObservedFacts {
        self.recording.fold().facts()
    }

    /// What the run lacks according to its end, if a window has passed without regard to it.
    pub(super) fn finish(self) -> Option<String> {
        let has_passed = self.orders?.has_passed.load(Ordering::Relaxed);
        self.late.filter(|_| has_passed)
    }

    fn begin(&mut self, mark: &Mark, name: String, process: u32) -> Result<(), String> {
        let is_related = |other: &&OpenWindow| {
            // one that has ended opens no connection any more
            let descends = |one, of| system::descends_from(one, of) == Some(true);
            descends(process, other.process) || descends(other.process, process)
        };
        if let Some(other) = self.open.iter().find(is_related) {
            return Err(format!(
                "the window `{}` is open in process {}: a connection cannot be assigned to one of two windows; run these tests in turn, or in separate processes",
                other.name, other.process
            ));
        }
        self.open.push(OpenWindow {
            mark: mark.number,
            name,
            process,
            window: Window::begin(self.recording.fold(), mark.at),
            processes: HashMap::new(),
            not_relayed: mark.not_relayed,
        });
        Ok(())
    }

    fn close(&mut self, window: u64) -> Option<OpenWindow> {
        let at = self.open.iter().position(|one| one.mark == window)?;
        Some(self.open.swap_remove(at))
    }
}

impl OpenWindow {
    /// Whether connections of this process belong to the window; an unknown process may.
    fn has(&mut self, process: Option<u32>) -> bool {
        process.is_none_or(|process| {
            let of = self.process;
            let entry = self.processes.entry(process);
            *entry.or_insert_with(|| system::descends_from(process, of) != Some(false))
        })
    }

    /// Its facts, with what they lack at this mark.
    fn end(mut self, mark: &Mark) -> ObservedFacts {
        let unfinished = mark.unfinished.iter();
        let unfinished: u64 = unfinished
            .filter(|one| self.has(one.process))
            .map(|one| one.requests)
            .sum();
        if unfinished > 0 {
            let words = format!(
                "{} had no complete response at the end of the window, or could not be read",
                counted(unfinished, "request")
            );
            let caveat = Caveat::incomplete_requests("window-unfinished", words);
            self.window.record(Event::Caveat(&caveat));
        }
        let missing = match (self.not_relayed, mark.not_relayed) {
            (Some(before), Some(now)) if now == before => None,
            (Some(before), Some(now)) => Some(format!(
                "the program made {} without the relay",
                counted(now - before, "connection")
            )),
            _ => Some("the program makes its connections without the relay".to_owned()),
        };
        if let Some(words) = missing {
            let caveat = Caveat::incomplete("window-not-relayed", words);
            self.window.record(Event::Caveat(&caveat));
        }
        self.window.facts()
    }
}

impl Sink for Windows<'_> {
    fn record(&mut self, event: Event<'_>) {
        self.recording.record(event);
        if self.orders.is_none() {
            return;
        }
        let connection = match event {
            Event::Opened(connection) | Event::Revised(connection) => {
                if let Some(owner) = &connection.owner {
                    self.owners.insert(connection.id, owner.pid);
                }
                Some(connection.id)
            }
            Event::Exchange(exchange) => exchange.connection,
            Event::Closed(closed) => Some(closed.connection),
            Event::Caveat(caveat) if LATE.contains(&caveat.id.as_str()) => {
                self.late.get_or_insert_with(|| caveat.message.clone());
                None
            }
            _ => None,
        };
        let owner = connection.and_then(|id| self.owners.get(&id).copied());
        for one in &mut self.open {
            if one.has(owner) {
                one.window.record(event);
            }
        }
        if let Event::Closed(closed) = event {
            self.owners.remove(&closed.connection);
        }
    }
}

impl WatchSink for Windows<'_> {
    fn tick(&mut self) {
        self.recording.tick();
    }

    fn mark(&mut self, mark: &Mark) {
        // who asked may have gone
        let order = self.orders.as_ref();
        match order.and_then(|orders| orders.take(mark.number)) {
            Some(Order::Begin {
                name,
                process,
                reply,
            }) => {
                let begun = self.begin(mark, name, process);
                let _ = reply.send(begun);
            }
            Some(Order::End { window, reply }) => {
                if let Some(one) = self.close(window) {
                    let _ = reply.send(one.end(mark));
                }
            }
            Some(Order::Drop { window }) => drop(self.close(window)),
            None => {}
        }
    }
}
