//! The run of an observed connection: receives rows, and provides TLS secrets.

use crate::{LowerBound, Side};
use intact_ledger::{Event, FingerprintKey, Nanos, Origin};
use intact_wire::exchange::Exchange;
use intact_wire::tls::decrypt::{KeyLog, SecretCheck};
use std::sync::Arc;

/// The services that a connection needs from its run. The producer implements it.
pub trait RunContext {
    /// Receives a row.
    fn record(&mut self, event: Event<'_>);

    /// The next free exchange id.
    fn next_exchange(&mut self) -> u64;

    /// The key of this run's fingerprints.
    fn fingerprint_key(&self) -> &FingerprintKey;

    /// Adds the secrets of a TLS connection to `into`. Returns whether any of them is new.
    fn add_secrets(&mut self, client_random: &[u8; 32], into: &mut KeyLog) -> bool;

    /// Starts a search for secrets in the memory of a process. Later,
    /// [`add_secrets`](RunContext::add_secrets) returns them.
    fn search_secrets(&mut self, _process: u32, _checks: Vec<SecretCheck>) {}

    /// Whether a search for the secrets of this connection is running.
    fn is_searching(&self, _client_random: &[u8; 32]) -> bool {
        false
    }

    /// Whether no connection to this origin has named this product of a server yet.
    fn is_new_server(&mut self, _origin: Option<&Origin>, _product: &Arc<str>) -> bool {
        true
    }

    /// Records the end of a connection whose number of requests is a lower bound.
    fn note_lower_bound(&mut self, _why: LowerBound) {}

    /// Receives bytes of TLS records, for a drawing of the packets.
    fn note_tls(&mut self, _from: Side, _bytes: &[u8], _at: Nanos) {}

    /// Receives bytes of HTTP/2 frames, for a drawing of the packets.
    fn note_h2(&mut self, _from: Side, _bytes: &[u8], _at: Nanos) {}

    /// Receives an ended exchange with times of the run, for a drawing of the packets.
    fn note_exchange(&mut self, _exchange: &Exchange) {}
}
