//! Marks: the record is completed up to a moment, and the sink learns of it.
//!
//! What the program has received has passed through the relay, and so it was read. What waits in
//! the sockets is read now. Keys that are searched in memory are awaited for a limited time;
//! requests that are unread then are named in the mark.

use super::{Relay, observe};
use crate::{Mark, Unfinished};
use intact_ledger::ConnectionId;
use intact_observe::ObservedConnection;
use std::time::{Duration, Instant};

/// How long a mark waits for keys that are searched.
const KEYS: Duration = Duration::from_secs(2);
/// How often keys are looked for meanwhile.
const PACE: Duration = Duration::from_millis(5);

/// Marks that were requested and not made.
#[derive(Default)]
pub(super) struct PendingMarks(Vec<(u64, Instant)>);

impl PendingMarks {
    /// Adds a request.
    pub(super) fn add(&mut self, number: u64) {
        self.0.push((number, Instant::now() + KEYS));
    }

    /// When the oldest is looked at next.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.0.is_empty()).then(|| Instant::now() + PACE)
    }
}

impl Relay<'_> {
    /// Makes the marks that wait for nothing any more.
    pub(super) fn make_marks(&mut self) {
        if self.marks.0.is_empty() {
            return;
        }
        let awaits_keys = self.settle();
        let now = Instant::now();
        let is_due = |deadline: Instant| !awaits_keys || now >= deadline;
        let pending = std::mem::take(&mut self.marks.0);
        let (due, later): (Vec<_>, Vec<_>) = pending
            .into_iter()
            .partition(|(_, deadline)| is_due(*deadline));
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

    /// Reads what waits in the sockets, and records what is silent. Whether keys are still
    /// searched.
    fn settle(&mut self) -> bool {
        let ids: Vec<ConnectionId> = self.links.keys().copied().collect();
        for id in ids {
            if let Some(link) = self.links.get_mut(&id) {
                link.out.readable = true;
                link.back.readable = true;
            }
            self.pump(id);
            if let Some(link) = self.links.get_mut(&id) {
                observe(&mut link.observed, &mut self.run, |seen, run| {
                    seen.settle(run);
                });
            }
        }
        self.part();
        let run = &self.run;
        self.observed().any(|seen| seen.awaits_secrets(run))
    }

    /// The connections whose exchanges may not all be recorded.
    fn observed(&self) -> impl Iterator<Item = &ObservedConnection> {
        let open = self.links.values().map(|link| &link.observed);
        let parting = self.parting.iter().map(|(_, observed)| observed);
        open.chain(parting).flatten()
    }

    fn unfinished(&self) -> Vec<Unfinished> {
        let each = self.observed().map(|seen| Unfinished {
            process: seen.connection().owner.as_ref().map(|owner| owner.pid),
            requests: seen.unrecorded_exchanges(),
        });
        each.filter(|one| one.requests > 0).collect()
    }
}
