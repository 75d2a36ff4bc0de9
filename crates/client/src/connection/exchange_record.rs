//! An exchange record that is reused for consecutive exchanges, in every HTTP version.

use crate::{Due, Stopwatch};
use intact_ledger::{Body, Exchange, KeepAliveTerms, Outcome, Setup, Spans};

/// Begins an exchange that is `due` and clears the record of the last one. `setup` is the setup of
/// a new connection.
#[inline]
pub(super) fn begin(exchange: &mut Exchange, due: Due, setup: Option<&Setup>) -> Stopwatch {
    exchange.spans = Spans::default();
    due.note(exchange);
    exchange.status = None;
    exchange.grpc = None;
    exchange.client_delay = None;
    exchange.retransmissions = None;
    exchange.body = Body::default();
    exchange.terms = KeepAliveTerms::default();
    exchange.close_sent_by = None;
    exchange.outcome = Outcome::Ok;
    exchange.detail = None;
    Stopwatch::start(exchange, setup)
}
