//! The connections whose metrics are not final: the open ones, and those that ended last. Memory is
//! bounded for any length of the run. Must not count.

use crate::attributes::Attributes;
use intact_ledger::{ConnectionId, Failure, Nanos, Setup};
use std::collections::{BTreeMap, VecDeque};

/// Limit of connections that are tracked at the same time. Above it, the oldest counts as opened,
/// and its end is not observed.
pub(crate) const MAX_OPEN: usize = 65_536;
/// Number of ended connections that are remembered, for exchanges that are recorded later.
const MAX_ENDED: usize = 64;

/// A connection whose facts may be revised. It is counted when it ends.
pub(crate) struct TimedConnection {
    /// When its setup began.
    pub(crate) at: Nanos,
    /// The spans of its setup.
    pub(crate) setup: Setup,
    /// Whether it carries HTTP.
    pub(crate) is_http: bool,
    /// Why its setup failed after the transport was opened.
    pub(crate) failed: Option<Failure>,
    /// The attributes of its series.
    pub(crate) attributes: Attributes,
}

/// Open connections and the last that ended.
#[derive(Default)]
pub(crate) struct ConnectionTable {
    /// The oldest first: ids increase.
    open: BTreeMap<ConnectionId, TimedConnection>,
    ended: VecDeque<(ConnectionId, Attributes)>,
}

impl ConnectionTable {
    /// Adds an open connection. Returns the oldest one if there are too many.
    pub(crate) fn open(
        &mut self,
        id: ConnectionId,
        connection: TimedConnection,
    ) -> Option<TimedConnection> {
        self.open.insert(id, connection);
        if self.open.len() <= MAX_OPEN {
            return None;
        }
        let (id, oldest) = self.open.pop_first()?;
        self.remember(id, oldest.attributes.clone());
        Some(oldest)
    }

    /// Replaces the facts of an open connection.
    pub(crate) fn revise(&mut self, id: ConnectionId, connection: TimedConnection) {
        if let Some(open) = self.open.get_mut(&id) {
            *open = connection;
        }
    }

    /// Removes a connection that ended, and remembers its attributes.
    pub(crate) fn close(&mut self, id: ConnectionId) -> Option<TimedConnection> {
        let connection = self.open.remove(&id)?;
        self.remember(id, connection.attributes.clone());
        Some(connection)
    }

    /// Remembers the attributes of a connection that ended.
    pub(crate) fn remember(&mut self, id: ConnectionId, attributes: Attributes) {
        if self.ended.len() == MAX_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((id, attributes));
    }

    /// The attributes of a connection, open or ended.
    pub(crate) fn attributes(&self, id: ConnectionId) -> Option<&Attributes> {
        let open = self.open.get(&id).map(|open| &open.attributes);
        open.or_else(|| {
            let mut ended = self.ended.iter();
            ended
                .find(|(ended, _)| *ended == id)
                .map(|(_, attributes)| attributes)
        })
    }

    /// Removes all open connections.
    pub(crate) fn take_open(&mut self) -> impl Iterator<Item = TimedConnection> + use<> {
        std::mem::take(&mut self.open).into_values()
    }

    /// Number of open connections.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }
}
