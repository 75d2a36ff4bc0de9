//! A request as the client's own tool tells it: a HAR entry, a row of a load generator.

use crate::fields::split;
use intact_ledger::{KeepAliveTerms, Method, Origin, Outcome, Protocol, SetupPhase, Target};
use std::net::IpAddr;
use std::sync::Arc;

/// Nanoseconds of each phase; `None` for what did not apply or is not known.
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
    /// Nanoseconds before the request could be sent.
    pub(crate) fn before_send(&self) -> u64 {
        [self.blocked, self.dns, self.connect, self.ssl]
            .iter()
            .flatten()
            .sum()
    }

    /// Nanoseconds from sending on.
    pub(crate) fn in_flight(&self) -> u64 {
        [self.send, self.wait, self.receive].iter().flatten().sum()
    }

    /// Whether a connection was set up for this request.
    pub(crate) fn has_setup(&self) -> bool {
        self.connect.or(self.ssl).is_some()
    }
}

/// What an entry tells.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Nanoseconds since 1970.
    pub(crate) at: u64,
    pub(crate) timings: Timings,
    /// The tool says that an earlier request used the connection.
    pub(crate) used_before: bool,
    /// Whole time in nanoseconds, where the phases are not told.
    pub(crate) time: u64,
    /// Absent where the tool does not repeat it.
    pub(crate) origin: Option<Origin>,
    pub(crate) method: Option<Method>,
    /// The path with its query, by which a retry is recognised; absent where the tool does not repeat it.
    pub(crate) full_target: Option<Box<str>>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) status: Option<u16>,
    pub(crate) outcome: Outcome,
    /// The step of a dial that failed.
    pub(crate) dial: Option<SetupPhase>,
    pub(crate) address: Option<IpAddr>,
    /// What the file calls the connection.
    pub(crate) id: Option<Box<str>>,
    /// What the client calls itself.
    pub(crate) agent: Option<Arc<str>>,
    /// What the server calls itself.
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
    /// A request of which only its start is known, in nanoseconds since 1970 or since the start of the run, and that it was answered.
    pub(crate) fn begun(at: u64) -> Entry {
        Entry {
            at,
            timings: Timings::default(),
            used_before: false,
            time: 0,
            origin: None,
            method: None,
            full_target: None,
            protocol: None,
            status: None,
            outcome: Outcome::Ok,
            dial: None,
            address: None,
            id: None,
            agent: None,
            server: None,
            client_closes: false,
            server_closes: false,
            terms: KeepAliveTerms::default(),
            request_head: 0,
            request_body: None,
            head: 0,
            body: None,
        }
    }

    /// Takes the URL and the method, as far as they are told.
    pub(crate) fn set_request(&mut self, url: Option<String>, method: Option<String>) {
        if let Some((origin, path)) = url.and_then(|url| split(&url)) {
            self.origin = Some(origin);
            self.full_target = Some(path.into());
        }
        self.method = method.map(|name| Method::new(&name));
    }

    /// The path, as the ledger has it.
    pub(crate) fn target(&self) -> Option<Target> {
        self.full_target.as_deref().map(Target::new)
    }

    /// Takes a status; 0 stands for none.
    pub(crate) fn set_status(&mut self, status: Option<u64>) {
        let status = status.and_then(|status| u16::try_from(status).ok());
        self.status = status.filter(|&status| status > 0);
    }

    /// When the request was sent.
    pub(crate) fn sent_at(&self) -> u64 {
        self.at.saturating_add(self.timings.before_send())
    }

    /// When it was over.
    pub(crate) fn ended_at(&self) -> u64 {
        let phases = self.timings.before_send() + self.timings.in_flight();
        self.at
            .saturating_add(if phases > 0 { phases } else { self.time })
    }
}
