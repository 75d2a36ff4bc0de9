//! The names that servers use in JSON, one table per server. To read the lines of another server,
//! add a row.

use super::line::Field;

/// A server with names of its own. A dot separates the names of an object and its values.
pub(super) struct Dialect {
    /// A name that no other server writes at the top level.
    mark: &'static str,
    /// Objects whose values are read.
    objects: &'static [&'static str],
    names: &'static [(&'static str, Field)],
    /// Nanoseconds in one unit of `duration`.
    pub(super) duration_unit: f64,
}

/// nginx with any names, and Envoy: the names of [`Field::named`].
pub(super) static SHARED: Dialect = Dialect {
    mark: "",
    objects: &[],
    names: &[],
    duration_unit: 1e6,
};

/// Caddy. Behind a trusted proxy, `client_ip` is the client, and the connection is that of
/// `remote_ip`.
static CADDY: Dialect = Dialect {
    mark: "request",
    objects: &["request", "request.headers", "request.tls"],
    names: &[
        ("request.remote_ip", Field::Client),
        ("request.remote_port", Field::ClientPort),
        ("request.proto", Field::Protocol),
        ("request.method", Field::Method),
        ("request.host", Field::Host),
        ("request.uri", Field::Target),
        ("request.headers.User-Agent", Field::Agent),
        ("request.tls", Field::Secure),
        ("request.tls.version", Field::Tls),
        ("request.tls.resumed", Field::Resumed),
    ],
    duration_unit: 1e9,
};

static TRAEFIK: Dialect = Dialect {
    mark: "ClientAddr",
    objects: &[],
    names: &[
        ("ClientAddr", Field::Client),
        ("StartUTC", Field::Start),
        ("Duration", Field::Nanos),
        ("RequestMethod", Field::Method),
        ("RequestPath", Field::Target),
        ("RequestProtocol", Field::Protocol),
        ("RequestHost", Field::Host),
        ("RequestScheme", Field::Scheme),
        ("DownstreamStatus", Field::Status),
        ("DownstreamContentSize", Field::Sent),
        ("TLSVersion", Field::Tls),
        ("TLSCipher", Field::Cipher),
        ("request_User-Agent", Field::Agent),
    ],
    duration_unit: 1e9,
};

/// Events of the kind `http` of Suricata, whose time is that of the response.
static SURICATA: Dialect = Dialect {
    mark: "event_type",
    objects: &["http"],
    names: &[
        // of the sensor, and of the transport
        ("host", Field::Other),
        ("proto", Field::Other),
        ("flow_id", Field::Connection),
        ("tx_id", Field::Before),
        ("src_ip", Field::Client),
        ("src_port", Field::ClientPort),
        ("http.hostname", Field::Host),
        ("http.url", Field::Target),
        ("http.http_method", Field::Method),
        ("http.protocol", Field::Protocol),
        ("http.status", Field::Status),
        ("http.length", Field::Sent),
        ("http.http_user_agent", Field::Agent),
    ],
    duration_unit: 1e9,
};

/// Cloudflare's Logpush. Its edge is the server.
static CLOUDFLARE: Dialect = Dialect {
    mark: "EdgeStartTimestamp",
    objects: &[],
    names: &[
        ("ClientIP", Field::Client),
        ("ClientSrcPort", Field::ClientPort),
        ("EdgeStartTimestamp", Field::Start),
        ("EdgeEndTimestamp", Field::End),
        ("ClientRequestMethod", Field::Method),
        ("ClientRequestURI", Field::Target),
        ("ClientRequestProtocol", Field::Protocol),
        ("ClientRequestHost", Field::Host),
        ("ClientRequestScheme", Field::Scheme),
        ("EdgeResponseStatus", Field::Status),
        ("EdgeResponseBytes", Field::Sent),
        ("ClientRequestUserAgent", Field::Agent),
        ("ClientSSLProtocol", Field::Tls),
    ],
    duration_unit: 1e9,
};

static DIALECTS: [&Dialect; 4] = [&CADDY, &TRAEFIK, &SURICATA, &CLOUDFLARE];

/// The field that a name stands for, in a line whose names so far are those of `dialect`.
pub(super) fn field(name: &str, dialect: &Dialect) -> Field {
    let own = |names: &'static [(&str, Field)]| {
        let known = names.iter().find(|(known, _)| *known == name);
        known.map(|(_, field)| *field)
    };
    let others = || {
        DIALECTS
            .into_iter()
            .filter_map(|dialect| own(dialect.names))
    };
    own(dialect.names)
        .or_else(|| others().find(|field| *field != Field::Other))
        .unwrap_or_else(|| Field::named(name))
}

/// Whether the values of an object with this name are read.
pub(super) fn is_read(name: &str) -> bool {
    DIALECTS
        .iter()
        .any(|dialect| dialect.objects.contains(&name))
}

/// The server that writes this name at the top level, if only one does.
pub(super) fn writer(name: &str) -> Option<&'static Dialect> {
    DIALECTS.into_iter().find(|dialect| dialect.mark == name)
}
