//! The first look at a `connect`: its address, its socket, and whether it begins a connection that
//! we follow.
//!
//! [`ConnectCalls`](super::connect_calls::ConnectCalls) or
//! [`Passthrough`](super::passthrough::Passthrough) continues.

use super::call_context::CallContext;
use super::lookups::Lookups;
use super::made_sockets::ProgramSocket;
use super::notifications::Destination;
use crate::Unwatched;
use crate::platform::filter::{self, OneForAll};
use intact_ledger::{Connection, Nanos, Owner, StackId};
use intact_sys::address::unmapped;
use intact_sys::seccomp::{Notification, NotificationResponse};
use intact_sys::{sock_diag, socket};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// A `connect` of a TCP socket.
pub(super) struct ConnectRequest {
    pub(super) began: Nanos,
    /// Absent where the program's memory cannot be read.
    pub(super) wanted: Option<SocketAddr>,
    pub(super) cookie: u64,
    /// A copy of the program's socket; absent where only the kernel has it.
    pub(super) socket: Option<OwnedFd>,
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
        let (destination, socket) = cx
            .notifications
            .examine(notice, disconnects, &mut cx.record)
            .ok_or(UNTOUCHED)?;
        let ProgramSocket {
            cookie,
            protocol,
            copy,
        } = socket;
        let wanted = match destination {
            Destination::Address(wanted) => Some(wanted),
            Destination::Unknown => None,
            Destination::Foreign => {
                let is_ours = copy.as_ref().is_some_and(socket::is_of_internet);
                return Err(match is_ours {
                    true => NotificationResponse::Error(libc::EAFNOSUPPORT),
                    false => UNTOUCHED,
                });
            }
            Destination::Disconnect => {
                cx.addresses.forget(cookie);
                return Err(UNTOUCHED);
            }
        };
        if let (Some(wanted), Some(copy)) = (wanted, &copy)
            && wanted.is_ipv6()
            && socket::local_address(copy).is_some_and(|local| local.is_ipv4())
        {
            return Err(NotificationResponse::Error(libc::EAFNOSUPPORT));
        }
        match (protocol, wanted, copy) {
            (libc::IPPROTO_TCP, _, socket) => {
                cx.notifications.release(cookie);
                Ok(ConnectRequest {
                    began,
                    wanted,
                    cookie,
                    socket,
                })
            }
            (libc::IPPROTO_UDP, Some(wanted), Some(copy)) => {
                Err(lookups.connect(notice, copy, wanted, cx))
            }
            // may carry HTTP, and is not followed
            (libc::IPPROTO_MPTCP, _, _) => {
                cx.notifications.release(cookie);
                cx.record.unwatched(Unwatched::Multipath);
                Err(UNTOUCHED)
            }
            (_, Some(_), Some(copy)) if socket::is_stream(&copy) => {
                cx.record.unwatched(Unwatched::OtherProtocol);
                Err(UNTOUCHED)
            }
            _ => Err(UNTOUCHED),
        }
    }

    /// Whether this begins a connection that can be followed.
    pub(super) fn is_followed(&self, thread: u32, cx: &mut CallContext) -> bool {
        // connected, connecting or listening: the kernel has the right response
        let is_idle = match &self.socket {
            Some(socket) => socket::is_idle(socket),
            None => sock_diag::find(self.cookie).is_ok_and(|found| found.is_none()),
        };
        let is_excluded = self.wanted.is_some() && cx.excluded == self.wanted.map(unmapped);
        if is_excluded || !is_idle {
            return false;
        }
        // those that we made are in our own namespace
        let socket = self.socket.as_ref();
        let is_here = socket.is_none_or(|socket| cx.is_here(socket, thread));
        if !is_here {
            cx.record.unwatched(Unwatched::OtherNamespace);
        }
        is_here
    }
}

/// The connection that a call requests, with the lookup that it waited for.
pub(super) fn requested(
    wanted: Option<SocketAddr>,
    began: Nanos,
    owner: Option<Owner>,
    stack: Option<StackId>,
    lookups: &mut Lookups,
    cx: &CallContext,
) -> Connection {
    let mut about = cx.record.connection(wanted, began, owner);
    about.stack = stack;
    lookups.note(&mut about);
    about
}

/// A call of a 32-bit program.
pub(super) enum NarrowCall {
    /// It receives messages: with its real arguments, and the number of the one that has the flags.
    Receive(Notification, usize),
    /// Another one, with the response.
    Other(NotificationResponse),
}

/// Takes a call of a 32-bit program: counts a `connect`, which is left to the kernel, and refuses
/// TCP Fast Open where the filter does not see its flag.
pub(super) fn take_narrow_call(notice: &Notification, cx: &mut CallContext) -> NarrowCall {
    let mut direct = *notice;
    if let Some(flags) = filter::flags_of_narrow_receive(notice.call) {
        return NarrowCall::Receive(direct, flags);
    }
    let asked = OneForAll::of(notice.call, notice.arguments[0]);
    if asked.is_some() {
        let mut words = [0; 24];
        let read = notice.read_memory(notice.arguments[1], &mut words);
        if cx
            .notifications
            .inspected(notice, read, &mut cx.record)
            .is_none()
        {
            return NarrowCall::Other(NotificationResponse::Continue);
        }
        let (words, _) = words.as_chunks();
        for (argument, word) in direct.arguments.iter_mut().zip(words) {
            *argument = u32::from_ne_bytes(*word).into();
        }
    }
    NarrowCall::Other(match asked {
        Some(OneForAll::Receive(flags)) => return NarrowCall::Receive(direct, flags),
        Some(OneForAll::Send(flags)) if has_fast_open(direct.arguments[flags]) => {
            NotificationResponse::Error(libc::EOPNOTSUPP)
        }
        Some(OneForAll::Send(_)) => NotificationResponse::Continue,
        Some(OneForAll::Connect) | None => {
            count_narrow_connect(&direct, cx);
            NotificationResponse::Continue
        }
    })
}

fn has_fast_open(flags: u64) -> bool {
    flags & libc::MSG_FASTOPEN as u64 != 0
}

fn count_narrow_connect(direct: &Notification, cx: &mut CallContext) {
    let disconnects = !cx.addresses.is_empty();
    let examined = cx
        .notifications
        .examine(direct, disconnects, &mut cx.record);
    if let Some((Destination::Address(_), socket)) = examined {
        let reason = match socket.protocol {
            libc::IPPROTO_TCP => Unwatched::ThirtyTwoBits,
            libc::IPPROTO_UDP => return,
            _ => Unwatched::OtherProtocol,
        };
        cx.record.unwatched_socket(socket.cookie, reason);
    }
}
