//! The addresses that `getpeername` and `getsockname` report for relayed sockets.

use super::call_context::CallContext;
use super::lookups::Lookups;
use super::made_sockets::ProgramSocket;
use intact_sys::address;
use intact_sys::seccomp::{Notification, NotificationResponse};
use intact_sys::{sock_diag, socket};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// The addresses that a connection would have without us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RealAddresses {
    /// The program's side.
    pub(crate) local: SocketAddr,
    /// The destination.
    pub(crate) peer: SocketAddr,
    /// Whether the program's socket is an IPv6 one.
    pub(crate) v6: bool,
}

/// Sockets that are remembered; the oldest is forgotten first. A program that holds more open sees
/// the relay's addresses.
const MAX: usize = 1 << 16;

/// The addresses by socket cookie.
#[derive(Default)]
pub(crate) struct AddressTable {
    ends: HashMap<u64, RealAddresses>,
    order: VecDeque<u64>,
}

impl AddressTable {
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether the table had room for all.
    pub(crate) fn is_complete(&self) -> bool {
        self.order.len() < MAX
    }

    pub(crate) fn remember(&mut self, cookie: u64, ends: RealAddresses) {
        if self.ends.insert(cookie, ends).is_none() {
            self.order.push_back(cookie);
        }
        if self.order.len() > MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.ends.remove(&oldest);
        }
    }

    pub(crate) fn find(&self, cookie: u64) -> Option<RealAddresses> {
        self.ends.get(&cookie).copied()
    }

    /// The socket was disconnected.
    pub(crate) fn forget(&mut self, cookie: u64) {
        self.ends.remove(&cookie);
    }
}

/// Responds to `getpeername` and `getsockname` of a relayed socket; the kernel responds for all
/// others.
pub(super) fn report_address(
    notice: &Notification,
    which: fn(RealAddresses) -> SocketAddr,
    lookups: &mut Lookups,
    cx: &mut CallContext,
) -> NotificationResponse {
    try_report_address(notice, which, lookups, cx).unwrap_or(NotificationResponse::Continue)
}

fn try_report_address(
    notice: &Notification,
    which: fn(RealAddresses) -> SocketAddr,
    lookups: &mut Lookups,
    cx: &mut CallContext,
) -> Option<NotificationResponse> {
    if cx.addresses.is_empty() && lookups.follows_none() {
        return None;
    }
    let [_, place, len_place, ..] = notice.arguments;
    let ProgramSocket { cookie, copy, .. } = cx.notifications.socket(notice).ok()?;
    lookups.look_before_program(cookie, cx);
    let addresses = cx.addresses.find(cookie)?;
    // before it is connected, and after it was disconnected, the kernel is right
    let asks_peer = notice.call == libc::SYS_getpeername;
    let is_connected = || match &copy {
        Some(socket) => socket::is_connected(socket),
        None => sock_diag::find(cookie)
            .is_ok_and(|found| found.is_some_and(|socket| socket.was_established)),
    };
    if asks_peer && !lookups.follows(cookie) && !is_connected() {
        return None;
    }
    let bytes = address::write(which(addresses), addresses.v6);
    let mut len = [0; 4];
    notice.read_memory(len_place, &mut len).ok()?;
    let room = usize::try_from(i32::from_ne_bytes(len)).ok()?;
    let given = &bytes[..bytes.len().min(room)];
    if !cx.notifications.is_valid(notice.id) {
        return None;
    }
    notice.write_memory(place, given).ok()?;
    notice
        .write_memory(len_place, &(bytes.len() as u32).to_ne_bytes())
        .ok()?;
    Some(NotificationResponse::Value(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut names = AddressTable::default();
        let ends = RealAddresses {
            local: "127.0.0.1:1".parse().unwrap(),
            peer: "127.0.0.1:2".parse().unwrap(),
            v6: false,
        };
        for cookie in 0..=MAX as u64 {
            names.remember(cookie, ends);
            names.forget(cookie / 2);
            names.remember(cookie / 2, ends);
        }
        assert!(names.order.len() <= MAX);
        assert!(names.ends.len() <= MAX);
    }
}
