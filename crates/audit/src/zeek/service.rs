//! The purpose of a connection, by the `service` column of Zeek's logs.

use super::record::{Field, Record};

/// Ports on which servers of HTTP usually listen.
pub(super) const PORTS: [u16; 8] = [80, 443, 3000, 8000, 8008, 8080, 8443, 8888];

/// The protocol of a connection, according to `service`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Service {
    Http,
    Tls,
    Quic,
    /// Zeek did not detect it. The default, if no log has the column.
    #[default]
    Unknown,
    /// A protocol without HTTP.
    Other,
}

impl Service {
    /// The protocol according to `conn.log`.
    pub(super) fn of(record: &Record<'_>) -> Service {
        let names = record.text(Field::Service).unwrap_or("");
        let has = |wanted: &str| {
            names
                .split(',')
                .any(|name| name.eq_ignore_ascii_case(wanted))
        };
        let tcp = match record.text(Field::Transport) {
            Some("udp") if has("quic") => return Service::Quic,
            Some("tcp") | None => true,
            Some(_) => false,
        };
        if !tcp {
            Service::Other
        } else if has("http") {
            Service::Http
        } else if names.is_empty() {
            Service::Unknown
        } else if names.eq_ignore_ascii_case("ssl") {
            Service::Tls
        } else {
            Service::Other
        }
    }
}
