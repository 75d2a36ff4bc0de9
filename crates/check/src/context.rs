//! What a probe works with: the configuration, the connections that it opens, and the profile so
//! far. Must not know what a probe does.

use crate::capture::Capture;
use crate::config::{Config, ExtraRequest};
use crate::line::Line;
use crate::plans::Plans;
use crate::probe_kind::ProbeKind;
use crate::prober::{Opened, Probed, Prober, StopReason};
use crate::server_process::ServerProcess;
use intact_client::RequestSpec;
use intact_ledger::server_profile::{ServerProfile, Skipped};
use intact_ledger::{Method, Protocol, TlsVersion};
use std::net::SocketAddr;
use std::time::Duration;

/// A process that ends closes its connections before its listener, or after it. A dial in between
/// is accepted and then reset.
const ENDING: Duration = Duration::from_millis(100);

/// The body of an additional request whose method has a body.
const EXTRA_BODY: &str = "{}";

/// The context of a probe.
pub(crate) struct ProbeContext<'a> {
    pub(crate) config: &'a Config,
    pub(crate) plans: Plans<'a>,
    /// The default request.
    pub(crate) request: RequestSpec,
    pub(crate) prober: Prober<'a>,
    pub(crate) profile: ServerProfile,
    /// The version for probes that use one version.
    pub(crate) http: Protocol,
    /// The address that answered the first request.
    pub(crate) peer: Option<SocketAddr>,
    /// The capture, until its packets are taken.
    pub(crate) capture: Option<Capture>,
    /// The server's process, until its end is measured.
    pub(crate) server: Option<&'a mut dyn ServerProcess>,
}

impl ProbeContext<'_> {
    /// Whether the first request had a response that counts.
    pub(crate) fn has_responded(&self) -> bool {
        let contact = self.profile.contact.as_ref();
        contact.is_some_and(|contact| contact.outcome.is_ok())
    }

    /// After the first response a refused dial is an outage. A drain ends the server itself.
    pub(crate) fn expect_listener(&mut self) {
        if self.has_responded() && self.config.drain.is_none() {
            self.prober.expect_listener(self.http);
        }
    }

    /// Sends a request on a new connection, where an end without an announcement may be the end of
    /// the server: a refused dial shows that.
    pub(crate) fn look_for_outage(&mut self) -> Probed {
        self.let_end()?;
        let Some(line) = self.open(self.http)? else {
            return Ok(());
        };
        match self.prober.ask_once(line, &self.light_request()) {
            // the dial was accepted, and that is enough
            Ok(_) | Err(StopReason::Spent) => Ok(()),
            Err(stopped) => Err(stopped),
        }
    }

    /// Opens a connection of this version; `None`: the dial failed, which is recorded.
    pub(crate) fn open(&mut self, http: Protocol) -> Probed<Option<Line>> {
        Ok(self.dial(http, None)?.ok())
    }

    /// Opens a connection with this TLS version, or with any.
    pub(crate) fn dial(&mut self, http: Protocol, tls: Option<TlsVersion>) -> Probed<Opened> {
        let plan = self.plans.plan(http, tls)?;
        self.prober.open(&plan)
    }

    /// Runs a part of a probe in which the server has at most this time for each reaction.
    pub(crate) fn with_patience<T>(
        &mut self,
        most: Duration,
        part: impl FnOnce(&mut Self) -> Probed<T>,
    ) -> Probed<T> {
        let usual = self.prober.patience;
        self.prober.patience = usual.min(most);
        let done = part(self);
        self.prober.patience = usual;
        done
    }

    /// Waits for [`ENDING`].
    pub(crate) fn let_end(&mut self) -> Probed {
        let until = self.prober.clock.now().after(ENDING.as_nanos() as u64);
        self.prober.pause(&mut [], until)
    }

    pub(crate) fn skip(&mut self, stage: ProbeKind, why: &str, cut_off: bool) {
        self.profile.skipped.push(Skipped {
            probe: stage.name().to_owned(),
            why: why.to_owned(),
            cut_off,
        });
    }

    /// The request for connections that must stay open. It has `Connection: keep-alive`, which
    /// HTTP/1.0 needs. Apache and Tomcat announce their limits only in response to it.
    pub(crate) fn keeping_request(&self) -> RequestSpec {
        self.light_request().saying("keep-alive")
    }

    /// An additional request.
    pub(crate) fn extra_request(&self, tried: &ExtraRequest) -> RequestSpec {
        let request = self.request.by(tried.method.clone()).at(&tried.path);
        let request = match tried.method.as_str() {
            "POST" | "PUT" | "PATCH" => request.carrying(EXTRA_BODY),
            _ => request,
        };
        request.saying("keep-alive")
    }

    /// The request where the body does not matter.
    pub(crate) fn light_request(&self) -> RequestSpec {
        let by_head = self
            .profile
            .contact
            .as_ref()
            .is_some_and(|contact| contact.by_head);
        if by_head {
            self.request.by(Method::HEAD)
        } else {
            self.request.clone()
        }
    }

    /// Closes these connections.
    pub(crate) fn close_all(&mut self, lines: &mut Vec<Line>) {
        for line in lines.drain(..) {
            self.prober.close(line);
        }
    }
}
