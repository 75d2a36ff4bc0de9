//! One `connect` that we make for the program.

use super::pending_listener::PendingListener;
use crate::platform::relay_command::Landing;
use intact_ledger::{Connection, Nanos};
use intact_sys::process::SocketLocation;
use intact_sys::seccomp::Notification;
use mio::net::TcpStream;
use socket2::Socket;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long a non-blocking connect is held: on loopback and a local network it is decided within
/// that time.
pub(super) const HOLD: Duration = Duration::from_millis(5);
/// How often a blocked caller is checked: a signal may have interrupted it.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// One `connect`.
pub(super) struct ConnectCall {
    pub(super) dial: Dial,
    pub(super) stage: CallStage,
}

/// How far the program's side has come.
pub(super) enum CallStage {
    /// The caller waits for us.
    Held {
        /// The program's own socket, still unconnected.
        socket: Socket,
        /// When the caller must have a response, decided or not.
        until: Option<Instant>,
    },
    /// The program's socket is connected to our local listener, which has not reported our end yet;
    /// the caller runs again.
    Landing,
    /// The caller runs again with a connect that is under way, from this port of the program.
    Pending {
        listener: PendingListener,
        child: SocketAddr,
    },
    /// The program's socket is being connected to this end of ours.
    Completing {
        listener: PendingListener,
        near: TcpStream,
    },
}

/// The connection to the real destination.
pub(super) struct Dial {
    /// The call to respond to.
    pub(super) notice: Notification,
    /// The program's socket.
    pub(super) cookie: u64,
    /// Whether that is an IPv6 socket.
    pub(super) v6: bool,
    /// Whether the caller blocks.
    pub(super) blocking: bool,
    /// Where the program's socket is found later.
    pub(super) location: Option<SocketLocation>,
    /// Under way or established.
    pub(super) far: TcpStream,
    /// It leads to another server than the program's, which does not know.
    pub(super) is_elsewhere: bool,
    /// Whether our loop waits for it.
    pub(super) registered: bool,
    /// Established, or the number of the error.
    pub(super) decided: Option<Result<(), i32>>,
    /// When the decision may show: later than it was made where a round trip is added.
    pub(super) not_before: Instant,
    /// From when the program may use the connection until the relay has it.
    pub(super) landing: Option<Landing>,
    /// When to check it next.
    pub(super) deadline: Option<Instant>,
    /// When the program called.
    pub(super) began: Nanos,
    /// What is known of the connection.
    pub(super) about: Connection,
}

impl Dial {
    /// When the program called, where this round trip is added.
    pub(super) fn began_at(&self, round_trip: Duration) -> Instant {
        self.not_before - round_trip
    }

    /// Checks whether the destination has responded; returns what may show by now.
    pub(super) fn look(&mut self, now: Instant) -> Option<Result<(), i32>> {
        if self.decided.is_none() {
            self.decided = if let Ok(peer) = self.far.peer_addr() {
                if !self.is_elsewhere {
                    self.about.peer = Some(peer);
                }
                Some(Ok(()))
            } else {
                let failed = self.far.take_error().unwrap_or_else(Some);
                failed.map(|error| Err(error.raw_os_error().unwrap_or(libc::ECONNREFUSED)))
            };
        }
        self.decided.filter(|_| now >= self.not_before)
    }
}
