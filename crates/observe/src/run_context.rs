//! The run of an observed connection: receives rows, and provides TLS secrets.

use crate::Side;
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
    fn search_secrets(&mut self, process: u32, checks: Vec<SecretCheck>) {
        let _ = (process, checks);
    }

    /// Whether a search for the secrets of this connection is running.
    fn is_searching(&self, client_random: &[u8; 32]) -> bool {
        let _ = client_random;
        false
    }

    /// Whether no connection to this origin has named this product of a server yet.
    fn is_new_server(&mut self, origin: Option<&Origin>, product: &Arc<str>) -> bool {
        let _ = (origin, product);
        true
    }

    /// Records the end of a connection whose number of inferred requests is a lower bound:
    /// overlapping HTTP/2 streams cannot be distinguished.
    fn note_lower_bound(&mut self) {}

    /// Receives bytes of TLS records, for a drawing of the packets.
    fn note_tls(&mut self, from: Side, bytes: &[u8], at: Nanos) {
        let _ = (from, bytes, at);
    }

    /// Receives bytes of HTTP/2 frames, for a drawing of the packets.
    fn note_h2(&mut self, from: Side, bytes: &[u8], at: Nanos) {
        let _ = (from, bytes, at);
    }

    /// Receives an ended exchange with times of the run, for a drawing of the packets.
    fn note_exchange(&mut self, exchange: &Exchange) {
        let _ = exchange;
    }
}
