//! Looks whether a program has asked for TCP keep-alive probes on its sockets, or has set
//! TCP_USER_TIMEOUT. The relay's socket to the destination gets the same: the program's own end at
//! the relay.
//!
//! Asking about `setsockopt` would hold up each such call of the program for longer than the probes
//! are worth; a look at the socket during its work costs it nothing.

use intact_observe::ObservedConnection;
use intact_sys::process::SocketLocation;
use intact_sys::socket::PeerChecks;
use std::os::fd::AsFd;

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
    /// Looks at the socket of a connection on which the program has just spoken: by then most
    /// clients have set their options. If no program sets them, most connections are passed
    /// over.
    pub(super) fn look_now_and_then(
        &mut self,
        place: Option<&SocketLocation>,
        far: &impl AsFd,
        observed: &mut Option<ObservedConnection>,
    ) {
        if self.in_vain >= EAGER {
            self.passed_over += 1;
            if self.passed_over < RARELY {
                return;
            }
            self.passed_over = 0;
        }
        self.look(place, far, observed);
    }

    /// Looks at the socket of a connection, and sets what it has on `far`.
    pub(super) fn look(
        &mut self,
        place: Option<&SocketLocation>,
        far: &impl AsFd,
        observed: &mut Option<ObservedConnection>,
    ) {
        self.in_vain = self.in_vain.saturating_add(1);
        let socket = place.and_then(SocketLocation::copy);
        let Some(checks) = socket.map(|socket| PeerChecks::of(&socket)) else {
            return;
        };
        if checks == PeerChecks::default() {
            return;
        }
        self.in_vain = 0;
        // a kernel that refuses leaves the socket as it was
        let _ = checks.set(far);
        let Some(seen) = observed else {
            return;
        };
        if let Some(probes) = checks.probes {
            seen.note_probes(saturating(probes.idle.as_secs().into()));
        }
        if let Some(limit) = checks.user_timeout {
            seen.note_user_timeout(saturating(limit.as_millis()));
        }
    }
}

fn saturating(number: u128) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
