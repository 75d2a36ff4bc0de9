//! The run that all observed connections share: where rows go, its ids, its TLS secrets.

use crate::platform::secrets::Keys;
use crate::{Config, Numbers, WatchSink};
use intact_ledger::{Caveat, Event, FingerprintKey, Origin, Owner};
use intact_observe::{KnownServers, LowerBound, LowerBounds, TlsReading};
use intact_wire::tls::decrypt::{KeyLog, SecretCheck};
use std::sync::Arc;
use std::time::Instant;

/// The run that all observed connections share.
pub(crate) struct RunContext<'a> {
    pub(crate) observer: &'a mut dyn WatchSink,
    fingerprint_key: FingerprintKey,
    numbers: Numbers,
    keys: Option<Keys>,
    servers: KnownServers,
    /// Connections whose observation broke.
    pub(crate) faults: u64,
    /// Connections that carried other amounts of data by the kernel's count.
    pub(crate) differences: u64,
    /// Connections whose requests may be more.
    lower_bounds: LowerBounds,
    /// The relay ended before the program did.
    pub(crate) is_cut: bool,
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
            fingerprint_key: FingerprintKey::new(&config.fingerprint_key),
            numbers: config.numbers.clone(),
            keys,
            servers: KnownServers::default(),
            faults: 0,
            differences: 0,
            lower_bounds: LowerBounds::default(),
            is_cut: false,
        }
    }

    /// How the TLS of a connection of this process is read. The relay sees each write of the
    /// program, so requests can be inferred where there are no secrets.
    pub(crate) fn tls_reading(&self, owner: Option<&Owner>) -> TlsReading {
        TlsReading {
            expects_secrets: self.keys.is_some(),
            infers_requests: true,
            process: owner.map(|owner| owner.pid),
        }
    }

    /// Waits until then for secrets that are being looked for.
    pub(crate) fn settle_keys(&mut self, until: Instant) {
        if let Some(keys) = &mut self.keys {
            keys.settle(until);
        }
    }

    /// Records what went wrong in here.
    pub(crate) fn finish(&mut self) {
        if self.differences > 0 {
            let words = format!(
                "connections that carried other amounts of data by the kernel's count than by ours: {}; please report it",
                self.differences
            );
            self.record_incomplete("kernel-differs", words);
        }
        if self.faults > 0 {
            let words = format!(
                "connections that could not be followed to their end, because something in intact broke: {}; please report it",
                self.faults
            );
            self.record_incomplete(FAULT, words);
        }
        for caveat in self.lower_bounds.caveats() {
            self.observer.record(Event::Caveat(&caveat));
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

impl intact_observe::RunContext for RunContext<'_> {
    fn record(&mut self, event: Event<'_>) {
        self.observer.record(event);
    }

    fn next_exchange(&mut self) -> u64 {
        self.numbers.exchange()
    }

    fn fingerprint_key(&self) -> &FingerprintKey {
        &self.fingerprint_key
    }

    fn add_secrets(&mut self, client_random: &[u8; 32], into: &mut KeyLog) -> bool {
        let keys = self.keys.as_mut();
        let lines = keys.map_or_else(Vec::new, |keys| keys.take(client_random));
        for line in &lines {
            // a malformed line is the program's affair
            let _ = into.add_line(line);
        }
        !lines.is_empty()
    }

    fn is_new_server(&mut self, origin: Option<&Origin>, product: &Arc<str>) -> bool {
        self.servers.is_new(origin, product)
    }

    fn note_lower_bound(&mut self, why: LowerBound) {
        self.lower_bounds.add(why);
    }

    fn search_secrets(&mut self, process: u32, checks: Vec<SecretCheck>) {
        if let Some(keys) = &mut self.keys {
            keys.seeker.seek(process, checks);
        }
    }

    fn is_searching(&self, client_random: &[u8; 32]) -> bool {
        let keys = self.keys.as_ref();
        keys.is_some_and(|keys| keys.seeker.seeks(client_random))
    }
}
