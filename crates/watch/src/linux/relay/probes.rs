//! Looks whether a program has asked for TCP keep-alive probes on its sockets, or has set TCP_USER_TIMEOUT.
//!
//! Asking about `setsockopt` would hold up each such call of the program for longer than the probes are worth; a look at the
//! socket during its work costs it nothing.

use intact_observe::ObservedConnection;
use intact_sys::process::SocketLocation;
use intact_sys::socket;

/// Looks in vain after which only some connections are looked at.
const EAGER: u32 = 32;
/// The relay then looks at one connection of this number.
const RARELY: u32 = 16;

/// How the looks at sockets have gone so far.
#[derive(Default)]
pub(super) struct Looks {
    in_vain: u32,
    passed_over: u32,
}

impl Looks {
    /// Looks at the socket of a connection on which the program has just spoken: by then most clients have set their options.
    /// If no program sets them, most connections are passed over.
    pub(super) fn look_now_and_then(
        &mut self,
        place: Option<&SocketLocation>,
        observed: &mut Option<ObservedConnection>,
    ) {
        if self.in_vain >= EAGER {
            self.passed_over += 1;
            if self.passed_over < RARELY {
                return;
            }
            self.passed_over = 0;
        }
        self.look(place, observed);
    }

    /// Looks at the socket of a connection.
    pub(super) fn look(
        &mut self,
        place: Option<&SocketLocation>,
        observed: &mut Option<ObservedConnection>,
    ) {
        self.in_vain = self.in_vain.saturating_add(1);
        let socket = place.and_then(SocketLocation::copy);
        let (Some(socket), Some(seen)) = (socket, observed) else {
            return;
        };
        if let Some(interval) = socket::probe_interval(&socket) {
            self.in_vain = 0;
            seen.note_probes(interval);
        }
        if let Some(limit) = socket::user_timeout(&socket) {
            self.in_vain = 0;
            seen.note_user_timeout(limit);
        }
    }
}
