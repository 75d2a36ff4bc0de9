//! The load engine: many connections on an event loop, one loop per thread, nothing shared, no
//! allocation per exchange.
//!
//! An [`intact_client::HttpConnection`] speaks HTTP and sends. A [`round::Round`] keeps the time,
//! and decides when each connection is opened, used and closed. A [`backend::Backend`] waits for
//! the kernel and receives.

#[cfg(test)]
mod allocations;
mod backend;
mod coalescer;
#[cfg(target_os = "linux")]
mod completion;
mod pulse;
mod readiness;
mod round;
mod slot;
mod task;
mod warm_up;

pub(crate) use backend::IoBackend;
pub(crate) use coalescer::{LEAST_IN_FLIGHT, Pauses};
pub use pulse::{Progress, Pulse};
pub use task::Gauge;
pub(crate) use task::{RoundResult, RoundTask};
pub(crate) use warm_up::WarmUp;

use crate::recorder::Recorder;
use intact_client::{Clock, Resolver};
use readiness::Readiness;
use round::Round;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use task::EngineState;

/// The engine of one thread.
pub(crate) struct Engine {
    state: EngineState,
    readiness: Readiness,
    io: IoBackend,
}

impl Engine {
    /// An engine for thread number `thread`; ids of different threads do not meet.
    pub(crate) fn new(
        thread: u32,
        clock: Clock,
        recorder: Recorder,
        gauge: Arc<Gauge>,
        io: IoBackend,
    ) -> io::Result<Engine> {
        let readiness = Readiness::new()?;
        let resolver = Resolver::new(readiness.waker()?);
        Ok(Engine {
            state: EngineState {
                resolver,
                clock,
                recorder,
                gauge,
                thread,
                next_id: u64::from(thread) << 48,
                turns: HashMap::new(),
            },
            readiness,
            io,
        })
    }

    /// Lets the ids of this thread begin above these.
    pub(crate) fn count_ids_from(&mut self, first: u64) {
        self.state.next_id |= first;
    }

    /// Runs until the pace starts nothing more and nothing is in flight.
    pub(crate) fn run(&mut self, task: RoundTask) -> io::Result<RoundResult> {
        match self.io {
            IoBackend::Readiness => Round::new(&mut self.state, &mut self.readiness, task).run(),
            #[cfg(target_os = "linux")]
            IoBackend::Uring => {
                let poll = self.readiness.poll_mut();
                let mut completion = completion::Completion::new(task.connections, poll)?;
                Round::new(&mut self.state, &mut completion, task).run()
            }
        }
    }
}
