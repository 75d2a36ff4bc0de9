//! One variant, ready to run: where to dial, what to send, how to judge the answer.

use intact_client::Plan;
use intact_ledger::{Exchange, ExpectedStatus, Method, Nanos, Target};
use intact_wire::http1;
use std::sync::Arc;

/// Header fields as (name, value).
pub(crate) type Fields = Vec<(Box<[u8]>, Box<[u8]>)>;

/// A request, formatted once.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The method.
    pub(crate) method: Method,
    /// The path as recorded.
    pub(crate) target: Target,
    /// HTTP/1: head and body as sent.
    pub(crate) bytes: Box<[u8]>,
    /// HTTP/1: how much of `bytes` is the head.
    pub(crate) head: usize,
    /// HTTP/2: the fields in order, pseudo-fields first.
    pub(crate) fields: Fields,
    /// The body.
    pub(crate) body: Arc<[u8]>,
    /// What the answer's framing must know of it.
    pub(crate) kind: http1::Kind,
    /// Whether it asks for the connection to be closed, or in HTTP/1.0 does not ask for it to be kept.
    pub(crate) closes: bool,
}

/// A variant, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct VariantPlan {
    /// Index into the run's variants.
    pub(crate) variant: u32,
    /// How to connect.
    pub(crate) plan: Arc<Plan>,
    /// What to send.
    pub(crate) request: Request,
    /// Whether connections are kept.
    pub(crate) keepalive: bool,
    /// Connections over all threads.
    pub(crate) concurrency: usize,
    /// Streams per connection (HTTP/2).
    pub(crate) streams: usize,
    /// The limit for one exchange and for one dial, in nanoseconds.
    pub(crate) timeout: u64,
    /// The statuses that count as ok, where the user named them.
    pub(crate) expect: Option<ExpectedStatus>,
    /// Whether answers may be gathered into batches.
    pub(crate) gather: bool,
}

impl VariantPlan {
    /// What all its exchanges have in common.
    pub(crate) fn blank_exchange(&self, round: u32) -> Exchange {
        let mut blank = Exchange::new(0, Nanos(0));
        blank.variant = Some(self.variant);
        blank.round = Some(round);
        blank.method = Some(self.request.method.clone());
        blank.target = Some(self.request.target.clone());
        blank
    }
}
