//! Makes the program's `connect` calls: first to the real destination, then the program's own socket to us.

use super::call::{Call, Dial, HOLD, LOOK, Stage};
use super::names::Ends;
use super::trap::{Trap, begin};
use super::{FIRST_CALL, Supervisor, listen_outside};
use crate::platform::order::Carriage;
use crate::platform::sys::address::{self, Named, on_socket, unmapped};
use crate::platform::sys::filter::is_indirect_32;
use crate::platform::sys::notify::{Answer, Notice};
use crate::platform::sys::process::{has_signal, read_memory};
use crate::platform::sys::socket;
use crate::{Mode, Unwatched};
use ledger::{Connection, DialFailure, Failure, Origin, Owner, Row, Scheme, SetupPhase, Span};
use mio::net::TcpStream;
use mio::{Interest, Token};
use socket2::Socket;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;

impl Supervisor {
    /// Takes a `connect`; `None`: it is answered later.
    pub(super) fn connect(&mut self, notice: &Notice) -> Option<Answer> {
        const UNTOUCHED: Option<Answer> = Some(Answer::Continue);
        let began = self.clock.now();
        let Some((named, socket)) = self.examine(notice) else {
            return UNTOUCHED;
        };
        let Ok(cookie) = socket::cookie(&socket) else {
            return UNTOUCHED;
        };
        let protocol = socket::protocol(&socket).unwrap_or(0);
        let (Named::Inet(wanted), Some(local)) = (named, socket::local_address(&socket)) else {
            self.names.forget(cookie);
            return UNTOUCHED;
        };
        if protocol != libc::IPPROTO_TCP {
            if protocol == libc::IPPROTO_UDP {
                return Some(self.connect_datagrams(notice, cookie, socket, local, wanted));
            }
            return UNTOUCHED;
        }
        if let Some(number) = self.by_cookie.get(&cookie)
            && let Some(call) = self.calls.get_mut(number)
            && let Stage::Held { .. } = call.stage
        {
            if self.listener.is_valid(call.dial.notice.id) {
                return Some(Answer::Error(libc::EALREADY));
            }
            // a signal interrupted the call, and the program makes it again
            call.dial.notice = *notice;
            return None;
        }
        if self.apart == Some(unmapped(wanted)) {
            return UNTOUCHED;
        }
        // connected, connecting or listening: the kernel has the right answer
        if !socket::is_idle(&socket) {
            return UNTOUCHED;
        }
        let socket = Socket::from(socket);
        if socket::namespace(&socket) != self.namespace {
            self.leave(Unwatched::OtherNamespace);
            return UNTOUCHED;
        }
        // what was read is the caller's only if it still waits
        if !self.listener.is_valid(notice.id) {
            return UNTOUCHED;
        }
        let mut about = Connection::new(self.numbers.connection(), began);
        about.variant = self.place.map(|place| place.variant);
        about.round = self.place.map(|place| place.round);
        about.environment = self.place.and_then(|place| place.environment);
        about.peer = Some(unmapped(wanted));
        about.origin = Some(origin(unmapped(wanted)));
        about.owner = self.owner(notice.thread);
        self.note_lookup(&mut about);
        if self.mode == Mode::Info {
            self.follow(cookie, about, Unwatched::NoRelay);
            return UNTOUCHED;
        }
        if socket::is_steered(&socket) {
            self.follow(cookie, about, Unwatched::Steered);
            return UNTOUCHED;
        }
        socket::connect_at_once(&socket);
        let stands_in = stand_in(&socket, local, unmapped(wanted));
        let Some(far) = stands_in
            .ok()
            .filter(|far| far.as_raw_fd() < self.last_descriptor)
        else {
            self.follow(cookie, about, Unwatched::NoRelay);
            return UNTOUCHED;
        };
        if let Err(error) = begin(&far, unmapped(wanted)) {
            let number = error.raw_os_error().unwrap_or(libc::ECONNREFUSED);
            self.record_failure(about, number);
            return Some(Answer::Error(number));
        }
        let far = TcpStream::from_std(far.into());
        let blocking = !socket.nonblocking().unwrap_or(false);
        let now = Instant::now();
        let mut dial = Dial {
            notice: *notice,
            cookie,
            v6: local.is_ipv6(),
            blocking,
            place: self
                .processes
                .place(notice.thread, notice.arguments[0] as i32, cookie),
            far,
            registered: false,
            decided: None,
            not_before: now + self.round_trip,
            deadline: None,
            began,
            about,
        };
        // on this machine it is decided already
        let is_decided = dial.look(now).is_some();
        let until = if blocking && !is_decided {
            socket::patience(&socket).map(|patience| now + patience)
        } else {
            Some(now + HOLD)
        };
        let number = self.next_call;
        self.next_call += 1;
        self.by_cookie.insert(cookie, number);
        let stage = Stage::Held { socket, until };
        self.calls.insert(number, Call { dial, stage });
        self.guard(number, Supervisor::advance);
        None
    }

    /// Counts a `connect` of a 32-bit program, which is left to the kernel.
    pub(super) fn count_connect_32(&mut self, notice: &Notice) -> Option<()> {
        let mut direct = *notice;
        if is_indirect_32(notice.call) {
            let mut words = [0; 12];
            read_memory(notice.thread, notice.arguments[1], &mut words).ok()?;
            for (argument, word) in direct.arguments.iter_mut().zip(words.chunks_exact(4)) {
                *argument = u64::from(u32::from_ne_bytes(*word.first_chunk()?));
            }
        }
        let (named, socket) = self.examine(&direct)?;
        if matches!(named, Named::Inet(_)) && socket::protocol(&socket).ok()? == libc::IPPROTO_TCP {
            self.leave(Unwatched::ThirtyTwoBits);
        }
        Some(())
    }

    /// The process that a call comes from.
    pub(super) fn owner(&mut self, thread: u32) -> Option<Owner> {
        let identity = self.processes.identify(thread)?;
        Some(Owner {
            pid: identity.process,
            command: identity.command,
        })
    }

    /// The look-up that a connection waited for is the first part of its set-up, and gives it its name until a better one is
    /// known.
    fn note_lookup(&mut self, about: &mut Connection) {
        let Some(address) = about.peer.map(|peer| peer.ip()) else {
            return;
        };
        if let Some(origin) = &mut about.origin
            && let Some(name) = self.lookups.name_of(address)
        {
            origin.host = name;
        }
        let process = Supervisor::process_of(about.owner.as_ref());
        if let Some(span) = self.lookups.claim(process, address, about.at) {
            about.at = span.start;
            about.setup.dns = Some(span);
        }
    }

    /// The address that a `connect` names, and a copy of its socket; `None` where it is not for us.
    fn examine(&mut self, notice: &Notice) -> Option<(Named, OwnedFd)> {
        let [descriptor, place, len, ..] = notice.arguments;
        let len = usize::try_from(len as i32).ok()?.min(address::MAX_LEN);
        let mut bytes = [0; address::MAX_LEN];
        self.allowed(read_memory(notice.thread, place, &mut bytes[..len]))?;
        let named = address::parse(&bytes[..len])?;
        // of all other families only the request to disconnect concerns us
        let family = i32::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        if named == Named::Other && (family != libc::AF_UNSPEC || self.names.is_empty()) {
            return None;
        }
        let copied = self
            .processes
            .copy_descriptor(notice.thread, descriptor as i32);
        Some((named, self.allowed(copied)?))
    }

    /// Counts what we may not look at.
    fn allowed<T>(&mut self, looked: io::Result<T>) -> Option<T> {
        if let Err(error) = &looked
            && error.raw_os_error() == Some(libc::EPERM)
        {
            self.leave(Unwatched::Unreadable);
        }
        looked.ok()
    }

    /// Leaves a connection to the kernel and follows it from outside, or counts it as unwatched where that cannot be.
    fn follow(&mut self, cookie: u64, about: Connection, reason: Unwatched) {
        if self.outside.is_none() && self.mode != Mode::Relay {
            self.outside = listen_outside(self.poll.registry()).ok();
        }
        match &mut self.outside {
            Some(outside) => outside.follow(cookie, about),
            None => self.leave(reason),
        }
    }

    /// Goes on with a call as far as it can go now.
    pub(super) fn advance(&mut self, number: usize) {
        let Some(Call { mut dial, stage }) = self.calls.remove(&number) else {
            return;
        };
        let now = Instant::now();
        let shown = dial.look(now);
        match (stage, shown) {
            (Stage::Held { .. }, Some(Err(error))) => {
                self.listener.answer(dial.notice.id, Answer::Error(error));
                self.end_failed(dial, error);
            }
            // with the trap gone, the next SYN finds nobody: the program is refused
            (Stage::Trapped { .. }, Some(Err(error))) => self.end_failed(dial, error),
            (Stage::Held { socket, .. }, Some(Ok(()))) => self.land(number, dial, socket),
            (Stage::Trapped { trap, child }, Some(Ok(()))) => self.meet(number, dial, trap, child),
            (Stage::Held { socket, until }, None) => {
                let interrupted = dial.blocking && !self.listener.is_valid(dial.notice.id);
                if interrupted || until.is_some_and(|until| now >= until) {
                    self.trap(number, dial, socket, Answer::Error(libc::EINPROGRESS));
                } else if dial.blocking && has_signal(dial.notice.thread) {
                    // the kernel goes on with the connect that is under way, and lets the signal in
                    self.trap(number, dial, socket, Answer::Continue);
                } else {
                    let look = dial.blocking.then(|| now + LOOK);
                    let soonest = until.into_iter().chain(look).min();
                    self.wait(number, dial, Stage::Held { socket, until }, soonest);
                }
            }
            (Stage::Meeting { trap, near }, _) => match near.take_error() {
                Ok(None) if near.peer_addr().is_ok() => self.depart(dial, trap, near),
                Ok(None) => self.wait(number, dial, Stage::Meeting { trap, near }, None),
                _ => self.give_up(dial, trap),
            },
            (stage @ (Stage::Landing | Stage::Trapped { .. }), _) => {
                self.wait(number, dial, stage, None);
            }
        }
    }

    /// Waits for the destination, for the time at which its answer may show, and for `soonest`.
    fn wait(&mut self, number: usize, mut dial: Dial, stage: Stage, soonest: Option<Instant>) {
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
        self.calls.insert(number, Call { dial, stage });
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
            Answer::Value(0)
        } else {
            Answer::Error(libc::EINPROGRESS)
        };
        self.note_connected(&mut dial);
        // the program goes on while we do the rest; what it asks meanwhile waits for that
        self.listener.answer(dial.notice.id, answer);
        let stage = Stage::Landing;
        self.calls.insert(number, Call { dial, stage });
        self.take_arrivals(place);
    }

    /// Our end of a landed socket has shown.
    pub(super) fn arrive(&mut self, number: usize, near: TcpStream) {
        let Some(Call { mut dial, .. }) = self.calls.remove(&number) else {
            return;
        };
        self.remember(&mut dial);
        self.carry(dial, near);
    }

    /// It takes longer: puts the program's socket into a connect that is under way, and lets the caller go on.
    fn trap(&mut self, number: usize, mut dial: Dial, socket: Socket, answer: Answer) {
        let v6 = dial.about.peer.is_some_and(|peer| peer.is_ipv6());
        let trapped = self.traps.lend(v6).and_then(|trap| {
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
        self.wait(number, dial, Stage::Trapped { trap, child }, None);
    }

    /// The destination has answered a trapped call: connects to the program's socket.
    fn meet(&mut self, number: usize, mut dial: Dial, trap: Trap, child: SocketAddr) {
        self.set_deadline(number, &mut dial, None);
        let Ok(mut near) = trap.meet(child) else {
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
        let stage = Stage::Meeting { trap, near };
        self.calls.insert(number, Call { dial, stage });
        self.advance(number);
    }

    /// Both ends of a trapped call are established.
    fn depart(&mut self, mut dial: Dial, trap: Trap, mut near: TcpStream) {
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
    fn give_up(&mut self, dial: Dial, trap: Trap) {
        self.traps.keep(trap);
        self.by_cookie.remove(&dial.cookie);
        self.record_given_up(dial.about);
    }

    pub(super) fn record_given_up(&self, mut about: Connection) {
        about.failed = Some(DialFailure {
            phase: SetupPhase::Connect,
            kind: Failure::Aborted,
            detail: Some("the program gave up before the destination answered".into()),
        });
        self.record(Row::Opened(Box::new(about)));
    }

    /// We cannot stand in for this one: the kernel makes the call.
    fn let_go(&mut self, dial: Dial) {
        self.by_cookie.remove(&dial.cookie);
        self.follow(dial.cookie, dial.about, Unwatched::NoRelay);
        self.listener.answer(dial.notice.id, Answer::Continue);
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
            let ends = Ends {
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
        let carriage = Box::new(Carriage {
            near,
            far: dial.far,
            about: dial.about,
            place: dial.place,
        });
        if self.orders.carry(carriage).is_err() {
            self.leave(Unwatched::NoRelay);
        }
    }

    fn record_failure(&self, mut about: Connection, error: i32) {
        let error = io::Error::from_raw_os_error(error);
        about.failed = Some(DialFailure {
            phase: SetupPhase::Connect,
            kind: failure(&error),
            detail: Some(error.to_string().into()),
        });
        self.record(Row::Opened(Box::new(about)));
    }
}

/// Where a connection leads, as long as only its address is known.
fn origin(peer: SocketAddr) -> Origin {
    Origin {
        scheme: Scheme::Tcp,
        host: peer.ip().to_string().into(),
        port: peer.port(),
    }
}

/// A socket of ours in the place of the program's, bound to the same address and port if that is bound.
fn stand_in(socket: &Socket, local: SocketAddr, to: SocketAddr) -> io::Result<Socket> {
    let far = socket::tcp_for(to)?;
    let local = unmapped(local);
    if local.port() != 0 {
        socket::share_address(socket, &far, local)?;
    } else if !local.ip().is_unspecified() {
        socket::bind_address(&far, local.ip())?;
    }
    Ok(far)
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
