//! A request recorded by the client or its tool: an entry of a HAR file, or a row of a load
//! generator.

use crate::fields::split;
use intact_ledger::{
    Failure, KeepAliveTerms, Method, Origin, Outcome, Protocol, SetupPhase, Target,
};
use std::net::IpAddr;
use std::sync::Arc;

/// Nanoseconds per phase; `None` if the phase did not apply or is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timings {
    pub(crate) blocked: Option<u64>,
    pub(crate) dns: Option<u64>,
    /// Without TLS.
    pub(crate) connect: Option<u64>,
    pub(crate) ssl: Option<u64>,
    pub(crate) send: Option<u64>,
    pub(crate) wait: Option<u64>,
    pub(crate) receive: Option<u64>,
}

impl Timings {
    /// Nanoseconds until the request could be sent.
    pub(crate) fn before_send(&self) -> u64 {
        [self.blocked, self.dns, self.connect, self.ssl]
            .iter()
            .flatten()
            .sum()
    }

    /// Nanoseconds from the start of sending to the end.
    pub(crate) fn in_flight(&self) -> u64 {
        [self.send, self.wait, self.receive].iter().flatten().sum()
    }

    /// Whether time passed while the request was sent and its response awaited.
    pub(crate) fn has_round_trip(&self) -> bool {
        let steps = [self.send, self.wait];
        steps.into_iter().flatten().any(|nanos| nanos > 0)
    }

    /// Whether any step of the request took time, beyond waiting for its turn.
    pub(crate) fn has_progress(&self) -> bool {
        self.dns.is_some() || self.has_setup() || self.in_flight() > 0
    }

    /// Whether a connection was set up for this request.
    pub(crate) fn has_setup(&self) -> bool {
        self.setup().is_some()
    }

    /// Nanoseconds for the setup of a connection, without the lookup.
    pub(crate) fn setup(&self) -> Option<u64> {
        let connect = self.connect.or(self.ssl)?;
        Some(connect + self.connect.and(self.ssl).unwrap_or(0))
    }
}

/// One recorded request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    /// Nanoseconds since 1970.
    pub(crate) at: u64,
    /// The run of the program, from 0: each is a process of its own.
    pub(crate) run: u32,
    pub(crate) timings: Timings,
    /// The step of its time for connecting, if that is 0: a setup that took fewer nanoseconds does
    /// not show.
    pub(crate) hides_setup_below: Option<u64>,
    /// Whether it had a connection at all is not known.
    pub(crate) may_lack_connection: bool,
    /// The tool reports that an earlier request used the connection.
    pub(crate) used_before: bool,
    /// Total time in nanoseconds, where the tool does not record phases.
    pub(crate) time: u64,
    /// `None` if the tool does not record it per request.
    pub(crate) origin: Option<Origin>,
    pub(crate) method: Option<Method>,
    /// The path with its query, which identifies a retry; `None` if the tool does not record it
    /// per request.
    pub(crate) full_target: Option<Box<str>>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) status: Option<u16>,
    pub(crate) outcome: Outcome,
    pub(crate) address: Option<IpAddr>,
    /// Id of the connection in the file.
    pub(crate) id: Option<Box<str>>,
    /// `User-Agent` of the client.
    pub(crate) agent: Option<Arc<str>>,
    /// `Server` of the response.
    pub(crate) server: Option<Arc<str>>,
    pub(crate) client_closes: bool,
    pub(crate) server_closes: bool,
    pub(crate) terms: KeepAliveTerms,
    pub(crate) request_head: u64,
    pub(crate) request_body: Option<u64>,
    pub(crate) head: u64,
    pub(crate) body: Option<u64>,
}

impl Entry {
    /// A request with a response but without a duration. Its start is in nanoseconds since 1970 or
    /// since the start of the run.
    pub(crate) fn begun(at: u64) -> Entry {
        Entry {
            at,
            ..Entry::default()
        }
    }

    /// Sets the origin, the target and the method that are known.
    pub(crate) fn set_request(&mut self, url: Option<String>, method: Option<String>) {
        if let Some((origin, path)) = url.and_then(|url| split(&url)) {
            self.origin = Some(origin);
            self.full_target = Some(path.into());
        }
        self.method = method.map(|name| Method::new(&name));
    }

    /// When its setup began, if its time is that at which it was sent.
    pub(crate) fn begin_of_setup(&self) -> u64 {
        self.at.saturating_sub(self.timings.before_send())
    }

    /// The target as the ledger stores it.
    pub(crate) fn target(&self) -> Option<Target> {
        self.full_target.as_deref().map(Target::new)
    }

    /// Sets the status, if HTTP has it.
    pub(crate) fn set_status(&mut self, status: Option<u64>) {
        self.status = status.and_then(crate::fields::status);
    }

    /// Sets the status of a request that is not known to have failed: without a status of HTTP its
    /// outcome is unknown.
    pub(crate) fn set_outcome_of(&mut self, status: u64) {
        self.set_status(Some(status));
        if self.status.is_none() {
            self.outcome = Outcome::Unknown;
        }
    }

    /// The step of the setup that a failure of this kind ended. Of an unknown kind, that is the
    /// transport, if nothing shows that the request had a connection.
    pub(crate) fn failed_in(&self, kind: Failure) -> Option<SetupPhase> {
        let has_connection = self.id.is_some() || self.status.is_some();
        let is_in_setup =
            kind == Failure::UnknownKind && !has_connection && !self.timings.has_round_trip();
        kind.setup_phase()
            .or(is_in_setup.then_some(SetupPhase::Connect))
    }

    /// Whether it names neither a server's address nor a connection.
    pub(crate) fn is_nowhere(&self) -> bool {
        self.address.is_none() && self.id.is_none()
    }

    /// Notes that its time for connecting has this step in nanoseconds.
    pub(crate) fn set_setup_step(&mut self, step: u64) {
        self.hides_setup_below = (!self.timings.has_setup()).then_some(step);
    }

    /// When the request was sent.
    pub(crate) fn sent_at(&self) -> u64 {
        self.at.saturating_add(self.timings.before_send())
    }

    /// When the exchange ended.
    pub(crate) fn ended_at(&self) -> u64 {
        let phases = self.timings.before_send() + self.timings.in_flight();
        self.at
            .saturating_add(if phases > 0 { phases } else { self.time })
    }
}
