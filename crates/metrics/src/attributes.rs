//! The attributes that separate one series from another, derived from connections and exchanges.
//!
//! Names are those of OpenTelemetry's semantic conventions. A value that a peer chooses freely must
//! not open series without limit.

use crate::table::{REUSED, VARIANT};
use intact_ledger::{Connection, Exchange, Method, Outcome, Protocol, Run, Scheme, Vantage};
use intact_units::foreign_text;
use opentelemetry_semantic_conventions::attribute;

/// Characters of a host name that are kept: the limit of DNS (RFC 1035, 2.3.4).
const MAX_NAME: usize = 253;
/// The methods that have series of their own; the others are `_OTHER` (semantic conventions,
/// `http.request.method`).
const METHODS: [&str; 10] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY",
];

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// Text.
    Text(String),
    /// A number.
    Number(i64),
    /// True or false.
    Flag(bool),
}

/// Names and values that identify one series of a metric.
pub type Attributes = Vec<(&'static str, Value)>;

/// The attributes of a connection in this run.
pub(crate) fn of_connection(run: &Run, connection: &Connection) -> Attributes {
    let mut attributes = of_variant(run, connection.variant);
    let (host, port) = match (&connection.origin, connection.peer) {
        (Some(origin), _) => (
            Some(origin.host.chars().take(MAX_NAME).collect()),
            Some(origin.port),
        ),
        // the peer of a server is the client
        (None, Some(peer)) if run.vantage != Vantage::Server => {
            (Some(peer.ip().to_string()), Some(peer.port()))
        }
        (None, _) => (None, None),
    };
    if let Some(host) = host {
        attributes = with(attributes, attribute::SERVER_ADDRESS, &host);
    }
    if let Some(port) = port {
        attributes.push((attribute::SERVER_PORT, Value::Number(i64::from(port))));
    }
    if let Some(origin) = &connection.origin
        && origin.scheme != Scheme::Tcp
    {
        attributes = with(attributes, attribute::URL_SCHEME, origin.scheme.as_str());
    }
    match connection.protocol {
        None | Some(Protocol::Tunnel) => attributes,
        Some(protocol) => match http_version(protocol) {
            Some(version) => with(attributes, attribute::NETWORK_PROTOCOL_VERSION, version),
            None => with(
                attributes,
                attribute::NETWORK_PROTOCOL_NAME,
                protocol.as_str(),
            ),
        },
    }
}

/// The attributes of an exchange whose connection is not known.
pub(crate) fn of_variant(run: &Run, index: Option<u32>) -> Attributes {
    let variant = index.and_then(|index| run.variants.get(index as usize));
    variant.map_or_else(Vec::new, |variant| with(Vec::new(), VARIANT, &variant.name))
}

/// Adds the attributes of an exchange to those of its connection.
pub(crate) fn with_exchange(
    mut attributes: Attributes,
    vantage: Vantage,
    exchange: &Exchange,
) -> Attributes {
    if let Some(method) = &exchange.method {
        attributes = with(attributes, attribute::HTTP_REQUEST_METHOD, known(method));
    }
    if let Some(status) = exchange.status {
        let status = Value::Number(i64::from(status));
        attributes.push((attribute::HTTP_RESPONSE_STATUS_CODE, status));
    }
    if let Some(error) = error_type(vantage, exchange) {
        attributes = with(attributes, attribute::ERROR_TYPE, &error);
    }
    if let Some(reuse) = exchange.reuse {
        attributes.push((REUSED, Value::Flag(reuse.is_reused())));
    }
    attributes
}

/// Whether a connection carries HTTP. A server only logs HTTP; elsewhere bytes that were not
/// recognised as HTTP do not count.
pub(crate) fn is_http(run: &Run, connection: &Connection) -> bool {
    match (connection.protocol, &connection.origin) {
        (Some(protocol), _) => http_version(protocol).is_some() || protocol == Protocol::Tunnel,
        (None, Some(origin)) => origin.scheme != Scheme::Tcp,
        (None, None) => run.vantage == Vantage::Server,
    }
}

/// The kind of a failure, or the status. A client's fault is not an error of the server.
fn error_type(vantage: Vantage, exchange: &Exchange) -> Option<String> {
    let least = match vantage {
        Vantage::Server => 500,
        Vantage::Client | Vantage::OnPath => 400,
    };
    match exchange.outcome {
        Outcome::Failed(kind) => Some(kind.id().to_owned()),
        Outcome::Ok => exchange
            .status
            .filter(|status| *status >= least)
            .map(|status| status.to_string()),
        Outcome::Pending | Outcome::Unknown => None,
    }
}

pub(crate) fn with(mut attributes: Attributes, name: &'static str, text: &str) -> Attributes {
    // collectors and terminals show it as it is
    attributes.push((name, Value::Text(foreign_text::escape(text))));
    attributes
}

/// The method if it is a known one, else `_OTHER`: a client must not create series with invented
/// methods.
fn known(method: &Method) -> &str {
    METHODS
        .into_iter()
        .find(|known| *known == method.as_str())
        .unwrap_or("_OTHER")
}

fn http_version(protocol: Protocol) -> Option<&'static str> {
    match protocol {
        Protocol::Http09
        | Protocol::Http10
        | Protocol::Http11
        | Protocol::Http2
        | Protocol::Http3 => Some(protocol.as_str()),
        Protocol::Tunnel
        | Protocol::Redis
        | Protocol::Postgresql
        | Protocol::Mysql
        | Protocol::Amqp => None,
    }
}
