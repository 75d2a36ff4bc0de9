//! Marks: the record is completed up to a moment, and the sink learns of it.
//!
//! What the program has received has passed through the relay, and so it was read. What waits in
//! the sockets is read now. For a limited time a mark waits for connections that are handed over,
//! for bytes that a busy kernel has not delivered, and for keys that are searched in memory.
//! Requests that are unread then are named in it.

use super::{Relay, RelayedPair, observe};
use crate::{Mark, Unfinished};
use intact_ledger::ConnectionId;
use intact_observe::ObservedConnection;
use intact_sys::process::SocketLocation;
use intact_sys::socket;
use std::time::{Duration, Instant};

/// How long a mark waits for keys that are searched, and for connections that are handed over.
const KEYS: Duration = Duration::from_secs(2);
/// How long it waits for bytes on their way; those of a server that does not read stay there.
const BYTES: Duration = Duration::from_millis(50);
/// How often all of it is looked for meanwhile.
const PACE: Duration = Duration::from_millis(5);

/// Marks that were requested, when, and not made.
#[derive(Default)]
pub(super) struct PendingMarks(Vec<(u64, Instant)>);

impl PendingMarks {
    /// Adds a request.
    pub(super) fn add(&mut self, number: u64) {
        self.0.push((number, Instant::now()));
    }

    /// When the oldest is looked at next.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.0.is_empty()).then(|| Instant::now() + PACE)
    }
}

impl RelayedPair {
    /// Whether its program has written bytes that the relay has not read.
    fn is_awaited(&self) -> bool {
        let program = self.place.as_ref().and_then(SocketLocation::copy);
        let written = program.and_then(|program| socket::written(&program));
        written.is_some_and(|written| written > self.out.taken)
    }
}

impl Relay<'_> {
    /// Makes the marks that wait for nothing any more.
    pub(super) fn make_marks(&mut self) {
        if self.marks.0.is_empty() {
            return;
        }
        let waits = self.settle();
        let now = Instant::now();
        let pending = std::mem::take(&mut self.marks.0);
        let (due, later): (Vec<_>, Vec<_>) = pending
            .into_iter()
            .partition(|(_, requested)| now.duration_since(*requested) >= waits);
        self.marks.0 = later;
        for (number, _) in due {
            let mark = Mark {
                number,
                at: self.clock.now(),
                unfinished: self.unfinished(),
                not_relayed: self.orders.not_relayed(),
            };
            self.run.observer.mark(&mark);
        }
    }

    /// Reads what waits in the sockets, and records what is silent. How long a mark waits for what
    /// is still to come.
    fn settle(&mut self) -> Duration {
        // before the orders: those that are none any more are there
        let lands = self.orders.landing() > 0;
        self.take_orders();
        let ids: Vec<ConnectionId> = self.links.keys().copied().collect();
        for id in ids {
            self.pump_waiting(id);
            if let Some(link) = self.links.get_mut(&id) {
                observe(&mut link.observed, &mut self.run, |seen, run| {
                    seen.settle(run);
                });
            }
        }
        self.part();
        let run = &self.run;
        if lands || self.observed().any(|seen| seen.awaits_secrets(run)) {
            KEYS
        } else if self.links.values().any(|link| link.is_awaited()) {
            BYTES
        } else {
            Duration::ZERO
        }
    }

    /// The connections whose exchanges may not all be recorded.
    fn observed(&self) -> impl Iterator<Item = &ObservedConnection> {
        let open = self.links.values().map(|link| &link.observed);
        let parting = self.parting.iter().map(|(_, observed)| observed);
        open.chain(parting).flatten()
    }

    fn unfinished(&self) -> Vec<Unfinished> {
        let open = self.links.values();
        let open = open.map(|link| (&link.observed, u64::from(link.is_awaited())));
        let parting = self.parting.iter().map(|(_, observed)| (observed, 0));
        let each = open.chain(parting).filter_map(|(seen, unread)| {
            let seen = seen.as_ref()?;
            Some(Unfinished {
                process: seen.connection().owner.as_ref().map(|owner| owner.pid),
                requests: seen.unrecorded_exchanges().max(unread),
            })
        });
        let landing = Unfinished {
            process: None,
            requests: self.orders.landing(),
        };
        let all = each.chain([landing]);
        all.filter(|one| one.requests > 0).collect()
    }
}
