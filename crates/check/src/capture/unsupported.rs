//! Systems without packet sockets as Linux has them.

use super::CaptureError;
use super::packet::Packet;
use std::io;

/// A socket of which there is none here.
#[derive(Debug)]
pub(super) enum Socket {}

impl Socket {
    /// Always [`CaptureError::Platform`].
    pub(super) fn open() -> Result<Socket, CaptureError> {
        Err(CaptureError::Platform)
    }

    pub(super) fn listen(&self, _: u16) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Packet>> {
        match *self {}
    }

    pub(super) fn lost(&self) -> io::Result<u64> {
        match *self {}
    }
}
