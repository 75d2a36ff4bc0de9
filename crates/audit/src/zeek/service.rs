//! What a connection of Zeek's logs is for, by its `service` column.

use super::record::{Field, Record};

/// Where servers of HTTP listen.
pub(super) const PORTS: [u16; 8] = [80, 443, 3000, 8000, 8008, 8080, 8443, 8888];

/// What a connection is for, as `service` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    Http,
    Tls,
    Quic,
    /// Zeek did not find out; so it is where nothing was said.
    Unknown,
    /// Nothing that concerns us.
    Other,
}

impl Service {
    /// What `conn.log` says that a connection is for.
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
