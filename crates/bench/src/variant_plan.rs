//! One variant, ready to run: where to dial, what to send, how to judge the answer.

use crate::engine::Pauses;
use crate::response_cache::ResponseCache;
use intact_client::{Detail, Plan, Request};
use intact_experiment::{OpenLoop, WhenBusy};
use intact_ledger::{Exchange, Nanos};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// How long a connection is kept, and what happens on it between requests. Times are in
/// nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConnectionLife {
    /// Requests after which it is closed.
    pub(crate) requests: Option<u64>,
    /// Age from which it takes no more requests.
    pub(crate) age: Option<u64>,
    /// The pause after each response.
    pub(crate) pause: Option<u64>,
    /// Time without anything from the server after which HTTP/2 sends PING.
    pub(crate) ping: Option<Duration>,
}

/// A variant, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct VariantPlan {
    /// Index into the run's variants.
    pub(crate) variant: u32,
    /// How to connect.
    pub(crate) plan: Arc<Plan>,
    /// What to send; the first of several.
    pub(crate) request: Arc<Request>,
    /// What to send in turn; empty if all requests are alike.
    pub(crate) targets: Arc<[Arc<Request>]>,
    /// What is kept of responses to revalidate them; absent: nothing.
    pub(crate) cache: Option<Arc<ResponseCache>>,
    /// Whether the fields of responses are read: also without a cache, where a variant with one is
    /// compared with it.
    pub(crate) detail: Detail,
    /// Whether connections are kept.
    pub(crate) keepalive: bool,
    /// The life of its connections.
    pub(crate) life: ConnectionLife,
    /// Connections over all threads.
    pub(crate) concurrency: usize,
    /// Streams per connection (HTTP/2).
    pub(crate) streams: usize,
    /// The limit for one exchange and for one dial, in nanoseconds.
    pub(crate) timeout: u64,
    /// When requests are due; absent in a closed loop.
    pub(crate) open_loop: Option<OpenLoop>,
    /// How responses may be gathered into batches; absent: not at all.
    pub(crate) gather: Option<Pauses>,
}

impl VariantPlan {
    /// Whether the first exchange on each connection that `round` opens at its start is warm-up.
    /// The whole preflight, round 0, is. Connections that requests of an open loop open because
    /// all others are busy are not.
    pub(crate) fn warms_up(&self, round: u32) -> bool {
        let opens_when_busy = |open: OpenLoop| open.when_busy == WhenBusy::Open;
        self.keepalive && round > 0 && !self.open_loop.is_some_and(opens_when_busy)
    }

    /// Whether a connection that was opened `at` and carried `exchanges` takes no more at `now`.
    #[inline]
    pub(crate) fn is_used_up(&self, exchanges: u64, at: Nanos, now: Nanos) -> bool {
        if exchanges == 0 {
            return false;
        }
        let ConnectionLife { requests, age, .. } = self.life;
        !self.keepalive
            || requests.is_some_and(|most| exchanges >= most)
            || age.is_some_and(|age| now.since(at) >= age)
    }

    /// What is sent next, the target of this `turn`, which a warm-up does not take. Without a cache
    /// nothing that threads share is written.
    #[inline]
    pub(crate) fn next_request(&self, turn: &mut usize, warmup: bool) -> Cow<'_, Arc<Request>> {
        match (&self.cache, self.targets.len()) {
            (None, 0) => Cow::Borrowed(&self.request),
            (None, all) => {
                let next = &self.targets[*turn % all];
                *turn = (*turn + usize::from(!warmup)) % all;
                Cow::Borrowed(next)
            }
            (Some(cache), _) => Cow::Owned(cache.request(&self.request)),
        }
    }

    /// What all its exchanges have in common.
    pub(crate) fn blank_exchange(&self, round: u32) -> Exchange {
        let mut blank = Exchange::new(0, Nanos(0));
        blank.variant = Some(self.variant);
        blank.round = Some(round);
        self.request.describe(&mut blank);
        blank
    }
}
