//! The row of a connection: the facts that its exchanges and its handshakes show. Knows no
//! exchange.

use crate::authority::{host_of, is_absolute_form, split_authority};
use crate::run_context::RunContext;
use crate::server_product;
use crate::user_agent::product;
use intact_ledger::{Connection, Event, Nanos, Origin, Protocol, Scheme};
use intact_wire::exchange::{Request, Response};
use intact_wire::h2::Http2Facts;
use intact_wire::http1::Version;

/// The row of a connection, and the part of it that was recorded.
#[derive(Default)]
pub(crate) struct ConnectionRow {
    pub(crate) row: Connection,
    /// The connection as it was recorded last.
    recorded: Option<Connection>,
    /// The origin comes from a request.
    has_authority: bool,
    /// A response arrived.
    has_answered: bool,
}

impl ConnectionRow {
    /// A row that was not recorded yet. Its origin is its peer until more is known.
    pub(crate) fn new(mut row: Connection) -> ConnectionRow {
        if row.origin.is_none() {
            row.origin = row.peer.map(|peer| Origin {
                scheme: Scheme::Tcp,
                host: peer.ip().to_string().into(),
                port: peer.port(),
            });
        }
        ConnectionRow {
            row,
            ..ConnectionRow::default()
        }
    }

    /// Whether the connection was recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorded.is_some()
    }

    /// Records the connection, or its new facts.
    pub(crate) fn record(&mut self, run: &mut dyn RunContext) {
        match &self.recorded {
            Some(recorded) if *recorded == self.row => return,
            Some(_) => run.record(Event::Revised(&self.row)),
            None => run.record(Event::Opened(&self.row)),
        }
        self.recorded = Some(self.row.clone());
    }

    /// Adds the client and the version of HTTP of a request.
    pub(crate) fn learn(&mut self, request: &Request) {
        let agent = request.agent.as_deref().unwrap_or_default();
        if self.row.agent.is_none()
            && let Ok(agent) = std::str::from_utf8(agent)
        {
            self.row.agent = product(agent);
        }
        if let Some(version) = request.version {
            self.note_version(version);
        }
    }

    /// Sets the origin by the first request with an authority. A missing port is the default port
    /// of the scheme. If no request names an authority, the origin is the known name or address,
    /// with the peer's port.
    pub(crate) fn note_origin(&mut self, authority: Option<&[u8]>) {
        if self.has_authority {
            return;
        }
        let scheme = if self.row.tls.is_some() {
            Scheme::Https
        } else {
            Scheme::Http
        };
        let Some(origin) = &mut self.row.origin else {
            return;
        };
        origin.scheme = scheme;
        if let Some((host, port)) = authority.and_then(split_authority) {
            self.has_authority = true;
            origin.host = host;
            origin.port = port.or(scheme.default_port()).unwrap_or(origin.port);
        }
    }

    /// The TLS server name is the origin's host until a request names another.
    pub(crate) fn note_server_name(&mut self, name: Option<&str>) {
        if self.has_authority {
            return;
        }
        if let Some(origin) = &mut self.row.origin {
            origin.scheme = Scheme::Https;
            if let Some(host) = name.and_then(|name| host_of(name.as_bytes())) {
                origin.host = host;
            }
        }
    }

    /// Records a version of HTTP that was used.
    pub(crate) fn note_version(&mut self, version: Version) {
        let protocol = match version {
            Version::Http10 => Protocol::Http10,
            Version::Http11 => Protocol::Http11,
        };
        let known = &mut self.row.protocol;
        if known.is_none() || (*known == Some(Protocol::Http10) && protocol == Protocol::Http11) {
            *known = Some(protocol);
        }
    }

    /// Sets the origin by a request. One with a target in absolute form goes to a proxy, which is
    /// the origin then: it takes requests for any.
    pub(crate) fn note_authority(&mut self, request: &Request) {
        if is_absolute_form(&request.target) {
            self.note_origin(None);
            self.has_authority = true;
        } else {
            self.note_origin(request.authority.as_deref());
        }
    }

    /// Records the terms of a response. The connection keeps the first ones.
    pub(crate) fn note_terms(&mut self, response: &Response) {
        let terms = &mut self.row.terms;
        terms.timeout_s = terms.timeout_s.or(response.keep_alive.timeout_s);
        terms.max = terms.max.or(response.keep_alive.max);
    }

    /// Records the server of the first response, once per origin and product of the run.
    pub(crate) fn note_server(&mut self, response: &Response, run: &mut dyn RunContext) {
        if std::mem::replace(&mut self.has_answered, true) {
            return;
        }
        let product = server_product::of_response(response);
        self.row.server =
            product.filter(|product| run.is_new_server(self.row.origin.as_ref(), product));
    }

    /// Records the number of streams that the server allows.
    pub(crate) fn note_settings(&mut self, facts: &Http2Facts) {
        if let Some(settings) = facts.server_settings {
            self.row.terms.max_streams = settings.max_concurrent_streams;
        }
    }

    /// Records that the client asked a proxy for a tunnel to `target`.
    pub(crate) fn lead_to(&mut self, target: Option<&[u8]>) {
        self.has_authority = false;
        self.row.dialled = None;
        if let Some((host, Some(port))) = target.and_then(split_authority) {
            self.row.origin = Some(Origin {
                scheme: Scheme::Tcp,
                host,
                port,
            });
        }
    }

    /// Records that a proxy granted the tunnel at `granted_at`.
    pub(crate) fn enter_tunnel(&mut self, granted_at: Nanos) {
        self.row.protocol = None;
        if let Some(connect) = &mut self.row.setup.connect {
            connect.end = connect.end.max(granted_at);
        }
    }
}
