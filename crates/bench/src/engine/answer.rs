//! An exchange record that is used for one exchange after the other; the same for every HTTP version.

use intact_client::Stopwatch;
use intact_ledger::{Exchange, Nanos, Outcome, Setup, Spans};

/// Begins an exchange that was wanted `at`: everything of the last one is forgotten. `setup` is what a new connection took.
#[inline]
pub(crate) fn begin(exchange: &mut Exchange, at: Nanos, setup: Option<&Setup>) -> Stopwatch {
    exchange.at = at;
    exchange.spans = Spans::default();
    exchange.status = None;
    exchange.client_delay = None;
    exchange.body = intact_ledger::Body::default();
    exchange.terms = intact_ledger::KeepAliveTerms::default();
    exchange.close_sent_by = None;
    exchange.outcome = Outcome::Ok;
    exchange.detail = None;
    Stopwatch::start(exchange, setup)
}
