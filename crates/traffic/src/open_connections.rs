//! The open connections. Bounded memory. Must not count or judge.

use super::open_connection::OpenConnection;
use foldhash::HashMap;
use intact_ledger::{Caveat, ConnectionId};
use std::collections::VecDeque;

/// Connections that are followed at the same time.
const OPEN: usize = 32_768;

/// Every open connection.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenConnections {
    open: HashMap<ConnectionId, Box<OpenConnection>>,
    /// In the order of their openings.
    order: VecDeque<ConnectionId>,
    forgotten: u64,
}

impl OpenConnections {
    pub(super) fn get(&self, id: ConnectionId) -> Option<&OpenConnection> {
        self.open.get(&id).map(Box::as_ref)
    }

    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut OpenConnection> {
        self.open.get_mut(&id).map(Box::as_mut)
    }

    /// Reads what an exchange on a connection needs.
    pub(super) fn touch(&self, id: ConnectionId) -> Option<(u64, Option<u32>, bool)> {
        let live = self.open.get(&id)?;
        let max_streams = live.connection.terms.max_streams;
        Some((live.exchanges, max_streams, live.is_retiring()))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &OpenConnection> {
        self.open.values().map(Box::as_ref)
    }

    /// Adds a connection that was just opened, and drops the oldest one when there are too many.
    pub(super) fn add(&mut self, live: OpenConnection) {
        while self.open.len() >= OPEN {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            self.forgotten += u64::from(self.open.remove(&oldest).is_some());
        }
        if self.order.len() > 2 * OPEN {
            self.order.retain(|id| self.open.contains_key(id));
        }
        let id = live.connection.id;
        if self.open.insert(id, Box::new(live)).is_none() {
            self.order.push_back(id);
        }
    }

    /// Takes out a connection that ended.
    pub(super) fn remove(&mut self, id: ConnectionId) -> Option<Box<OpenConnection>> {
        self.open.remove(&id)
    }

    /// What the limits left out.
    pub(super) fn caveat(&self) -> Option<Caveat> {
        (self.forgotten > 0).then(|| {
            let message = format!(
                "more than {OPEN} connections were open at the same time: the end of {} is unknown",
                self.forgotten
            );
            Caveat::new("many-connections", message)
        })
    }
}
