//! The run that an observed connection belongs to: where rows go, and where TLS secrets come from.

use crate::Side;
use intact_ledger::{Event, FingerprintKey, Nanos, Origin};
use intact_wire::exchange::Exchange;
use intact_wire::tls::decrypt::{KeyLog, SecretCheck};
use std::sync::Arc;

/// What a connection needs from the run that observes it. The producer implements it.
pub trait RunContext {
    /// Takes a row.
    fn record(&mut self, event: Event<'_>);

    /// The next free exchange id.
    fn next_exchange(&mut self) -> u64;

    /// The key of this run's fingerprints.
    fn fingerprint_key(&self) -> &FingerprintKey;

    /// Adds the secrets of a TLS connection to `into`; whether any of them is new.
    fn add_secrets(&mut self, client_random: &[u8; 32], into: &mut KeyLog) -> bool;

    /// Starts a search for secrets in the memory of a process. Later, [`add_secrets`](RunContext::add_secrets) gives them.
    fn search_secrets(&mut self, process: u32, checks: Vec<SecretCheck>) {
        let _ = (process, checks);
    }

    /// Whether a search for the secrets of this connection is under way.
    fn is_searching(&self, client_random: &[u8; 32]) -> bool {
        let _ = client_random;
        false
    }

    /// Whether no connection to this origin has named this product of a server yet.
    fn is_new_server(&mut self, origin: Option<&Origin>, product: &Arc<str>) -> bool {
        let _ = (origin, product);
        true
    }

    /// A connection is over whose requests were inferred, and may be more: streams of HTTP/2 that overlap cannot be distinguished.
    fn note_lower_bound(&mut self) {}

    /// Takes bytes of TLS records as they passed, for a picture of the packets.
    fn note_tls(&mut self, from: Side, bytes: &[u8], at: Nanos) {
        let _ = (from, bytes, at);
    }

    /// Takes bytes of HTTP/2 frames, for a picture of the packets.
    fn note_h2(&mut self, from: Side, bytes: &[u8], at: Nanos) {
        let _ = (from, bytes, at);
    }

    /// Takes an exchange that is over, with times of the run, for a picture of the packets.
    fn note_exchange(&mut self, exchange: &Exchange) {
        let _ = exchange;
    }
}
