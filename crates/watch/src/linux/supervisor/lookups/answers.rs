//! Answers of name servers: looked at in the program's own socket, before it takes them where it
//! lets us.

use super::forward::ForwardPath;
use super::open::UNREACHABLE;
use super::{CallContext, Lookups, name_addresses};
use intact_sys::seccomp::Notification;
use intact_sys::socket::{self, Peeked};
use intact_wire::dns;
use mio::Token;

/// The longest answer over UDP, in bytes.
const MAX_ANSWER: usize = 4096;
/// Answers of a socket that are remembered.
const MAX_ANSWERED: usize = 8;

impl Lookups {
    /// A datagram is to be taken with its sender's address: looks at it first.
    pub(in crate::platform::supervisor) fn see_recvfrom(
        &mut self,
        notice: &Notification,
        cx: &mut CallContext,
    ) -> Option<()> {
        if self.sockets.is_empty() {
            return None;
        }
        let cookie = cx.notifications.socket(notice).ok()?.cookie;
        self.sockets.get_mut(&cookie)?.is_asked = true;
        self.look_at_answer(cookie, cx);
        Some(())
    }

    /// Something came on a socket that speaks with a name server.
    pub(in crate::platform::supervisor) fn take_answer(&mut self, token: Token, cx: &CallContext) {
        let Some(&cookie) = self.tokens.get(&token) else {
            return;
        };
        match self.sockets.get(&cookie) {
            Some(asking) if asking.forward.is_none() => self.look_at_answer(cookie, cx),
            Some(asking) if asking.token == token => {
                self.pass_on(cookie, ForwardPath::Out, cx);
            }
            _ => self.pass_on(cookie, ForwardPath::Back, cx),
        }
    }

    fn look_at_answer(&mut self, cookie: u64, cx: &CallContext) {
        let now = cx.record.now().0;
        let Lookups {
            sockets,
            open,
            named,
            ..
        } = self;
        let Some(asking) = sockets.get_mut(&cookie) else {
            return;
        };
        let mut bytes = [0; MAX_ANSWER];
        match socket::peek(&asking.copy, &mut bytes) {
            Peeked::Bytes(count) => {
                let Some(answer) =
                    dns::parse(&bytes[..count]).filter(|message| message.header.is_answer)
                else {
                    return;
                };
                asking.named = true;
                if asking.answered.contains(&answer.header.id) {
                    return;
                }
                if asking.answered.len() >= MAX_ANSWERED {
                    asking.answered.pop_front();
                }
                asking.answered.push_back(answer.header.id);
                let question = (cookie, answer.header.id);
                open.answer(&asking.asker, question, &answer, asking.last, now);
                name_addresses(named, &answer, now);
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
