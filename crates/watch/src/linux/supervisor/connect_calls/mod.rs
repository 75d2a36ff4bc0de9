//! Connects that we make for the program: first to the real destination, then the program's own
//! socket to us.
//!
//! [`Supervisor`](super::Supervisor) hands in calls, arrivals and deadlines; `stages` advances each
//! call.

mod call;
mod far_hosts;
mod local_listener;
mod pending_listener;
mod stages;

use super::call_context::CallContext;
use super::connect_request::{ConnectRequest, requested};
use super::lookups::Lookups;
use super::passthrough::Passthrough;
use crate::Unwatched;
use crate::platform::relay_command::Successor;
use call::{CallStage, ConnectCall, Dial, HOLD};
use far_hosts::FarHosts;
use intact_sys::address::unmapped;
use intact_sys::credentials;
use intact_sys::seccomp::{Notification, NotificationResponse};
use intact_sys::socket;
use local_listener::LocalListener;
use mio::Token;
use mio::net::TcpStream;
use pending_listener::{PendingListeners, begin};
use socket2::Socket;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// All calls of `connect` that are under way.
pub(super) struct ConnectCalls {
    calls: HashMap<usize, ConnectCall>,
    /// Numbers of calls by the cookie of the program's socket.
    by_cookie: HashMap<u64, usize>,
    deadlines: BTreeSet<(Instant, usize)>,
    next_call: usize,
    /// One a family, where the machine has it.
    local_listeners: [Option<LocalListener>; 2],
    pending_listeners: PendingListeners,
    /// The round trip that is added to each connection.
    round_trip: Duration,
    far_hosts: FarHosts,
}

impl ConnectCalls {
    pub(super) fn new(round_trip: Duration) -> ConnectCalls {
        ConnectCalls {
            calls: HashMap::new(),
            by_cookie: HashMap::new(),
            deadlines: BTreeSet::new(),
            next_call: 0,
            // a machine may have one family only
            local_listeners: [
                LocalListener::open(false).ok(),
                LocalListener::open(true).ok(),
            ],
            pending_listeners: PendingListeners::default(),
            round_trip,
            far_hosts: FarHosts::default(),
        }
    }

    /// The network namespace of our listeners.
    pub(super) fn namespace(&self) -> Option<u64> {
        let mut listeners = self.local_listeners.iter().flatten();
        listeners.next().and_then(socket::namespace)
    }

    /// Whether a call of the socket with this cookie is under way.
    pub(super) fn contains(&self, cookie: u64) -> bool {
        self.by_cookie.contains_key(&cookie)
    }

    /// When a call must be looked at next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(when, _)| *when)
    }

    /// Takes a `connect`; `None`: the response comes later.
    pub(super) fn connect(
        &mut self,
        notice: &Notification,
        lookups: &mut Lookups,
        passthrough: &mut Passthrough,
        cx: &mut CallContext,
    ) -> Option<NotificationResponse> {
        const UNTOUCHED: Option<NotificationResponse> = Some(NotificationResponse::Continue);
        let request = match ConnectRequest::read(notice, lookups, cx) {
            Ok(request) => request,
            Err(response) => return Some(response),
        };
        let cookie = request.cookie;
        if let Some(call) = self.held_call(cookie) {
            return take_again(&mut call.dial, notice, cx);
        }
        // what was read is the caller's only if it still waits
        if !request.is_followed(notice.thread, cx) || !cx.notifications.is_valid(notice.id) {
            return UNTOUCHED;
        }
        let ConnectRequest {
            began,
            wanted,
            socket,
            ..
        } = request;
        passthrough.notice_replaced(cookie, socket.as_ref());
        let owner = cx.notifications.owner(notice.thread);
        let (stack, began) = cx.place(notice.thread, owner.as_ref(), wanted, began);
        let about = requested(wanted, began, owner, stack, lookups, cx);
        let (Some(socket), Some(wanted)) = (socket, wanted) else {
            passthrough.follow(notice, cookie, about, Unwatched::NoRelay, cx);
            return UNTOUCHED;
        };
        let Some(local) = socket::local_address(&socket) else {
            return UNTOUCHED;
        };
        let socket = Socket::from(socket);
        if let Some(reason) = not_for_us(&socket, local, cx) {
            passthrough.follow(notice, cookie, about, reason, cx);
            return UNTOUCHED;
        }
        let looked_up = lookups.looked_up(unmapped(wanted).ip());
        let to = match cx.record.successor(wanted, looked_up) {
            None => unmapped(wanted),
            Some(Successor::Server(other)) => other,
            Some(Successor::Nothing) => {
                cx.record.failed(about, libc::ECONNREFUSED);
                return Some(NotificationResponse::Error(libc::ECONNREFUSED));
            }
        };
        let far = match dial_far(notice.thread, &socket, local, to, cx) {
            Ok(far) => far,
            Err(DialError::NotDialled(reason)) => {
                passthrough.follow(notice, cookie, about, reason, cx);
                return UNTOUCHED;
            }
            Err(DialError::Refused(number)) => {
                cx.record.failed(about, number);
                return Some(NotificationResponse::Error(number));
            }
        };
        let blocking = !socket.nonblocking().unwrap_or(false);
        let now = Instant::now();
        let dial = Dial {
            notice: *notice,
            cookie,
            v6: local.is_ipv6(),
            blocking,
            location: cx.notifications.location(notice, cookie),
            far: TcpStream::from_std(far.into()),
            is_elsewhere: to != unmapped(wanted),
            registered: false,
            decided: None,
            not_before: now + self.round_trip,
            landing: None,
            deadline: None,
            began,
            about,
        };
        self.hold(dial, socket, now, passthrough, cx);
        None
    }

    /// The call that is held for this socket.
    fn held_call(&mut self, cookie: u64) -> Option<&mut ConnectCall> {
        let call = self.calls.get_mut(self.by_cookie.get(&cookie)?)?;
        matches!(call.stage, CallStage::Held { .. }).then_some(call)
    }

    /// Holds a call until its destination responds, or for as long as its caller may wait.
    fn hold(
        &mut self,
        mut dial: Dial,
        socket: Socket,
        now: Instant,
        passthrough: &mut Passthrough,
        cx: &mut CallContext,
    ) {
        // on this machine it is decided already
        let is_decided = dial.look(now).is_some();
        let until = if dial.blocking && !is_decided {
            socket
                .write_timeout()
                .ok()
                .flatten()
                .map(|patience| now + patience)
        } else if !is_decided && self.is_far(&dial) {
            Some(now)
        } else {
            Some(now + HOLD)
        };
        let number = self.next_call;
        self.next_call += 1;
        self.by_cookie.insert(dial.cookie, number);
        let stage = CallStage::Held { socket, until };
        self.calls.insert(number, ConnectCall { dial, stage });
        self.advance(number, passthrough, cx);
    }

    /// Whether the destination cannot respond, or did not respond last time, within the time that a
    /// non-blocking connect is held.
    fn is_far(&self, dial: &Dial) -> bool {
        let is_far = |peer: SocketAddr| self.far_hosts.contains(peer.ip());
        self.round_trip >= HOLD || dial.about.peer.is_some_and(is_far)
    }

    /// Remembers how long the destination has taken so far.
    fn learn(&mut self, dial: &Dial, now: Instant) {
        if let Some(peer) = dial.about.peer {
            let time = now - dial.began_at(self.round_trip);
            self.far_hosts.took(peer.ip(), time);
        }
    }

    /// Something happened at one of a call's sockets.
    pub(super) fn take_event(
        &mut self,
        Token(token): Token,
        passthrough: &mut Passthrough,
        cx: &mut CallContext,
    ) {
        self.advance((token - super::FIRST_CALL) / 2, passthrough, cx);
    }

    /// Advances the calls that are due.
    pub(super) fn take_deadlines(&mut self, passthrough: &mut Passthrough, cx: &mut CallContext) {
        let now = Instant::now();
        while let Some(&(when, call)) = self.deadlines.first() {
            if when > now {
                break;
            }
            self.deadlines.pop_first();
            self.advance(call, passthrough, cx);
        }
    }

    /// Takes the program's sockets that have arrived at a local listener.
    pub(super) fn take_arrivals(&mut self, family: usize, cx: &mut CallContext) {
        while let Some((call, near)) = self.local_listeners[family]
            .as_mut()
            .and_then(LocalListener::accept)
        {
            self.arrive(call, near, cx);
        }
        if let Some(listener) = &mut self.local_listeners[family] {
            // where it cannot, the next landing takes this one along
            let _ = listener.listen(&cx.registry, super::LOCAL_LISTENERS[family]);
        }
    }

    /// Runs a step of one call; a panic ends that call only.
    fn advance(&mut self, number: usize, passthrough: &mut Passthrough, cx: &mut CallContext) {
        let notice = self.calls.get(&number).map(|call| call.dial.notice.id);
        let step = || self.step(number, passthrough, cx);
        if catch_unwind(AssertUnwindSafe(step)).is_err() {
            cx.record.unwatched(Unwatched::Fault);
            self.calls.remove(&number);
            if let Some(id) = notice {
                cx.notifications.respond(id, NotificationResponse::Continue);
            }
        }
    }

    /// The run is over: records the calls that are under way as given up.
    pub(super) fn finish(self, cx: &CallContext) {
        for call in self.calls.into_values() {
            cx.record.given_up(call.dial.about);
        }
    }
}

/// The program makes a call again that is held for it.
fn take_again(
    dial: &mut Dial,
    notice: &Notification,
    cx: &CallContext,
) -> Option<NotificationResponse> {
    if cx.notifications.is_valid(dial.notice.id) {
        return Some(NotificationResponse::Error(libc::EALREADY));
    }
    // a signal interrupted the call
    dial.notice = *notice;
    None
}

/// Why there is no socket on its way to the destination.
enum DialError {
    /// The program makes this connection itself.
    NotDialled(Unwatched),
    /// The kernel refused at once, with this error number.
    Refused(i32),
}

/// Why a connect of ours would not be the same as the program's own.
fn not_for_us(socket: &Socket, local: SocketAddr, cx: &CallContext) -> Option<Unwatched> {
    if cx.own_rules.in_force {
        return Some(Unwatched::Landlock);
    }
    // from one port, only one socket can be connected to our listener
    if local.port() != 0 && socket::shares_port(socket) {
        return Some(Unwatched::SharedPort);
    }
    if socket::is_in_repair(socket) {
        return Some(Unwatched::Repaired);
    }
    socket::is_steered(socket).then_some(Unwatched::Steered)
}

/// Begins to connect a socket of ours in the place of the program's, which then connects to us. It
/// belongs to the same user and group: rules by owner hold for it.
fn dial_far(
    thread: u32,
    socket: &Socket,
    local: SocketAddr,
    to: SocketAddr,
    cx: &CallContext,
) -> Result<Socket, DialError> {
    const NO_SOCKET: DialError = DialError::NotDialled(Unwatched::NoRelay);
    socket::connect_at_once(socket);
    let owner = credentials::owner_of(socket).map_err(|_| NO_SOCKET)?;
    let last_descriptor = cx.last_descriptor;
    let dialled = cx.notifications.make_for(thread, Some(owner), || {
        let far = far_socket(socket, local, to).map_err(|_| NO_SOCKET)?;
        if far.as_raw_fd() >= last_descriptor {
            return Err(NO_SOCKET);
        }
        begin(&far, to).map_err(|error| {
            DialError::Refused(error.raw_os_error().unwrap_or(libc::ECONNREFUSED))
        })?;
        Ok(far)
    });
    dialled.unwrap_or(Err(DialError::NotDialled(Unwatched::OtherOwner)))
}

/// A socket of ours in the place of the program's, bound to the same address and port if that is
/// bound.
fn far_socket(socket: &Socket, local: SocketAddr, to: SocketAddr) -> io::Result<Socket> {
    let far = socket::tcp_for(to)?;
    socket::mirror(socket, &far);
    let local = unmapped(local);
    if local.port() != 0 {
        socket::share_address(socket, &far, local)?;
    } else if !local.ip().is_unspecified() {
        socket::bind_address(&far, local.ip())?;
    }
    Ok(far)
}
