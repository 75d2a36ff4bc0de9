//! The commands of the supervisor to the relay.

use intact_ledger::{Connection, ConnectionId, Nanos, Row};
use intact_sys::address::unmapped;
use intact_sys::process::SocketLocation;
use intact_sys::socket;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token, Waker};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A connection whose two ends are established.
pub(crate) struct RelayedConnection {
    /// Our end towards the program.
    pub(crate) near: TcpStream,
    /// Our end towards the destination.
    pub(crate) far: TcpStream,
    /// What is known of it.
    pub(crate) about: Connection,
    /// Where the program's socket is found.
    pub(crate) place: Option<SocketLocation>,
}

/// A command of the supervisor to the relay.
pub(crate) enum RelayCommand {
    /// Carry this from now on: both ends are registered.
    Carry(Box<RelayedConnection>),
    /// Record this.
    Record(Box<Row>),
    /// Complete the record up to this command, and report that under this number.
    Mark(u64),
    /// The program has ended: pass on what is left and end.
    Finish,
}

/// The relay's token of a connection's end towards the program.
pub(crate) fn near_token(connection: ConnectionId) -> Token {
    Token(connection.0 as usize * 2)
}

/// The relay's token of a connection's end towards the destination.
pub(crate) fn far_token(connection: ConnectionId) -> Token {
    Token(connection.0 as usize * 2 + 1)
}

/// Records that may wait until the relay next looks; it does so once a second at least.
const PATIENT: usize = 256;

/// The count of connections without the relay where that is all of them.
const ALL: u64 = 1 << 63;

/// Addresses whose servers have moved away from them, by a fault: since when, and which server has
/// the address now.
#[derive(Default)]
pub(crate) struct MovedAddresses(Mutex<HashMap<SocketAddr, (Nanos, Successor)>>);

impl MovedAddresses {
    /// The server of an address moves.
    pub(crate) fn note(&self, peer: SocketAddr, at: Nanos, successor: Successor) {
        let mut moved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        moved.entry(unmapped(peer)).or_insert((at, successor));
    }

    /// What is at the address instead of its server, if that has moved, and the address was not
    /// looked up since, for the last time at `looked_up`.
    pub(crate) fn successor(
        &self,
        peer: SocketAddr,
        looked_up: Option<Nanos>,
    ) -> Option<Successor> {
        let moved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, successor) = moved.get(&unmapped(peer))?;
        looked_up.is_none_or(|at| at < *since).then_some(*successor)
    }
}

/// What is at an address that a server has moved away from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Successor {
    /// Nothing: connections are refused.
    Nothing,
    /// Another server, which is reached here.
    Server(SocketAddr),
}

/// A connection that the program may use, until it is handed over or given up.
pub(crate) struct Landing(Arc<AtomicU64>);

impl Drop for Landing {
    fn drop(&mut self) {
        // who sees this finds the connection among the orders
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// The way from the supervisor to the relay.
#[derive(Clone)]
pub(crate) struct RelaySender {
    waiting: Arc<Mutex<Vec<RelayCommand>>>,
    /// Connections that the kernel makes without the relay; [`ALL`] where it makes all of them.
    not_relayed: Arc<AtomicU64>,
    /// Connections that the program may use and that are not handed over.
    landing: Arc<AtomicU64>,
    moved: Arc<MovedAddresses>,
    registry: Arc<Registry>,
    waker: Arc<Waker>,
}

impl RelaySender {
    pub(crate) fn new(registry: Registry, waker: Waker) -> RelaySender {
        RelaySender {
            waiting: Arc::default(),
            not_relayed: Arc::default(),
            landing: Arc::default(),
            moved: Arc::default(),
            registry: Arc::new(registry),
            waker: Arc::new(waker),
        }
    }

    /// The addresses whose names have moved.
    pub(crate) fn moved(&self) -> &MovedAddresses {
        &self.moved
    }

    /// Has this recorded. It waits until the relay is awake for another reason: waking a thread for
    /// each would cost the program more than the look at its call does.
    pub(crate) fn record(&self, row: Row) {
        let mut waiting = self.lock();
        waiting.push(RelayCommand::Record(Box::new(row)));
        if waiting.len().is_multiple_of(PATIENT) {
            let _ = self.waker.wake();
        }
    }

    /// Requests a mark, behind everything that was handed over before.
    pub(crate) fn mark(&self, number: u64) {
        self.lock().push(RelayCommand::Mark(number));
        let _ = self.waker.wake();
    }

    /// Counts a connection that the kernel makes without the relay. To be called before the program
    /// goes on.
    pub(crate) fn count_not_relayed(&self) {
        self.not_relayed.fetch_add(1, Ordering::Relaxed);
    }

    /// The kernel makes all connections.
    pub(crate) fn relay_nothing(&self) {
        self.not_relayed.fetch_or(ALL, Ordering::Relaxed);
    }

    /// Connections that the kernel made without the relay; `None` where it makes all of them.
    pub(crate) fn not_relayed(&self) -> Option<u64> {
        let count = self.not_relayed.load(Ordering::Relaxed);
        (count < ALL).then_some(count)
    }

    /// Counts a connection that the program may use from now on.
    pub(crate) fn land(&self) -> Landing {
        self.landing.fetch_add(1, Ordering::Relaxed);
        Landing(Arc::clone(&self.landing))
    }

    /// Connections that the program may use and that are not handed over.
    pub(crate) fn landing(&self) -> u64 {
        self.landing.load(Ordering::Acquire)
    }

    /// Says that the program has ended.
    pub(crate) fn finish(&self) {
        self.lock().push(RelayCommand::Finish);
        let _ = self.waker.wake();
    }

    /// Hands a connection over. The relay sleeps on until one of its ends has something to say: a
    /// wake-up a connection would cost more than all else here. Where the ends cannot be waited
    /// for, the program sees a reset, which is what it would see of a machine without memory or
    /// descriptors.
    pub(crate) fn carry(&self, mut carriage: Box<RelayedConnection>) -> io::Result<()> {
        let id = carriage.about.id;
        let RelayedConnection { near, far, .. } = &mut *carriage;
        // a thread that sees an event of it takes this lock first, and so finds the order
        let mut waiting = self.lock();
        let registered = self
            .registry
            .register(far, far_token(id), Interest::READABLE)
            // last: the program may have spoken already, and then this wakes the relay
            .and_then(|()| {
                self.registry
                    .register(near, near_token(id), Interest::READABLE)
            });
        match registered {
            Ok(()) => waiting.push(RelayCommand::Carry(carriage)),
            Err(_) => socket::reset_on_close(near),
        }
        registered
    }

    /// Takes all orders that wait; `into` is empty.
    pub(crate) fn take(&self, into: &mut Vec<RelayCommand>) {
        std::mem::swap(&mut *self.lock(), into);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RelayCommand>> {
        // a list is whole at any time
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
