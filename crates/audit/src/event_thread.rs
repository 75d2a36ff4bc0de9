//! Events of a reader, recorded on a thread of their own: reading a file and deriving its meaning
//! then take two cores. Must not change their order.

use intact_ledger::{ConnectionId, Event, Exchange, Row, Sink};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// Events that cross together. An event takes about 1 kB.
const BATCH: usize = 128;
/// Batches that wait at most.
const WAITING: usize = 8;
/// Events whose connections are announced to the sink together.
const AHEAD: usize = 8;

/// Events in their order. Most are exchanges. The memory of these stays with the batch, which goes
/// back to its sender.
#[derive(Default)]
struct Batch {
    /// `None` stands for the next exchange.
    rows: Vec<Option<Row>>,
    exchanges: Vec<Exchange>,
    /// Number of exchanges that are in use.
    used: usize,
}

impl Batch {
    fn add(&mut self, event: Event<'_>) {
        let Event::Exchange(exchange) = event else {
            return self.rows.push(Some(event.to_row()));
        };
        match self.exchanges.get_mut(self.used) {
            Some(place) => place.clone_from(exchange),
            None => self.exchanges.push(exchange.clone()),
        }
        self.used += 1;
        self.rows.push(None);
    }

    fn record(&self, sink: &mut dyn Sink) {
        let mut ahead: Vec<ConnectionId> = Vec::with_capacity(AHEAD);
        let mut exchanges = self.exchanges.iter();
        for rows in self.rows.chunks(AHEAD) {
            let mut next = exchanges.clone();
            let connections = rows.iter().filter_map(|row| match row {
                None => next.next()?.connection,
                Some(Row::Closed(closed)) => Some(closed.connection),
                Some(_) => None,
            });
            ahead.clear();
            ahead.extend(connections);
            sink.expect(&ahead);
            for row in rows {
                let exchange = || exchanges.next().map(Event::Exchange);
                if let Some(event) = row.as_ref().map(Row::as_event).or_else(exchange) {
                    sink.record(event);
                }
            }
        }
    }
}

/// Sends events in batches.
struct Batches {
    batch: Batch,
    to: SyncSender<Batch>,
    /// Batches that were recorded.
    back: Receiver<Batch>,
}

impl Batches {
    fn send(&mut self) {
        let mut next = self.back.try_recv().unwrap_or_default();
        next.rows.clear();
        next.used = 0;
        let batch = std::mem::replace(&mut self.batch, next);
        // the receiver is gone only if it panicked, which the join reports
        let _ = self.to.send(batch);
    }
}

impl Sink for Batches {
    fn record(&mut self, event: Event<'_>) {
        self.batch.add(event);
        if self.batch.rows.len() >= BATCH {
            self.send();
        }
    }
}

/// Runs `read`, whose events `sink` records on another thread, in their order.
pub fn record_on_thread<T>(
    sink: &mut (dyn Sink + Send),
    read: impl FnOnce(&mut dyn Sink) -> T,
) -> T {
    let (to, from): (_, Receiver<Batch>) = sync_channel(WAITING);
    let (give_back, back): (Sender<Batch>, _) = channel();
    thread::scope(|scope| {
        let recorder = scope.spawn(move || {
            for batch in from {
                batch.record(sink);
                // the sender may be through
                let _ = give_back.send(batch);
            }
        });
        let mut batches = Batches {
            batch: Batch::default(),
            to,
            back,
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
    use intact_ledger::Nanos;

    #[test]
    fn events_arrive_in_their_order() {
        let mut rows: Vec<Row> = Vec::new();
        let all = 3 * BATCH as u64 + 7;
        let read = record_on_thread(&mut rows, |sink| {
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
