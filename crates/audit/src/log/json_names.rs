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

static DIALECTS: [&Dialect; 2] = [&CADDY, &TRAEFIK];

/// The field that a name stands for.
pub(super) fn field(name: &str) -> Field {
    let names = DIALECTS.iter().flat_map(|dialect| dialect.names);
    let own = names
        .filter(|(known, _)| *known == name)
        .map(|(_, field)| *field);
    own.chain([Field::named(name)])
        .next()
        .unwrap_or(Field::Other)
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
