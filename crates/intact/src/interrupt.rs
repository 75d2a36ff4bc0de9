//! Signals. The first Ctrl-C, SIGQUIT, SIGTERM or SIGHUP asks for an early end that keeps
//! everything, the second ends at once.

use crate::system;
use anyhow::Context;
#[cfg(feature = "fleet")]
use signal_hook::consts::SIGTERM;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// One end can arrive several times: timeout(1) signals its command and then the process group, and
/// a wrapper in the group forwards what it receives. Signals within this time are one request.
const ONE_REQUEST: Duration = Duration::from_millis(500);

/// Which signal came, if one did.
#[derive(Clone, Default)]
pub(crate) struct Interrupt {
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Listens for the signals that ask for an early end.
    pub(crate) fn listen() -> anyhow::Result<Interrupt> {
        let interrupt = Interrupt::default();
        let first = interrupt.signal.clone();
        take_signals(move |signal| {
            first.store(signal as usize, Ordering::Relaxed);
        })
        .context("cannot listen for signals")?;
        Ok(interrupt)
    }

    /// Asks for an early end as SIGTERM would.
    #[cfg(feature = "fleet")]
    pub(crate) fn end(&self) {
        self.signal.store(SIGTERM as usize, Ordering::Relaxed);
    }

    /// The number of the signal that came.
    pub(crate) fn signal(&self) -> Option<usize> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal),
        }
    }
}

/// Waits for the first of these signals; its number. The second one ends the process.
pub(crate) async fn first_signal() -> usize {
    let (sender, mut first) = tokio::sync::mpsc::unbounded_channel();
    // without signals there is only kill -9, which needs no help
    let _ = take_signals(move |signal| {
        let _ = sender.send(signal as usize);
    });
    match first.recv().await {
        Some(signal) => signal,
        None => std::future::pending().await,
    }
}

/// Takes signals in a thread: calls `first` with the first, ends the process at the second.
fn take_signals(first: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    let mut requests = Requests::default();
    system::on_each_ending_signal(move |signal| match requests.take(Instant::now()) {
        Request::First => first(signal),
        Request::Same => {}
        Request::Second => signal_hook::low_level::exit(128 + signal),
    })
}

/// The requests to end.
#[derive(Default)]
struct Requests {
    first: Option<Instant>,
}

#[derive(Debug, PartialEq)]
enum Request {
    First,
    /// The first one, which arrived by another way as well.
    Same,
    Second,
}

impl Requests {
    /// What a signal that arrives at `now` asks for.
    fn take(&mut self, now: Instant) -> Request {
        match self.first {
            None => {
                self.first = Some(now);
                Request::First
            }
            Some(first) if now.duration_since(first) < ONE_REQUEST => Request::Same,
            Some(_) => Request::Second,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_arrive_together_are_one_request() {
        let began = Instant::now();
        let mut requests = Requests::default();
        assert_eq!(requests.take(began), Request::First);
        for after in [0, 2, 499] {
            let now = began + Duration::from_millis(after);
            assert_eq!(requests.take(now), Request::Same, "after {after} ms");
        }
        assert_eq!(requests.take(began + ONE_REQUEST), Request::Second);
    }
}
