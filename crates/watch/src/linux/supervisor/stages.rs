//! The stages of a `connect` that we make: first to the real destination, then the program's own socket to us.

use super::connect_call::{CallStage, ConnectCall, Dial, LOOK};
use super::pending_listener::{PendingListener, begin};
use super::real_addresses::RealAddresses;
use super::{FIRST_CALL, Supervisor};
use crate::Unwatched;
use crate::platform::relay_command::RelayedConnection;
use intact_ledger::{Connection, DialFailure, Failure, Row, SetupPhase, Span};
use intact_sys::address::{on_socket, unmapped};
use intact_sys::process::has_signal;
use intact_sys::seccomp::NotificationResponse;
use intact_sys::socket;
use mio::net::TcpStream;
use mio::{Interest, Token};
use socket2::Socket;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

impl Supervisor {
    /// Goes on with a call as far as it can go now.
    pub(super) fn advance(&mut self, number: usize) {
        let Some(ConnectCall { mut dial, stage }) = self.calls.remove(&number) else {
            return;
        };
        let now = Instant::now();
        let shown = dial.look(now);
        match (stage, shown) {
            (CallStage::Held { .. }, Some(Err(error))) => {
                self.listener
                    .answer(dial.notice.id, NotificationResponse::Error(error));
                self.end_failed(dial, error);
            }
            // with the trap gone, the next SYN finds nobody: the program is refused
            (CallStage::Trapped { .. }, Some(Err(error))) => self.end_failed(dial, error),
            (CallStage::Held { socket, .. }, Some(Ok(()))) => self.land(number, dial, socket),
            (CallStage::Trapped { trap, child }, Some(Ok(()))) => {
                self.meet(number, dial, trap, child);
            }
            (CallStage::Held { socket, until }, None) => {
                let interrupted = dial.blocking && !self.listener.is_valid(dial.notice.id);
                if interrupted || until.is_some_and(|until| now >= until) {
                    self.trap(
                        number,
                        dial,
                        socket,
                        NotificationResponse::Error(libc::EINPROGRESS),
                    );
                } else if dial.blocking && has_signal(dial.notice.thread) {
                    // the kernel goes on with the connect that is under way, and lets the signal in
                    self.trap(number, dial, socket, NotificationResponse::Continue);
                } else {
                    let look = dial.blocking.then(|| now + LOOK);
                    let soonest = until.into_iter().chain(look).min();
                    self.wait(number, dial, CallStage::Held { socket, until }, soonest);
                }
            }
            (CallStage::Meeting { trap, near }, _) => match near.take_error() {
                Ok(None) if near.peer_addr().is_ok() => self.depart(dial, trap, near),
                Ok(None) => self.wait(number, dial, CallStage::Meeting { trap, near }, None),
                _ => self.give_up(dial, trap),
            },
            (stage @ (CallStage::Landing | CallStage::Trapped { .. }), _) => {
                self.wait(number, dial, stage, None);
            }
        }
    }

    /// Waits for the destination, for the time at which its answer may show, and for `soonest`.
    fn wait(&mut self, number: usize, mut dial: Dial, stage: CallStage, soonest: Option<Instant>) {
        if !dial.registered {
            let token = Token(FIRST_CALL + number * 2);
            let registry = self.poll.registry();
            dial.registered = registry
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

    /// The destination has answered in time: connects the program's socket to our pad.
    fn land(&mut self, number: usize, mut dial: Dial, socket: Socket) {
        self.set_deadline(number, &mut dial, None);
        let place = usize::from(dial.about.peer.is_some_and(|peer| peer.is_ipv6()));
        // a call that was interrupted goes on in the background and is completed by the next connect
        let alone = dial.blocking && dial.registered && !self.listener.is_valid(dial.notice.id);
        let landed = self.pads[place].as_mut().and_then(|pad| {
            connect(&socket, on_socket(pad.address(), dial.v6), alone).ok()?;
            pad.expect(socket::local_address(&socket)?, number);
            Some(())
        });
        if landed.is_none() {
            return self.let_go(dial);
        }
        // a copy of it would put off the end of the connection, should the program close it now
        drop(socket);
        let answer = if dial.blocking {
            NotificationResponse::Value(0)
        } else {
            NotificationResponse::Error(libc::EINPROGRESS)
        };
        self.note_connected(&mut dial);
        // the program goes on while we do the rest; what it asks meanwhile waits for that
        self.listener.answer(dial.notice.id, answer);
        let stage = CallStage::Landing;
        self.calls.insert(number, ConnectCall { dial, stage });
        self.take_arrivals(place);
    }

    /// Our end of a landed socket has shown.
    pub(super) fn arrive(&mut self, number: usize, near: TcpStream) {
        let Some(ConnectCall { mut dial, .. }) = self.calls.remove(&number) else {
            return;
        };
        self.remember(&mut dial);
        self.carry(dial, near);
    }

    /// It takes longer: puts the program's socket into a connect that is under way, and lets the caller go on.
    fn trap(
        &mut self,
        number: usize,
        mut dial: Dial,
        socket: Socket,
        answer: NotificationResponse,
    ) {
        let v6 = dial.about.peer.is_some_and(|peer| peer.is_ipv6());
        let trapped = self.traps.take(v6).and_then(|trap| {
            connect(&socket, on_socket(trap.address(), dial.v6), dial.blocking)?;
            let child = socket::local_address(&socket).ok_or(io::ErrorKind::AddrNotAvailable)?;
            Ok((trap, unmapped(child)))
        });
        let Ok((trap, child)) = trapped else {
            return self.let_go(dial);
        };
        drop(socket);
        self.remember(&mut dial);
        self.listener.answer(dial.notice.id, answer);
        self.wait(number, dial, CallStage::Trapped { trap, child }, None);
    }

    /// The destination has answered a trapped call: connects to the program's socket.
    fn meet(&mut self, number: usize, mut dial: Dial, trap: PendingListener, child: SocketAddr) {
        self.set_deadline(number, &mut dial, None);
        let Ok(mut near) = trap.complete(child) else {
            return self.give_up(dial, trap);
        };
        let token = Token(FIRST_CALL + number * 2 + 1);
        let registry = self.poll.registry();
        if registry
            .register(&mut near, token, Interest::WRITABLE)
            .is_err()
        {
            return self.give_up(dial, trap);
        }
        let stage = CallStage::Meeting { trap, near };
        self.calls.insert(number, ConnectCall { dial, stage });
        self.advance(number);
    }

    /// Both ends of a trapped call are established.
    fn depart(&mut self, mut dial: Dial, trap: PendingListener, mut near: TcpStream) {
        let _ = self.poll.registry().deregister(&mut near);
        self.note_connected(&mut dial);
        self.traps.keep(trap);
        self.remember(&mut dial);
        self.carry(dial, near);
    }

    /// As the program sees it, the connection is established now.
    fn note_connected(&self, dial: &mut Dial) {
        dial.about.setup.connect = Some(Span::new(dial.began, self.clock.now()));
    }

    /// The program closed its socket before the destination had answered.
    fn give_up(&mut self, dial: Dial, trap: PendingListener) {
        self.traps.keep(trap);
        self.by_cookie.remove(&dial.cookie);
        self.record_given_up(dial.about);
    }

    pub(super) fn record_given_up(&self, mut about: Connection) {
        about.failed = Some(DialFailure {
            phase: SetupPhase::Connect,
            kind: Failure::ClientClosed,
            detail: Some("the program gave up before the destination answered".into()),
        });
        self.record(Row::Opened(Box::new(about)));
    }

    /// We cannot stand in for this one: the kernel makes the call.
    fn let_go(&mut self, dial: Dial) {
        self.by_cookie.remove(&dial.cookie);
        self.follow(&dial.notice, dial.cookie, dial.about, Unwatched::NoRelay);
        self.listener
            .answer(dial.notice.id, NotificationResponse::Continue);
    }

    fn end_failed(&mut self, dial: Dial, error: i32) {
        self.by_cookie.remove(&dial.cookie);
        self.names.forget(dial.cookie);
        self.record_failure(dial.about, error);
    }

    /// From now on the program's socket goes by the names of the real connection.
    fn remember(&mut self, dial: &mut Dial) {
        let Ok(local) = dial.far.local_addr() else {
            return;
        };
        dial.about.local = Some(local);
        if let Some(peer) = dial.about.peer {
            let ends = RealAddresses {
                local,
                peer,
                v6: dial.v6,
            };
            self.names.remember(dial.cookie, ends);
        }
    }

    /// Hands both ends over to the relay.
    fn carry(&mut self, mut dial: Dial, near: TcpStream) {
        self.by_cookie.remove(&dial.cookie);
        if dial.registered {
            let _ = self.poll.registry().deregister(&mut dial.far);
        }
        let _ = dial.far.set_nodelay(true);
        let carriage = Box::new(RelayedConnection {
            near,
            far: dial.far,
            about: dial.about,
            place: dial.place,
        });
        if self.orders.carry(carriage).is_err() {
            self.leave(Unwatched::NoRelay);
        }
    }

    pub(super) fn record_failure(&self, mut about: Connection, error: i32) {
        let error = io::Error::from_raw_os_error(error);
        about.failed = Some(DialFailure {
            phase: SetupPhase::Connect,
            kind: failure(&error),
            detail: Some(error.to_string().into()),
        });
        self.record(Row::Opened(Box::new(about)));
    }
}

/// Connects the program's socket; where `alone`, without waiting, whatever its own mode is.
fn connect(socket: &Socket, to: SocketAddr, alone: bool) -> io::Result<()> {
    if !alone {
        return begin(socket, to);
    }
    socket.set_nonblocking(true)?;
    let begun = begin(socket, to);
    socket.set_nonblocking(false)?;
    begun
}

/// The ledger's kind of a failed connect.
fn failure(error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(libc::ECONNREFUSED) => Failure::Refused,
        Some(libc::ECONNRESET | libc::ECONNABORTED) => Failure::ConnectReset,
        Some(libc::ETIMEDOUT) => Failure::ConnectTimeout,
        // the second is the kernel's answer when every port is taken
        Some(libc::EADDRNOTAVAIL | libc::EAGAIN) => Failure::NoFreePort,
        Some(libc::EMFILE | libc::ENFILE) => Failure::NoFreeFd,
        _ => Failure::Unreachable,
    }
}
