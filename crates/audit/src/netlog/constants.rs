//! The first line of a NetLog: the meaning of the numbers in its events. The numbers change with
//! each version, the names rarely.

use super::event::{Params, RawEvent};
use crate::lenient::Lenient;
use crate::named::named;
use serde::Deserialize;
use std::collections::HashMap;

const NANOS_PER_MS: u64 = 1_000_000;

/// The meaning of the numbers.
#[derive(Default)]
pub(super) struct Constants {
    /// Milliseconds to add to ticks, for milliseconds since 1970.
    offset_ms: u64,
    events: HashMap<u64, Kind>,
    sources: HashMap<u64, Origin>,
    errors: HashMap<i64, String>,
}

named! {
    /// The events that are read.
    pub(super) Kind {
        RequestAlive "REQUEST_ALIVE",
        Cancelled "CANCELLED",
        StartJob "URL_REQUEST_START_JOB",
        StreamRequest "HTTP_STREAM_REQUEST",
        BoundToJob "HTTP_STREAM_REQUEST_BOUND_TO_JOB",
        SendRequest "HTTP_TRANSACTION_SEND_REQUEST",
        RequestHeaders "HTTP_TRANSACTION_SEND_REQUEST_HEADERS" | "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS"
            | "HTTP_TRANSACTION_QUIC_SEND_REQUEST_HEADERS",
        ResponseHeaders "HTTP_TRANSACTION_READ_RESPONSE_HEADERS",
        ReadBody "HTTP_TRANSACTION_READ_BODY",
        BoundToSocket "SOCKET_POOL_BOUND_TO_SOCKET",
        Http2Session "HTTP2_SESSION_POOL_FOUND_EXISTING_SESSION" | "HTTP2_SESSION_POOL_IMPORTED_SESSION_FROM_SOCKET"
            | "HTTP2_SESSION_POOL_FOUND_EXISTING_SESSION_FROM_IP_POOL" | "HTTP_STREAM_JOB_HTTP2_SESSION_AVAILABLE",
        Http2Initialized "HTTP2_SESSION_INITIALIZED",
        Http2Goaway "HTTP2_SESSION_RECV_GOAWAY",
        Http2Setting "HTTP2_SESSION_RECV_SETTING",
        QuicSession "QUIC_SESSION",
        BoundToQuicSession "HTTP_STREAM_JOB_BOUND_TO_QUIC_SESSION" | "QUIC_SESSION_POOL_USE_EXISTING_SESSION"
            | "QUIC_SESSION_POOL_ATTACH_JOB_TO_EXISTING_SESSION",
        ConnectJobCreated "SOCKET_POOL_CONNECT_JOB_CREATED",
        ConnectJob "CONNECT_JOB",
        SocketAlive "SOCKET_ALIVE",
        TcpConnect "TCP_CONNECT",
        SslConnect "SSL_CONNECT",
        BytesSent "SOCKET_BYTES_SENT",
        BytesReceived "SOCKET_BYTES_RECEIVED",
        ReadError "SOCKET_READ_ERROR",
        ClosingSocket "SOCKET_POOL_CLOSING_SOCKET",
    }
}

named! {
    /// The sources whose events are read.
    pub(super) Origin {
        Request "URL_REQUEST" | "WEB_SOCKET_TRANSPORT_CONNECT_JOB",
        Job "HTTP_STREAM_JOB",
        Socket "SOCKET",
        Http2 "HTTP2_SESSION",
        Quic "QUIC_SESSION",
        Connect "CONNECT_JOB" | "TRANSPORT_CONNECT_JOB" | "TCP_CONNECT_JOB" | "SSL_CONNECT_JOB" | "HTTP_PROXY_CONNECT_JOB"
            | "SOCKS_CONNECT_JOB",
    }
}

#[derive(Deserialize)]
struct Line {
    constants: Raw,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    log_event_types: HashMap<String, u64>,
    log_source_type: HashMap<String, u64>,
    time_tick_offset: Lenient,
    #[serde(default)]
    net_error: HashMap<String, i64>,
}

impl Constants {
    /// Reads the first line, which ends in a comma; `None` if it does not hold the constants.
    pub(super) fn read(line: &[u8]) -> Option<Constants> {
        let line = line.trim_ascii();
        let line = line.strip_suffix(b",").unwrap_or(line);
        // the object continues with the events
        let whole = [line, b"}"].concat();
        let raw = serde_json::from_slice::<Line>(&whole).ok()?.constants;
        let events = raw.log_event_types.iter();
        let sources = raw.log_source_type.iter();
        Some(Constants {
            offset_ms: raw.time_tick_offset.count()?,
            events: events
                .filter_map(|(name, number)| Some((*number, Kind::named(name)?)))
                .collect(),
            sources: sources
                .filter_map(|(name, number)| Some((*number, Origin::named(name)?)))
                .collect(),
            errors: raw
                .net_error
                .into_iter()
                .map(|(name, code)| (code, name))
                .collect(),
        })
    }

    pub(super) fn kind(&self, event: &RawEvent<'_>) -> Option<Kind> {
        self.events.get(&event.kind).copied()
    }

    pub(super) fn origin(&self, event: &RawEvent<'_>) -> Option<Origin> {
        self.sources.get(&event.source.kind).copied()
    }

    /// The name of the error that a step ended with, such as `ERR_CONNECTION_REFUSED`; empty if
    /// the code is not known.
    pub(super) fn error(&self, params: &Params) -> Option<&str> {
        let code = params.net_error.number().filter(|&code| code < 0.0)?;
        Some(self.errors.get(&(code as i64)).map_or("", String::as_str))
    }

    /// The time of an event in nanoseconds since 1970.
    pub(super) fn nanos(&self, event: &RawEvent<'_>) -> Option<u64> {
        let ms = self.offset_ms.checked_add(event.time.count()?)?;
        let nanos = ms.checked_mul(NANOS_PER_MS)?;
        (nanos <= i64::MAX as u64).then_some(nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_get_their_names() {
        let line = br#"{"constants":{"logEventTypes":{"TCP_CONNECT":7,"WHATEVER":8},"logSourceType":{"SOCKET":10},"timeTickOffset":"1000","netError":{"ERR_FAILED":-2},"x":[]},"#;
        let constants = Constants::read(line).unwrap();
        let event =
            RawEvent::read(br#"{"phase":1,"source":{"id":4,"type":10},"time":"5","type":7},"#)
                .unwrap();
        assert_eq!(constants.kind(&event), Some(Kind::TcpConnect));
        assert_eq!(constants.origin(&event), Some(Origin::Socket));
        assert_eq!(constants.nanos(&event), Some(1_005_000_000));
        let failed =
            RawEvent::read(br#"{"params":{"net_error":-2},"source":{"id":4},"time":5,"type":7}"#)
                .unwrap();
        assert_eq!(constants.error(&failed.params()), Some("ERR_FAILED"));
        assert!(Constants::read(b"{\"constants\":{}},").is_none());
        assert!(Constants::read(b"").is_none());
    }
}
