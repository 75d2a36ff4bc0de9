//! The first look at a `connect`: its address, its socket, and whether it begins a connection that we follow.
//!
//! [`ConnectCalls`](super::connect_calls::ConnectCalls) or [`Passthrough`](super::passthrough::Passthrough) continues.

use super::call_context::CallContext;
use super::lookups::Lookups;
use crate::Unwatched;
use crate::platform::filter::is_indirect_32;
use intact_ledger::{Connection, Nanos, Owner};
use intact_sys::address::{AddressKind, unmapped};
use intact_sys::seccomp::{Notification, NotificationResponse};
use intact_sys::socket;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// A `connect` of a TCP socket.
pub(super) struct ConnectRequest {
    pub(super) began: Nanos,
    pub(super) wanted: SocketAddr,
    /// A copy of the program's socket.
    pub(super) socket: OwnedFd,
    pub(super) cookie: u64,
}

impl ConnectRequest {
    /// Reads the call; `Err`: the response to a call that makes no TCP connection.
    pub(super) fn read(
        notice: &Notification,
        lookups: &mut Lookups,
        cx: &mut CallContext,
    ) -> Result<ConnectRequest, NotificationResponse> {
        const UNTOUCHED: NotificationResponse = NotificationResponse::Continue;
        let began = cx.record.now();
        let disconnects = !cx.addresses.is_empty();
        let (named, socket) = cx
            .notifications
            .examine(notice, disconnects, &mut cx.record)
            .ok_or(UNTOUCHED)?;
        let AddressKind::Inet(wanted) = named else {
            if let Ok(cookie) = socket::cookie(&socket) {
                cx.addresses.forget(cookie);
            }
            return Err(UNTOUCHED);
        };
        match socket::protocol(&socket).unwrap_or(0) {
            libc::IPPROTO_TCP => {}
            libc::IPPROTO_UDP => return Err(lookups.connect(notice, socket, wanted, cx)),
            // may carry HTTP, and is not followed
            libc::IPPROTO_MPTCP => {
                cx.record.unwatched(Unwatched::Multipath);
                return Err(UNTOUCHED);
            }
            _ => return Err(UNTOUCHED),
        }
        let cookie = socket::cookie(&socket).map_err(|_| UNTOUCHED)?;
        Ok(ConnectRequest {
            began,
            wanted,
            socket,
            cookie,
        })
    }

    /// Whether this begins a connection that can be followed.
    pub(super) fn is_followed(&self, cx: &mut CallContext) -> bool {
        // connected, connecting or listening: the kernel has the right response
        if cx.excluded == Some(unmapped(self.wanted)) || !socket::is_idle(&self.socket) {
            return false;
        }
        let is_here = socket::namespace(&self.socket) == cx.namespace;
        if !is_here {
            cx.record.unwatched(Unwatched::OtherNamespace);
        }
        is_here
    }
}

/// The connection that a call requests, with the lookup that it waited for.
pub(super) fn requested(
    wanted: SocketAddr,
    began: Nanos,
    owner: Option<Owner>,
    lookups: &mut Lookups,
    cx: &CallContext,
) -> Connection {
    let mut about = cx.record.connection(wanted, began, owner);
    lookups.note(&mut about);
    about
}

/// Counts a `connect` of a 32-bit program, which is left to the kernel.
pub(super) fn count_connect_32(notice: &Notification, cx: &mut CallContext) -> Option<()> {
    let mut direct = *notice;
    if is_indirect_32(notice.call) {
        let mut words = [0; 12];
        let read = notice.read_memory(notice.arguments[1], &mut words);
        cx.notifications.inspected(notice, read, &mut cx.record)?;
        for (argument, word) in direct.arguments.iter_mut().zip(words.chunks_exact(4)) {
            *argument = u64::from(u32::from_ne_bytes(*word.first_chunk()?));
        }
    }
    let disconnects = !cx.addresses.is_empty();
    let (named, socket) = cx
        .notifications
        .examine(&direct, disconnects, &mut cx.record)?;
    if matches!(named, AddressKind::Inet(_)) && socket::protocol(&socket).ok()? == libc::IPPROTO_TCP
    {
        let cookie = socket::cookie(&socket).ok()?;
        cx.record.unwatched_socket(cookie, Unwatched::ThirtyTwoBits);
    }
    Some(())
}
