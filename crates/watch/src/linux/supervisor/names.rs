//! What `getpeername` and `getsockname` must say of relayed sockets.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// The addresses that a connection would have without us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// The program's side.
    pub(crate) local: SocketAddr,
    /// The destination.
    pub(crate) peer: SocketAddr,
    /// Whether the program's socket is an IPv6 one.
    pub(crate) v6: bool,
}

/// Sockets that are remembered; the oldest is forgotten first. A program that holds more open is told relay addresses.
const MAX: usize = 1 << 16;

/// The addresses by socket cookie.
#[derive(Default)]
pub(crate) struct Names {
    ends: HashMap<u64, Ends>,
    order: VecDeque<u64>,
}

impl Names {
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether none was forgotten for want of room.
    pub(crate) fn is_complete(&self) -> bool {
        self.order.len() < MAX
    }

    pub(crate) fn remember(&mut self, cookie: u64, ends: Ends) {
        if self.ends.insert(cookie, ends).is_none() {
            self.order.push_back(cookie);
        }
        if self.order.len() > MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.ends.remove(&oldest);
        }
    }

    pub(crate) fn find(&self, cookie: u64) -> Option<Ends> {
        self.ends.get(&cookie).copied()
    }

    /// The socket was disconnected.
    pub(crate) fn forget(&mut self, cookie: u64) {
        self.ends.remove(&cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut names = Names::default();
        let ends = Ends {
            local: "127.0.0.1:1".parse().unwrap(),
            peer: "127.0.0.1:2".parse().unwrap(),
            v6: false,
        };
        for cookie in 0..=MAX as u64 {
            names.remember(cookie, ends);
            names.forget(cookie / 2);
            names.remember(cookie / 2, ends);
        }
        assert!(names.order.len() <= MAX);
        assert!(names.ends.len() <= MAX);
    }
}
