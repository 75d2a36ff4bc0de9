//! An exchange record that is reused for consecutive exchanges, in every HTTP version.

use crate::{Due, Request, Stopwatch};
use intact_ledger::{Body, Exchange, KeepAliveTerms, Outcome, Setup, Spans};
use std::sync::Arc;

/// An exchange that begins.
#[derive(Clone, Copy)]
pub(super) struct NewExchange<'a> {
    pub(super) request: &'a Arc<Request>,
    pub(super) id: u64,
    pub(super) due: Due,
    pub(super) warmup: bool,
    /// The setup of a new connection, which it waits for.
    pub(super) setup: Option<&'a Setup>,
    /// Bytes that the connection had accepted before its request.
    pub(super) sent_before: u64,
}

/// Begins an exchange, the one with this number on its connection, and clears the record of the
/// last one.
#[inline]
pub(super) fn begin(exchange: &mut Exchange, new: &NewExchange<'_>, ordinal: u64) -> Stopwatch {
    exchange.id = new.id;
    exchange.warmup = new.warmup;
    exchange.ordinal = Some(ordinal as u32);
    exchange.spans = Spans::default();
    new.due.note(exchange);
    exchange.status = None;
    exchange.grpc = None;
    exchange.client_delay = None;
    exchange.retransmissions = None;
    exchange.acknowledged_after = None;
    exchange.body = Body::default();
    exchange.terms = KeepAliveTerms::default();
    exchange.close_sent_by = None;
    exchange.outcome = Outcome::Ok;
    exchange.detail = None;
    Stopwatch::start(exchange, new.setup)
}
