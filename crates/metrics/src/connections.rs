//! The connections of a run while metrics about them are incomplete: the open ones, and the last that ended. Bounded, whatever
//! the length of the run. Must not count.

use crate::attributes::Attributes;
use intact_ledger::{ConnectionId, Failure, Nanos, Setup};
use std::collections::{BTreeMap, VecDeque};

/// Connections that are tracked at once; beyond, the oldest counts as opened, and its end is not seen.
pub(crate) const MAX_OPEN: usize = 65_536;
/// Connections that have ended and are remembered, for exchanges that are recorded later.
const MAX_ENDED: usize = 64;

/// A connection of which more may become known: it is counted when it ends.
pub(crate) struct TimedConnection {
    /// When its setup began.
    pub(crate) at: Nanos,
    /// The spans of its setup.
    pub(crate) setup: Setup,
    /// Whether it carries HTTP.
    pub(crate) is_http: bool,
    /// Why its setup failed after the transport was opened.
    pub(crate) failed: Option<Failure>,
    /// What its series are.
    pub(crate) attributes: Attributes,
}

/// Open connections and the last that ended.
#[derive(Default)]
pub(crate) struct ConnectionTable {
    /// The oldest first: ids are given in order.
    open: BTreeMap<ConnectionId, TimedConnection>,
    ended: VecDeque<(ConnectionId, Attributes)>,
}

impl ConnectionTable {
    /// Adds an open connection; the oldest one where there are too many.
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

    /// Replaces what is known of an open connection.
    pub(crate) fn revise(&mut self, id: ConnectionId, connection: TimedConnection) {
        if let Some(open) = self.open.get_mut(&id) {
            *open = connection;
        }
    }

    /// Takes a connection that ended, and remembers its attributes.
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

    /// Takes all that are open.
    pub(crate) fn take_open(&mut self) -> impl Iterator<Item = TimedConnection> + use<> {
        std::mem::take(&mut self.open).into_values()
    }

    /// How many are open.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }
}
