//! The row of a connection: what its exchanges and its handshakes show of it. Knows no exchange.

use crate::authority::{host_of, of_absolute_form, split_authority};
use crate::run_context::RunContext;
use crate::server_product;
use crate::user_agent::product;
use intact_ledger::{Connection, Event, Nanos, Origin, Protocol, Scheme};
use intact_wire::exchange::{Request, Response};
use intact_wire::h2::Http2Facts;
use intact_wire::http1::Version;

/// A connection, and how much of it was recorded.
pub(crate) struct ConnectionRow {
    pub(crate) row: Connection,
    /// The connection as it was last recorded.
    recorded: Option<Connection>,
    /// The origin is that of a request.
    has_authority: bool,
    /// A response came.
    has_answered: bool,
}

impl ConnectionRow {
    /// A connection of which nothing was recorded. Its origin is its peer until more is known.
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
            recorded: None,
            has_authority: false,
            has_answered: false,
        }
    }

    /// Whether the connection was recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorded.is_some()
    }

    /// Records the connection, or what is new of it.
    pub(crate) fn record(&mut self, run: &mut dyn RunContext) {
        match &self.recorded {
            Some(recorded) if *recorded == self.row => return,
            Some(_) => run.record(Event::Revised(&self.row)),
            None => run.record(Event::Opened(&self.row)),
        }
        self.recorded = Some(self.row.clone());
    }

    /// What a request shows of the client and its version of HTTP.
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

    /// The first request with an authority names the origin. Without a port, that is the default port of its scheme. Where
    /// no request names any, the origin is the name or the address that is known already, with the peer's port.
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

    /// Notes a version of HTTP that was spoken.
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

    /// Takes the origin of a request.
    pub(crate) fn note_authority(&mut self, request: &Request) {
        let named = of_absolute_form(&request.target).or(request.authority.as_deref());
        self.note_origin(named);
    }

    /// The first terms that a server announces are those of the connection.
    pub(crate) fn note_terms(&mut self, response: &Response) {
        let terms = &mut self.row.terms;
        terms.timeout_s = terms.timeout_s.or(response.keep_alive.timeout_s);
        terms.max = terms.max.or(response.keep_alive.max);
    }

    /// The first response names the server, once for each origin and product of the run.
    pub(crate) fn note_server(&mut self, response: &Response, run: &mut dyn RunContext) {
        if std::mem::replace(&mut self.has_answered, true) {
            return;
        }
        let product = server_product::of_response(response);
        self.row.server =
            product.filter(|product| run.is_new_server(self.row.origin.as_ref(), product));
    }

    /// Notes how many streams the server allows.
    pub(crate) fn note_settings(&mut self, facts: &Http2Facts) {
        if let Some((settings, _)) = facts.server_settings {
            self.row.terms.max_streams = settings.max_concurrent_streams;
        }
    }

    /// A proxy granted a tunnel to `target` at `granted_at`.
    pub(crate) fn enter_tunnel(&mut self, target: Option<&[u8]>, granted_at: Nanos) {
        self.has_authority = false;
        self.row.protocol = None;
        if let Some(connect) = &mut self.row.setup.connect {
            connect.end = connect.end.max(granted_at);
        }
        if let Some((host, Some(port))) = target.and_then(split_authority) {
            self.row.origin = Some(Origin {
                scheme: Scheme::Tcp,
                host,
                port,
            });
        }
    }
}
