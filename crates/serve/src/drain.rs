//! The end of the server in good order: what every connection learns of it, and the wait for the
//! last one.
//!
//! Once it has begun, each response announces the end of its connection, and HTTP/2 sends GOAWAY.
//! An idle HTTP/1 connection is kept for a grace period, so that its next response announces the
//! end (RFC 9112 section 9.6).

use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long an idle connection is kept at most.
const GRACE: Duration = Duration::from_secs(1);

/// Whether the server ends; all threads share it.
pub(crate) struct DrainState {
    begun: watch::Sender<Option<Instant>>,
    limit: Duration,
}

/// Held by each connection as long as it is open.
pub(crate) struct DrainNotice(watch::Receiver<Option<Instant>>);

impl DrainState {
    /// A server that serves. It will wait this long for its connections.
    pub(crate) fn new(limit: Duration) -> DrainState {
        DrainState {
            begun: watch::Sender::new(None),
            limit,
        }
    }

    /// Begins, unless there is no time for it.
    pub(crate) fn begin(&self) {
        if !self.limit.is_zero() {
            self.begun.send_replace(Some(Instant::now()));
        }
    }

    /// Waits until every connection has ended, or until the limit.
    pub(crate) async fn wait(&self) {
        let _ = tokio::time::timeout(self.limit, self.begun.closed()).await;
    }

    /// Whether it has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.borrow().is_some()
    }

    /// How long an idle connection is still kept, once it has begun.
    pub(crate) fn grace_left(&self) -> Option<Duration> {
        let begun = *self.begun.borrow();
        let grace = GRACE.min(self.limit / 2);
        begun.map(|begun| grace.saturating_sub(begun.elapsed()))
    }

    /// For one connection, or one port: it shows a beginning that is still to come.
    pub(crate) fn notice(&self) -> DrainNotice {
        DrainNotice(self.begun.subscribe())
    }
}

impl DrainNotice {
    /// Waits until it begins; for ever if it had begun before.
    pub(crate) async fn begun(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
