//! Looks at what a program has not read, once nothing passes on its connection: a response that
//! stays in its socket keeps the connection from every other request.
//!
//! A look costs a few system calls, so a connection that was found empty is not looked at again
//! before more has passed.

use intact_sys::process::SocketLocation;
use intact_sys::socket;

/// Sockets that are looked at in one tick.
pub(super) const MOST_LOOKS: u32 = 256;

/// What is known of the rest in a program's socket.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// Bytes that had passed at the last tick.
    passed: u64,
    /// The socket was found empty since.
    is_empty: bool,
}

impl Rest {
    /// Whether to look in this tick, which leaves that number of `looks`: nothing has passed since
    /// the last tick, and the socket may have a rest.
    pub(super) fn is_due(&mut self, passed: u64, looks: &mut u32) -> bool {
        if passed != self.passed {
            self.passed = passed;
            self.is_empty = false;
            return false;
        }
        let is_due = passed > 0 && !self.is_empty && *looks > 0;
        *looks -= u32::from(is_due);
        is_due
    }

    /// Notes the bytes that a look has found.
    pub(super) fn note(&mut self, unread: u64) {
        self.is_empty = unread == 0;
    }
}

/// Bytes that a program has not read; `None` once it has closed the socket.
pub(super) fn unread(place: &SocketLocation) -> Option<u64> {
    socket::unread(&place.copy()?).map(|bytes| bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_looked_at_while_nothing_passes_and_until_it_is_empty() {
        let (mut rest, mut looks) = (Rest::default(), 3);
        assert!(!rest.is_due(0, &mut looks), "nothing has passed");
        assert!(!rest.is_due(9, &mut looks), "it has just passed");
        assert!(rest.is_due(9, &mut looks));
        rest.note(5);
        assert!(rest.is_due(9, &mut looks), "there was a rest");
        rest.note(0);
        assert!(!rest.is_due(9, &mut looks));
        assert!(!rest.is_due(12, &mut looks));
        assert!(rest.is_due(12, &mut looks));
        assert!(!rest.is_due(12, &mut looks), "no looks are left");
    }
}
