//! Answers of name servers: looked at in the program's own socket, before it takes them where it lets us.

use super::super::Supervisor;
use super::forward::ForwardPath;
use super::open::UNREACHABLE;
use super::{Lookups, name_addresses};
use intact_sys::seccomp::Notification;
use intact_sys::socket::{self, Peeked};
use intact_wire::dns;
use mio::Token;

/// The longest answer over UDP, in bytes.
const MAX_ANSWER: usize = 4096;
/// Answers of a socket that are remembered.
const MAX_ANSWERED: usize = 8;

impl Supervisor {
    /// A datagram is to be taken with its sender's address: looks at it first.
    pub(in super::super) fn see_recvfrom(&mut self, notice: &Notification) -> Option<()> {
        if self.lookups.sockets.is_empty() {
            return None;
        }
        let descriptor = notice.arguments[0] as i32;
        let copied = self.processes.copy_descriptor(notice.thread, descriptor);
        let cookie = socket::cookie(&copied.ok()?).ok()?;
        self.lookups.sockets.get_mut(&cookie)?.is_asked = true;
        self.look_at_answer(cookie);
        Some(())
    }

    /// Something came on a socket that speaks with a name server.
    pub(in super::super) fn take_answer(&mut self, token: Token) {
        let Some(&cookie) = self.lookups.tokens.get(&token) else {
            return;
        };
        match self.lookups.sockets.get(&cookie) {
            Some(asking) if asking.forward.is_none() => self.look_at_answer(cookie),
            Some(asking) if asking.token == token => self.pass_on(cookie, ForwardPath::Out),
            _ => self.pass_on(cookie, ForwardPath::Back),
        }
    }

    fn look_at_answer(&mut self, cookie: u64) {
        let now = self.clock.now().0;
        let Lookups {
            sockets,
            open,
            named,
            ..
        } = &mut self.lookups;
        let Some(asking) = sockets.get_mut(&cookie) else {
            return;
        };
        let mut bytes = [0; MAX_ANSWER];
        match socket::peek(&asking.copy, &mut bytes) {
            Peeked::Bytes(count) => {
                let Some(answer) = dns::parse(&bytes[..count]).filter(|told| told.is_answer) else {
                    return;
                };
                asking.named = true;
                if asking.answered.contains(&answer.id) {
                    return;
                }
                if asking.answered.len() >= MAX_ANSWERED {
                    asking.answered.pop_front();
                }
                asking.answered.push_back(answer.id);
                let question = (cookie, answer.id);
                open.answer(&asking.asker, question, &answer, asking.last, now);
                name_addresses(named, &answer);
            }
            Peeked::Failed => {
                asking.named = true;
                open.lose(cookie, Some(UNREACHABLE), now);
            }
            Peeked::Nothing if asking.is_asked => {}
            Peeked::Nothing => {
                asking.missed = Some(now);
                open.lose(cookie, None, now);
            }
        }
    }
}
