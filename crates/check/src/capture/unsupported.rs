//! Systems other than Linux: packet sockets are not supported.

use super::CaptureError;
use super::packet::Packet;
use std::io;

/// A socket that cannot be opened here.
#[derive(Debug)]
pub(super) enum Socket {}

impl Socket {
    /// Returns [`CaptureError::Platform`].
    pub(super) fn open() -> Result<Socket, CaptureError> {
        Err(CaptureError::Platform)
    }

    pub(super) fn listen(&self, _: u16, _: bool) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Packet>> {
        match *self {}
    }

    pub(super) fn lost(&self) -> io::Result<u64> {
        match *self {}
    }
}
