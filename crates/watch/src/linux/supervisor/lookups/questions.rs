//! Questions to name servers, as the program sends them.

use super::{CallContext, Lookups};
use crate::platform::supervisor::made_sockets::ProgramSocket;
use intact_sys::address::{self, AddressKind, unmapped};
use intact_sys::process::read_memory;
use intact_sys::seccomp::Notification;
use intact_wire::dns::{self, PORT};
use std::net::SocketAddr;

/// The longest question that is looked at, in bytes.
const MAX_QUESTION: usize = 512;
/// Questions that are sent in one call.
const MAX_AT_ONCE: usize = 2;

impl Lookups {
    /// A short datagram with an address is being sent.
    pub(in crate::platform::supervisor) fn see_sendto(
        &mut self,
        notice: &Notification,
        cx: &mut CallContext,
    ) -> Option<()> {
        let [_, place, len, _, address, address_len] = notice.arguments;
        let server = name_server(notice.thread, address, address_len)?;
        let cookie = self.asking_with(notice, Some(server), cx)?;
        self.see_question(notice, place, len, cookie, cx);
        Some(())
    }

    /// One or two datagrams are being sent at once.
    pub(in crate::platform::supervisor) fn see_sendmmsg(
        &mut self,
        notice: &Notification,
        cx: &mut CallContext,
    ) -> Option<()> {
        const HEADER: usize = 64;
        let [_, place, count, ..] = notice.arguments;
        let count = usize::try_from(count).ok()?.min(MAX_AT_ONCE);
        // struct mmsghdr: name, its length, the parts and their number, each in eight bytes
        let mut headers = [0; HEADER * MAX_AT_ONCE];
        let headers = &mut headers[..HEADER * count];
        read_memory(notice.thread, place, headers).ok()?;
        let word = |bytes: &[u8], at: usize| {
            let part = bytes.get(at..).and_then(|rest| rest.first_chunk());
            part.map_or(0, |part| u64::from_ne_bytes(*part))
        };
        for header in headers.chunks_exact(HEADER) {
            let (address, parts, count) = (word(header, 0), word(header, 16), word(header, 24));
            let server = match address {
                0 => None,
                _ => Some(name_server(notice.thread, address, word(header, 8))?),
            };
            let cookie = self.asking_with(notice, server, cx)?;
            if count == 0 {
                return None;
            }
            let mut part = [0; 16];
            read_memory(notice.thread, parts, &mut part).ok()?;
            self.see_question(notice, word(&part, 0), word(&part, 8), cookie, cx);
        }
        Some(())
    }

    /// The cookie of a socket that sends to a name server; one that is not connected to it is
    /// followed from now on.
    fn asking_with(
        &mut self,
        notice: &Notification,
        server: Option<SocketAddr>,
        cx: &mut CallContext,
    ) -> Option<u64> {
        let ProgramSocket { cookie, copy, .. } = cx.notifications.socket(notice).ok()?;
        match server {
            Some(server) => self.follow(notice, cookie, copy?, server, cx),
            None => {
                self.sockets.get(&cookie)?;
            }
        }
        Some(cookie)
    }

    fn see_question(
        &mut self,
        notice: &Notification,
        place: u64,
        len: u64,
        cookie: u64,
        cx: &CallContext,
    ) {
        let mut bytes = [0; MAX_QUESTION];
        let Some(bytes) = usize::try_from(len)
            .ok()
            .and_then(|len| bytes.get_mut(..len))
        else {
            return;
        };
        let now = cx.record.now().0;
        if read_memory(notice.thread, place, bytes).is_ok()
            && let Some(asked) = dns::parse(bytes).filter(|message| !message.header.is_answer)
            && let Some(asking) = self.sockets.get_mut(&cookie)
        {
            asking.named = true;
            asking.last = now;
            asking.answered.retain(|id| *id != asked.header.id);
            let question = (cookie, asked.header.id);
            self.open.ask(&asking.asker, question, &asked, now);
        }
    }
}

fn name_server(thread: u32, place: u64, len: u64) -> Option<SocketAddr> {
    let len = usize::try_from(len).ok()?.min(address::MAX_LEN);
    let mut bytes = [0; address::MAX_LEN];
    read_memory(thread, place, &mut bytes[..len]).ok()?;
    match address::parse(&bytes[..len])? {
        AddressKind::Inet(server) if server.port() == PORT => Some(unmapped(server)),
        _ => None,
    }
}
