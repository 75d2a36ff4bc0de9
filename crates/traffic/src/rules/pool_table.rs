//! What a rule keeps of each pool: of the first ones, because a server has any number of clients.

use super::KEPT;
use crate::{OpenConnection, PoolOwner};
use foldhash::HashMap;
use std::collections::hash_map::Entry;

/// Pools by their destination and owner.
#[derive(Clone, Debug)]
pub(super) struct PoolTable<T> {
    pools: HashMap<(usize, PoolOwner), T>,
}

impl<T> Default for PoolTable<T> {
    fn default() -> PoolTable<T> {
        PoolTable {
            pools: HashMap::default(),
        }
    }
}

impl<T> PoolTable<T> {
    /// What is kept of the pool of a connection, if anything is.
    pub(super) fn known(&mut self, live: &OpenConnection) -> Option<&mut T> {
        self.pools.get_mut(&(live.destination, live.owner))
    }

    /// The pools with their destinations and owners, in the order of these.
    pub(super) fn sorted(&self) -> Vec<(usize, PoolOwner, &T)> {
        let each = self.pools.iter();
        let mut all: Vec<_> = each.map(|(key, pool)| (key.0, key.1, pool)).collect();
        all.sort_unstable_by_key(|(destination, owner, _)| (*destination, *owner));
        all
    }
}

impl<T: Default> PoolTable<T> {
    /// What is kept of the pool of a connection; `None` for a new one beyond the limit.
    pub(super) fn of(&mut self, live: &OpenConnection) -> Option<&mut T> {
        let has_room = self.pools.len() < KEPT;
        match self.pools.entry((live.destination, live.owner)) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(place) => has_room.then(|| place.insert(T::default())),
        }
    }
}
