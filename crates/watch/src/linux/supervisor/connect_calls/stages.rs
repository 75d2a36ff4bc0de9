//! The stages of a `connect` that we make, from the held call to the relayed connection.

use super::call::{CallStage, ConnectCall, Dial, HOLD, LOOK};
use super::local_listener::LocalListener;
use super::pending_listener::{PendingListener, begin};
use super::{CallContext, ConnectCalls, Passthrough};
use crate::Unwatched;
use crate::platform::relay_command::RelayedConnection;
use crate::platform::supervisor::FIRST_CALL;
use crate::platform::supervisor::address_table::RealAddresses;
use intact_ledger::Span;
use intact_sys::address::{on_socket, unmapped};
use intact_sys::process::has_signal;
use intact_sys::seccomp::NotificationResponse;
use intact_sys::socket;
use mio::net::TcpStream;
use mio::{Interest, Token};
use rustix::io::ioctl_fionbio;
use socket2::Socket;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

/// What follows a stage of a call.
enum Next {
    /// Waits in this stage for the destination, at most until this time.
    Wait(CallStage, Option<Instant>),
    /// The program's socket is connected to the local listener of this family.
    Land(usize),
    /// Both ends are established: this is ours towards the program.
    Relay(TcpStream),
    /// The program closed its socket before the destination had responded.
    GiveUp,
    /// The connect failed with this error number.
    Fail(i32),
    /// The relay cannot take this connection: the kernel makes the call.
    LeaveToKernel,
}

impl ConnectCalls {
    /// Advances a call to the stage that it can reach now.
    pub(super) fn step(
        &mut self,
        number: usize,
        passthrough: &mut Passthrough,
        cx: &mut CallContext,
    ) {
        let Some(ConnectCall { mut dial, stage }) = self.calls.remove(&number) else {
            return;
        };
        let next = self.next(number, &mut dial, stage, cx);
        if !matches!(next, Next::Wait(..) | Next::Land(_)) {
            self.by_cookie.remove(&dial.cookie);
        }
        match next {
            Next::Wait(stage, soonest) => self.wait(number, dial, stage, soonest, cx),
            Next::Land(family) => {
                let stage = CallStage::Landing;
                self.calls.insert(number, ConnectCall { dial, stage });
                self.take_arrivals(family, cx);
            }
            Next::Relay(near) => relay(dial, near, cx),
            Next::GiveUp => cx.record.given_up(dial.about),
            Next::Fail(error) => {
                cx.addresses.forget(dial.cookie);
                cx.record.failed(dial.about, error);
            }
            Next::LeaveToKernel => {
                let (notice, reason) = (dial.notice, Unwatched::NoRelay);
                passthrough.follow(&notice, dial.cookie, dial.about, reason, cx);
                let response = NotificationResponse::Continue;
                cx.notifications.respond(notice.id, response);
            }
        }
    }

    fn next(
        &mut self,
        number: usize,
        dial: &mut Dial,
        stage: CallStage,
        cx: &mut CallContext,
    ) -> Next {
        let now = Instant::now();
        match (stage, dial.look(now)) {
            (CallStage::Held { .. }, Some(Err(error))) => {
                let response = NotificationResponse::Error(error);
                cx.notifications.respond(dial.notice.id, response);
                Next::Fail(error)
            }
            // with the listener gone, the kernel refuses the program's next SYN
            (CallStage::Pending { .. }, Some(Err(error))) => Next::Fail(error),
            (CallStage::Held { socket, .. }, Some(Ok(()))) => {
                self.learn(dial, now);
                self.set_deadline(number, dial, None);
                let landed = self.land(number, dial, socket, cx);
                landed.map_or(Next::LeaveToKernel, Next::Land)
            }
            (CallStage::Pending { listener, child }, Some(Ok(()))) => {
                self.learn(dial, now);
                self.set_deadline(number, dial, None);
                self.complete(number, dial, listener, child, cx)
            }
            (CallStage::Held { socket, until }, None) => {
                let interrupted = dial.blocking && !cx.notifications.is_valid(dial.notice.id);
                let response = if interrupted || until.is_some_and(|until| now >= until) {
                    // the next connects of a burst need not wait for the first response
                    if now - dial.began_at(self.round_trip) >= HOLD {
                        self.learn(dial, now);
                    }
                    NotificationResponse::Error(libc::EINPROGRESS)
                } else if dial.blocking && has_signal(dial.notice.thread) {
                    // the kernel continues the connect that is under way, and delivers the signal
                    NotificationResponse::Continue
                } else {
                    let look = dial.blocking.then(|| now + LOOK);
                    let soonest = until.into_iter().chain(look).min();
                    return Next::Wait(CallStage::Held { socket, until }, soonest);
                };
                self.leave_pending(dial, socket, response, cx)
                    .unwrap_or(Next::LeaveToKernel)
            }
            (CallStage::Completing { listener, near }, _) => {
                self.await_completed(dial, listener, near, cx)
            }
            (stage @ (CallStage::Landing | CallStage::Pending { .. }), _) => {
                Next::Wait(stage, None)
            }
        }
    }

    /// Waits for the destination, for the time at which its response may show, and for `soonest`.
    fn wait(
        &mut self,
        number: usize,
        mut dial: Dial,
        stage: CallStage,
        soonest: Option<Instant>,
        cx: &CallContext,
    ) {
        if !dial.registered {
            let token = Token(FIRST_CALL + number * 2);
            dial.registered = cx
                .registry
                .register(&mut dial.far, token, Interest::WRITABLE)
                .is_ok();
        }
        let shows = dial.decided.map(|_| dial.not_before);
        let deadline = soonest.into_iter().chain(shows).min();
        self.set_deadline(number, &mut dial, deadline);
        self.calls.insert(number, ConnectCall { dial, stage });
    }

    fn set_deadline(&mut self, number: usize, dial: &mut Dial, deadline: Option<Instant>) {
        if let Some(before) = dial.deadline.take() {
            self.deadlines.remove(&(before, number));
        }
        if let Some(deadline) = deadline {
            self.deadlines.insert((deadline, number));
        }
        dial.deadline = deadline;
    }

    /// The destination has responded in time: connects the program's socket to the local listener
    /// of this family.
    fn land(
        &mut self,
        number: usize,
        dial: &mut Dial,
        socket: Socket,
        cx: &mut CallContext,
    ) -> Option<usize> {
        let family = usize::from(dial.about.peer.is_some_and(|peer| peer.is_ipv6()));
        let address = self.connect_locally(family, &socket, dial, cx)?;
        let listener = self.local_listeners[family].as_mut()?;
        listener.expect(address, number);
        // a copy of it would delay the end of the connection, should the program close it now
        drop(socket);
        let response = if dial.blocking {
            NotificationResponse::Value(0)
        } else {
            NotificationResponse::Error(libc::EINPROGRESS)
        };
        note_connected(dial, cx);
        dial.landing = Some(cx.record.land());
        // the program runs while we do the rest; its next call waits for that
        cx.notifications.respond(dial.notice.id, response);
        Some(family)
    }

    /// Connects the program's socket to the local listener of this family; returns the socket's
    /// address.
    ///
    /// Other users can fill the listener's queue, and the kernel then drops our SYN. So a new
    /// listener takes its place, at a port that they have yet to find.
    fn connect_locally(
        &mut self,
        family: usize,
        socket: &Socket,
        dial: &Dial,
        cx: &mut CallContext,
    ) -> Option<SocketAddr> {
        for _ in 0..2 {
            let listener = self.local_listeners[family].as_ref()?;
            let address = on_socket(listener.address(), dial.v6);
            connect(socket, address, dial.blocking).ok()?;
            if socket::is_connected(socket) {
                // an interrupted call continues in the background, and the program's next connect
                // completes it
                let is_interrupted = dial.registered && !cx.notifications.is_valid(dial.notice.id);
                if dial.blocking && !is_interrupted {
                    let _ = begin(socket, address);
                }
                return socket::local_address(socket);
            }
            // on a busy machine it is connected soon
            if !socket::is_queue_full(listener) {
                return socket::local_address(socket);
            }
            socket::disconnect(socket);
            // the program must not see the end of this attempt
            let _ = socket.take_error();
            self.take_arrivals(family, cx);
            self.local_listeners[family] = LocalListener::open(family == 1).ok();
        }
        None
    }

    /// Our end of a landed socket is there.
    pub(super) fn arrive(&mut self, number: usize, near: TcpStream, cx: &mut CallContext) {
        if let Some(ConnectCall { mut dial, .. }) = self.calls.remove(&number) {
            remember(&mut dial, cx);
            self.by_cookie.remove(&dial.cookie);
            relay(dial, near, cx);
        }
    }

    /// The destination takes longer: leaves the program's socket in a connect that is under way,
    /// and responds.
    fn leave_pending(
        &mut self,
        dial: &mut Dial,
        socket: Socket,
        response: NotificationResponse,
        cx: &mut CallContext,
    ) -> io::Result<Next> {
        let v6 = dial.about.peer.is_some_and(|peer| peer.is_ipv6());
        let listener = self.pending_listeners.take(v6)?;
        let address = on_socket(listener.address(), dial.v6);
        connect(&socket, address, dial.blocking)?;
        let child = socket::local_address(&socket).ok_or(io::ErrorKind::AddrNotAvailable)?;
        drop(socket);
        remember(dial, cx);
        cx.notifications.respond(dial.notice.id, response);
        let child = unmapped(child);
        Ok(Next::Wait(CallStage::Pending { listener, child }, None))
    }

    /// The destination of a pending call has responded: connects to the program's socket.
    fn complete(
        &mut self,
        number: usize,
        dial: &mut Dial,
        listener: PendingListener,
        child: SocketAddr,
        cx: &mut CallContext,
    ) -> Next {
        dial.landing = Some(cx.record.land());
        let token = Token(FIRST_CALL + number * 2 + 1);
        let near = listener.complete(child).and_then(|mut near| {
            cx.registry.register(&mut near, token, Interest::WRITABLE)?;
            Ok(near)
        });
        match near {
            Ok(near) => self.await_completed(dial, listener, near, cx),
            Err(_) => {
                self.pending_listeners.keep(listener);
                Next::GiveUp
            }
        }
    }

    /// Waits until our end of a pending call is established.
    fn await_completed(
        &mut self,
        dial: &mut Dial,
        listener: PendingListener,
        mut near: TcpStream,
        cx: &mut CallContext,
    ) -> Next {
        let established = match near.take_error() {
            Ok(None) if near.peer_addr().is_ok() => true,
            Ok(None) => return Next::Wait(CallStage::Completing { listener, near }, None),
            _ => false,
        };
        self.pending_listeners.keep(listener);
        if !established {
            return Next::GiveUp;
        }
        let _ = cx.registry.deregister(&mut near);
        note_connected(dial, cx);
        remember(dial, cx);
        Next::Relay(near)
    }
}

/// Hands both ends to the relay.
fn relay(mut dial: Dial, near: TcpStream, cx: &mut CallContext) {
    if dial.registered {
        let _ = cx.registry.deregister(&mut dial.far);
    }
    let _ = dial.far.set_nodelay(true);
    cx.record.relayed(Box::new(RelayedConnection {
        near,
        far: dial.far,
        about: dial.about,
        place: dial.location,
    }));
}

/// The program sees the connection as established from now on.
fn note_connected(dial: &mut Dial, cx: &CallContext) {
    dial.about.setup.connect = Some(Span::new(dial.began, cx.record.now()));
}

/// From now on the program's socket has the addresses of the real connection.
fn remember(dial: &mut Dial, cx: &mut CallContext) {
    let Ok(local) = dial.far.local_addr() else {
        return;
    };
    dial.about.local = Some(local);
    if let Some(peer) = dial.about.peer {
        let addresses = RealAddresses {
            local,
            peer,
            v6: dial.v6,
        };
        cx.addresses.remember(dial.cookie, addresses);
    }
}

/// Connects the program's socket; `in_background`, without waiting, whatever its own mode is.
fn connect(socket: &Socket, to: SocketAddr, in_background: bool) -> io::Result<()> {
    if !in_background {
        return begin(socket, to);
    }
    ioctl_fionbio(socket, true)?;
    let begun = begin(socket, to);
    ioctl_fionbio(socket, false)?;
    begun
}
