//! The state that all components share: the calls, the record, and the addresses of the program's sockets.

use super::address_table::AddressTable;
use super::notifications::Notifications;
use super::run_record::RunRecord;
use crate::Mode;
use mio::Registry;
use std::net::SocketAddr;
use std::os::fd::RawFd;

/// What every component may use to respond to a call.
pub(super) struct CallContext {
    /// The registry of the event loop.
    pub(super) registry: Registry,
    pub(super) notifications: Notifications,
    pub(super) record: RunRecord,
    pub(super) addresses: AddressTable,
    pub(super) mode: Mode,
    /// A destination that is left to the kernel and not recorded.
    pub(super) excluded: Option<SocketAddr>,
    /// Our network namespace, where the kernel reports it.
    pub(super) namespace: Option<u64>,
    /// A socket of ours with this number or a higher one leaves too little room for others.
    pub(super) last_descriptor: RawFd,
}
