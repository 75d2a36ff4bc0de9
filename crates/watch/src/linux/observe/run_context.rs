//! What all observations share: where events go, and the run's numbers and keys.

use super::keys::Keys;
use crate::{Config, Numbers, WatchSink};
use intact_ledger::{Caveat, Event, FingerprintKey};
use intact_wire::tls::decrypt::SecretCheck;
use std::time::Instant;

/// What all observations share.
pub(crate) struct RunContext<'a> {
    observer: &'a mut dyn WatchSink,
    pub(super) fingerprints: FingerprintKey,
    numbers: Numbers,
    keys: Option<Keys>,
    faults: u64,
    differences: u64,
    /// The relay ended before the program did.
    is_cut: bool,
}

/// The id of the caveat on what broke in here.
pub(crate) const FAULT: &str = "observer-fault";

impl<'a> RunContext<'a> {
    pub(crate) fn new(
        observer: &'a mut dyn WatchSink,
        config: &Config,
        keys: Option<Keys>,
    ) -> RunContext<'a> {
        RunContext {
            observer,
            fingerprints: FingerprintKey::new(&config.fingerprint_key),
            numbers: config.numbers.clone(),
            keys,
            faults: 0,
            differences: 0,
            is_cut: false,
        }
    }

    pub(crate) fn record(&mut self, event: Event<'_>) {
        self.observer.record(event);
    }

    pub(crate) fn tick(&mut self) {
        self.observer.tick();
    }

    /// An observation broke; its connection goes on unseen.
    pub(crate) fn count_fault(&mut self) {
        self.faults += 1;
    }

    /// The relay ends before the program does.
    pub(crate) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// The kernel has counted other bytes on a connection than we have carried.
    pub(crate) fn count_difference(&mut self) {
        self.differences += 1;
    }

    /// Whether programs were told to log keys.
    pub(super) fn expects_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Lines of the key log for one connection that came since the last time.
    pub(super) fn keys_of(&mut self, client_random: &[u8; 32]) -> Vec<String> {
        self.keys
            .as_mut()
            .map(|keys| keys.take(client_random))
            .unwrap_or_default()
    }

    /// Has the secrets of a connection looked for, whose keys its process does not log.
    pub(super) fn seek(&mut self, process: u32, locks: Vec<SecretCheck>) {
        if let Some(keys) = &mut self.keys {
            keys.seek(process, locks);
        }
    }

    /// Whether the secrets of a connection are being looked for.
    pub(super) fn seeks(&self, client_random: &[u8; 32]) -> bool {
        let keys = self.keys.as_ref();
        keys.is_some_and(|keys| keys.seeks(client_random))
    }

    /// Waits until then for secrets that are being looked for.
    pub(crate) fn settle_keys(&mut self, until: Instant) {
        if let Some(keys) = &mut self.keys {
            keys.settle(until);
        }
    }

    /// A number for an exchange.
    pub(super) fn number(&mut self) -> u64 {
        self.numbers.exchange()
    }

    /// Records what went wrong in here.
    pub(crate) fn finish(&mut self) {
        if self.differences > 0 {
            let words = format!(
                "{} connections carried other amounts of data by the kernel's count than by ours; please report it",
                self.differences
            );
            self.record_incomplete("kernel-differs", words);
        }
        if self.faults > 0 {
            let words = format!(
                "{} connections could not be followed to their end: something in intact broke; please report it",
                self.faults
            );
            self.record_incomplete(FAULT, words);
        }
        if self.is_cut {
            let words = "the relay could not wait for data any more: connections were cut, and later ones are missing; please report it";
            self.record_incomplete(FAULT, words.to_owned());
        }
    }

    fn record_incomplete(&mut self, id: &str, words: String) {
        self.observer
            .record(Event::Caveat(&Caveat::incomplete(id, words)));
    }
}
