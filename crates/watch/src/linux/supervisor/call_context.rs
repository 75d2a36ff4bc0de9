//! The state that all components share: the calls, the record, and the addresses of the program's
//! sockets.

use super::address_table::AddressTable;
use super::notifications::{Notifications, is_our_network};
use super::opening_places::OpeningPlaces;
use super::own_rules::OwnRules;
use super::run_record::RunRecord;
use crate::Mode;
use intact_ledger::{Nanos, Owner, StackId};
use intact_sys::process::network_namespace;
use intact_sys::socket;
use mio::Registry;
use std::net::SocketAddr;
use std::os::fd::{OwnedFd, RawFd};

/// What every component may use to respond to a call.
pub(super) struct CallContext {
    /// The registry of the event loop.
    pub(super) registry: Registry,
    pub(super) notifications: Notifications,
    pub(super) record: RunRecord,
    pub(super) addresses: AddressTable,
    pub(super) own_rules: OwnRules,
    /// Absent where no stack is read.
    pub(super) places: Option<OpeningPlaces>,
    pub(super) mode: Mode,
    /// A destination that is left to the kernel and not recorded.
    pub(super) excluded: Option<SocketAddr>,
    /// Our network namespace, where the kernel reports it.
    pub(super) namespace: Option<u64>,
    /// A socket of ours with this number or a higher one leaves too little room for others.
    pub(super) last_descriptor: RawFd,
}

impl CallContext {
    /// Where in the code the caller opens a connection; it must still wait for its response. Also
    /// when the call began, had nothing been read: what we take is no part of the setup.
    pub(super) fn place(
        &mut self,
        thread: u32,
        owner: Option<&Owner>,
        wanted: Option<SocketAddr>,
        began: Nanos,
    ) -> (Option<StackId>, Nanos) {
        let record = &self.record;
        let Some(places) = &mut self.places else {
            return (None, began);
        };
        let before = record.now();
        let stack = places.read(thread, owner, wanted, |row| record.row(row));
        (stack, began.after(record.now().since(before)))
    }

    /// Whether a socket of this thread is in our own network namespace.
    pub(super) fn is_here(&self, socket: &OwnedFd, thread: u32) -> bool {
        match self.namespace {
            Some(ours) => socket::namespace(socket) == Some(ours),
            // before Linux 5.14 sockets do not show it; a thread does
            None => network_namespace(thread).is_some_and(is_our_network),
        }
    }
}
