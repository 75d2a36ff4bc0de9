//! A non-blocking byte stream: TCP or a Unix domain socket.

use mio::event::Source;
use mio::{Interest, Registry, Token};
#[cfg(target_os = "linux")]
use rustix::net::{self, SendAncillaryBuffer, SendFlags};
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;
#[cfg(unix)]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// The result of a call of a socket that does not block; `None` where the socket would have to
/// wait. A call that a signal interrupted is repeated.
#[inline]
pub(crate) fn without_waiting<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<Option<T>> {
    loop {
        return match call() {
            Ok(done) => Ok(Some(done)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
    }
}

/// A connected or connecting socket.
#[derive(Debug)]
pub enum Stream {
    /// TCP.
    Tcp(mio::net::TcpStream),
    /// A Unix domain socket.
    #[cfg(unix)]
    Unix(mio::net::UnixStream),
}

/// Calls a method that both kinds of sockets have.
macro_rules! each {
    ($stream:expr, $socket:ident => $call:expr) => {
        match $stream {
            Stream::Tcp($socket) => $call,
            #[cfg(unix)]
            Stream::Unix($socket) => $call,
        }
    };
}

impl Stream {
    /// The local address, if the transport has one.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(tcp) => tcp.local_addr().ok(),
            #[cfg(unix)]
            Stream::Unix(_) => None,
        }
    }

    /// Number of bytes that can be read, at most 1, without reading them. A Unix socket is not
    /// checked, because it refuses a send after the peer's end.
    pub(crate) fn peek(&self) -> io::Result<usize> {
        match self {
            Stream::Tcp(tcp) => tcp.peek(&mut [0]),
            #[cfg(unix)]
            Stream::Unix(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// The pending error of the socket, if any.
    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        each!(self, socket => socket.take_error())
    }

    /// Whether the transport handshake ended.
    pub(crate) fn is_connected(&self) -> io::Result<bool> {
        match each!(self, socket => socket.peer_addr().map(drop)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(unix)]
impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        each!(self, socket => socket.as_raw_fd())
    }
}

#[cfg(unix)]
impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        each!(self, socket => socket.as_fd())
    }
}

impl Source for Stream {
    fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        interests: Interest,
    ) -> io::Result<()> {
        each!(self, socket => socket.register(registry, token, interests))
    }

    fn reregister(
        &mut self,
        registry: &Registry,
        token: Token,
        interests: Interest,
    ) -> io::Result<()> {
        each!(self, socket => socket.reregister(registry, token, interests))
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        each!(self, socket => socket.deregister(registry))
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        each!(self, socket => (&*socket).read(buffer))
    }
}

/// Sends go to the kernel directly. The C library's are cancellation points: in a program with
/// threads, each costs two atomic operations more.
#[cfg(target_os = "linux")]
impl Write for &Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(net::send(self, bytes, SendFlags::NOSIGNAL)?)
    }

    // rustls passes its records as slices; without this, each record takes a separate call and
    // packet
    #[inline]
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut none = SendAncillaryBuffer::default();
        Ok(net::sendmsg(self, parts, &mut none, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        each!(self, socket => (&*socket).write(bytes))
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        each!(self, socket => (&*socket).write_vectored(parts))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_with_one_call() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let stream = Stream::Unix(mio::net::UnixStream::from_std(ours));
        let parts = [IoSlice::new(b"hello "), IoSlice::new(b"early")];
        assert_eq!((&stream).write_vectored(&parts).unwrap(), 11);
        let mut buffer = [0; 16];
        assert_eq!((&theirs).read(&mut buffer).unwrap(), 11);
        assert_eq!(&buffer[..11], b"hello early");
    }
}
