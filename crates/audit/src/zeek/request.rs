//! A request of Zeek's `http.log`, until it is assigned to its connection.

use super::record::{Field, Record};
use crate::event_writer::EventWriter;
use crate::fields;
use crate::log::{self, Line};
use intact_ledger::{Exchange, Origin, Protocol};
use std::net::SocketAddr;

/// A request that waits to be ordered.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) at: u64,
    pub(super) ends: Option<(SocketAddr, SocketAddr)>,
    pub(super) nth: Option<u32>,
    pub(super) one: Exchange,
    pub(super) protocol: Option<Protocol>,
    host: Option<String>,
    pub(super) agent: Option<String>,
}

impl Request {
    /// A request as a line of `http.log` describes it. Its time is that of the first byte.
    pub(super) fn of(record: &Record<'_>, writer: &EventWriter<'_>) -> Option<Request> {
        let at = record.start()?;
        let text = |field| record.text(field);
        let line = Line {
            method: text(Field::Method).map(Into::into),
            target: text(Field::Target).map(Into::into),
            status: record.number(Field::Status).and_then(fields::status),
            sent: record.number(Field::Body),
            ..Line::default()
        };
        if line.method.is_none() && line.target.is_none() {
            return None;
        }
        Some(Request {
            at,
            ends: record.ends(),
            nth: record.number(Field::Nth),
            one: log::exchange(&line, 0, at, at, writer),
            protocol: text(Field::Version).and_then(fields::protocol),
            host: text(Field::Host).map(str::to_owned),
            agent: text(Field::Agent).map(str::to_owned),
        })
    }

    /// The origin of an unencrypted request; `port` is that of the connection.
    pub(super) fn origin(&self, port: u16) -> Option<Origin> {
        let line = Line {
            secure: Some(false),
            host: self.host.as_deref().map(Into::into),
            ..Line::default()
        };
        let named = log::origin(&line)?;
        Some(Origin { port, ..named })
    }
}
