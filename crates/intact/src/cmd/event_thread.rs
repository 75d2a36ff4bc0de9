//! Events of a reader, recorded on a thread of their own: reading a file and deriving its meaning
//! then take two cores. Must not change their order.

use intact_ledger::{Event, Row, Sink};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Events that cross together. An event takes about 1 kB.
const BATCH: usize = 128;
/// Batches that wait at most.
const WAITING: usize = 8;

/// Sends events in batches.
struct Batches {
    rows: Vec<Row>,
    to: SyncSender<Vec<Row>>,
}

impl Batches {
    fn send(&mut self) {
        let rows = std::mem::replace(&mut self.rows, Vec::with_capacity(BATCH));
        // the receiver is gone only if it panicked, which the join reports
        let _ = self.to.send(rows);
    }
}

impl Sink for Batches {
    fn record(&mut self, event: Event<'_>) {
        self.rows.push(event.to_row());
        if self.rows.len() >= BATCH {
            self.send();
        }
    }
}

/// Runs `read`, whose events `sink` records on another thread, in their order.
pub(super) fn record<T>(sink: &mut (impl Sink + Send), read: impl FnOnce(&mut dyn Sink) -> T) -> T {
    let (to, from): (_, Receiver<Vec<Row>>) = sync_channel(WAITING);
    thread::scope(|scope| {
        let recorder = scope.spawn(move || {
            for row in from.into_iter().flatten() {
                sink.record(row.as_event());
            }
        });
        let mut batches = Batches {
            rows: Vec::new(),
            to,
        };
        let result = read(&mut batches);
        batches.send();
        drop(batches);
        if let Err(panic) = recorder.join() {
            std::panic::resume_unwind(panic);
        }
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::{Exchange, Nanos};

    #[test]
    fn events_arrive_in_their_order() {
        let mut rows: Vec<Row> = Vec::new();
        let all = 3 * BATCH as u64 + 7;
        let read = record(&mut rows, |sink| {
            for id in 0..all {
                sink.record(Event::Exchange(&Exchange::new(id, Nanos(id))));
            }
            all
        });
        assert_eq!((read, rows.len() as u64), (all, all));
        let ids = rows.iter().map(|row| match row {
            Row::Exchange(exchange) => exchange.id,
            _ => unreachable!("only exchanges were recorded"),
        });
        assert!(ids.eq(0..all));
    }
}
