//! Messages with descriptors between the processes of a link, over a socket pair that preserves
//! message boundaries.
//!
//! Each process detects the end of another by the closed channel, for any cause of the end.

use intact_sys::descriptors;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;

/// The longest message.
const LONGEST: usize = 64 * 1024;

/// One end.
#[derive(Debug)]
pub(super) struct Channel {
    socket: OwnedFd,
}

impl Channel {
    /// Two ends.
    pub(super) fn pair() -> io::Result<(Channel, Channel)> {
        let (one, other) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Channel { socket: one }, Channel { socket: other }))
    }

    /// Sends one message.
    pub(super) fn send(
        &self,
        message: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        descriptors::send(&self.socket, &serde_json::to_vec(message)?, descriptors)
    }

    /// Sends a request and receives its reply.
    pub(super) fn ask<M: DeserializeOwned>(&self, request: &impl Serialize) -> io::Result<M> {
        self.send(request, &[])?;
        let reply = self.receive()?.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(reply.0)
    }

    /// Waits for one message. `None`: the other end is gone.
    pub(super) fn receive<M: DeserializeOwned>(&self) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
        let mut text = vec![0; LONGEST];
        let (count, descriptors) = match descriptors::receive(&self.socket, &mut text) {
            // the other end was killed before it read our messages
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
            received => received?,
        };
        if count == 0 {
            return Ok(None);
        }
        let message = serde_json::from_slice(&text[..count])?;
        Ok(Some((message, descriptors)))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl From<OwnedFd> for Channel {
    fn from(socket: OwnedFd) -> Channel {
        Channel { socket }
    }
}

impl From<Channel> for OwnedFd {
    fn from(channel: Channel) -> OwnedFd {
        channel.socket
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn messages_keep_their_borders_and_carry_descriptors() {
        let (one, other) = Channel::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        one.send(&"first", &[writer.as_fd()]).unwrap();
        drop(writer);
        one.send(&2, &[]).unwrap();
        let (word, descriptors): (String, _) = other.receive().unwrap().unwrap();
        assert_eq!((word.as_str(), descriptors.len()), ("first", 1));
        let mut passed: std::fs::File = descriptors.into_iter().next().unwrap().into();
        passed.write_all(b"x").unwrap();
        drop(passed);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
        assert_eq!(other.receive::<u32>().unwrap().unwrap().0, 2);
        drop(one);
        assert!(other.receive::<u32>().unwrap().is_none());
    }
}
