//! Formats the request of a variant, once.

use crate::config::{Config, ConfigError};
use crate::variant_plan::{Fields, Request};
use intact_client::ServerUrl;
use intact_experiment::AxisValues;
use intact_ledger::{Protocol, Target};
use intact_wire::http1::{Kind, split_field};

/// Fields that HTTP/2 forbids (RFC 9113 section 8.2.2).
const CONNECTION_FIELDS: [&str; 5] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

/// Formats what a variant sends. `absolute`: to a proxy, in absolute form.
pub(crate) fn build(
    config: &Config,
    address: &ServerUrl,
    choice: &AxisValues,
    absolute: bool,
) -> Result<Request, ConfigError> {
    let method = config.method();
    let fields = fields(config, address)?;
    let closes = !choice.keepalive && choice.http != Protocol::Http2;
    let target = if absolute {
        format!("http://{}{}", address.authority(), address.path)
    } else {
        address.path.clone()
    };
    let version = if choice.http == Protocol::Http10 {
        "1.0"
    } else {
        "1.1"
    };
    let mut bytes = format!("{method} {target} HTTP/{version}\r\n").into_bytes();
    for (name, value) in &fields {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    let own_connection = fields
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("connection"));
    match (choice.http, choice.keepalive, own_connection) {
        (_, _, Some(_)) => {}
        (Protocol::Http10, true, None) => bytes.extend_from_slice(b"Connection: keep-alive\r\n"),
        (Protocol::Http11, false, None) => bytes.extend_from_slice(b"Connection: close\r\n"),
        _ => {}
    }
    bytes.extend_from_slice(b"\r\n");
    let head = bytes.len();
    bytes.extend_from_slice(&config.body);
    let says_close =
        own_connection.is_some_and(|(_, value)| value.to_ascii_lowercase().contains("close"));
    Ok(Request {
        kind: match method.as_str() {
            "HEAD" => Kind::Head,
            "CONNECT" => Kind::Connect,
            _ => Kind::Plain,
        },
        target: Target::new(&address.path),
        bytes: bytes.into(),
        head,
        fields: http2_fields(method.as_str(), address, &fields),
        body: config.body.as_slice().into(),
        method,
        closes: closes || says_close,
    })
}

/// Pseudo-fields first, names in lower case, nothing that belongs to a connection.
fn http2_fields(method: &str, address: &ServerUrl, fields: &[(String, String)]) -> Fields {
    let authority = fields
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map_or_else(|| address.authority(), |(_, value)| value.clone());
    let mut all = vec![
        (":method".to_owned(), method.to_owned()),
        (":scheme".to_owned(), address.scheme.as_str().to_owned()),
        (":authority".to_owned(), authority),
        (":path".to_owned(), address.path.clone()),
    ];
    for (name, value) in fields {
        let name = name.to_ascii_lowercase();
        if name != "host" && !CONNECTION_FIELDS.contains(&name.as_str()) {
            all.push((name, value.clone()));
        }
    }
    all.into_iter()
        .map(|(name, value)| (name.into_bytes().into(), value.into_bytes().into()))
        .collect()
}

/// The header fields in order: `Host` first, then ours where not given, then the given ones.
fn fields(config: &Config, address: &ServerUrl) -> Result<Vec<(String, String)>, ConfigError> {
    let mut given = Vec::new();
    for header in &config.headers {
        let wrong = |reason| ConfigError::Header {
            field: header.split(':').next().unwrap_or("").to_owned(),
            reason,
        };
        let (name, value) = split_field(header).map_err(wrong)?;
        if name.eq_ignore_ascii_case("content-length")
            || name.eq_ignore_ascii_case("transfer-encoding")
        {
            return Err(wrong("the length of the body is ours to say: use -d"));
        }
        given.push((name.to_owned(), value.to_owned()));
    }
    let has = |wanted: &str| {
        given
            .iter()
            .any(|(name, _): &(String, String)| name.eq_ignore_ascii_case(wanted))
    };
    let mut fields = Vec::new();
    if !has("host") {
        fields.push(("Host".to_owned(), address.authority()));
    }
    if !has("user-agent") {
        fields.push(("User-Agent".to_owned(), config.user_agent.clone()));
    }
    if !has("accept") {
        fields.push(("Accept".to_owned(), "*/*".to_owned()));
    }
    let wants_length =
        !config.body.is_empty() || matches!(config.method.as_str(), "POST" | "PUT" | "PATCH");
    if wants_length {
        fields.push(("Content-Length".to_owned(), config.body.len().to_string()));
    }
    fields.extend(given);
    Ok(fields)
}
