//! Messages with descriptors between the processes of a link, over a socket pair that preserves
//! message boundaries.
//!
//! Each process detects the end of another by the closed channel, for any cause of the end.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// The longest message.
const LONGEST: usize = 64 * 1024;
/// Descriptors in one message.
const MOST_DESCRIPTORS: usize = 8;

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
        let text = serde_json::to_vec(message)?;
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        sendmsg(
            &self.socket,
            &[IoSlice::new(&text)],
            &mut control,
            SendFlags::NOSIGNAL,
        )?;
        Ok(())
    }

    /// Waits for one message. `None`: the other end is gone.
    pub(super) fn receive<M: DeserializeOwned>(&self) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
        let mut text = vec![0; LONGEST];
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let got = loop {
            let parts = &mut [IoSliceMut::new(&mut text)];
            match recvmsg(&self.socket, parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(rustix::io::Errno::INTR) => {}
                // the other end was killed before it read our messages
                Err(rustix::io::Errno::CONNRESET) => return Ok(None),
                got => break got?,
            }
        };
        if got.bytes == 0 {
            return Ok(None);
        }
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(all) = message {
                descriptors.extend(all);
            }
        }
        let message = serde_json::from_slice(&text[..got.bytes])?;
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
