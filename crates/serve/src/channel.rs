//! The bytes of one connection: TCP, with TLS on it or not, counted.
//!
//! Bytes to send are appended to [`Channel::out`] and leave with the next flush, in as few writes
//! (and TLS records) as they fit into. So the writer decides what travels together. Knows nothing
//! of HTTP.

use crate::read_buffers::{ReadBuffer, ReadBuffers};
use rustls::{ServerConfig, ServerConnection};
use socket2::{SockRef, TcpKeepalive};
use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// Bytes of room that an idle connection keeps for what it sends.
const KEPT: usize = 4096;
/// How often the kernel asks a silent peer, and the shortest wait of a response that is worth it.
pub(crate) const PROBE: Duration = Duration::from_secs(5);

/// What passed so far; shared, so that it can be recorded however a connection ends.
#[derive(Debug, Default)]
pub(crate) struct ByteCounts {
    pub(crate) received: Cell<u64>,
    pub(crate) sent: Cell<u64>,
    /// The peer closed its side.
    pub(crate) ended: Cell<bool>,
    /// The peer reset the connection.
    pub(crate) reset: Cell<bool>,
}

impl ByteCounts {
    /// The peer has left, in whatever way.
    pub(crate) fn is_over(&self) -> bool {
        self.ended.get() || self.reset.get()
    }
}

/// One accepted connection.
pub(crate) struct Channel {
    tcp: TcpStream,
    tls: Option<Box<ServerConnection>>,
    /// What is to be sent, not yet encrypted.
    pub(crate) out: Vec<u8>,
    /// How much of `out` is with the kernel (plain only: TLS takes all of it at once).
    written: usize,
    passed: Rc<ByteCounts>,
}

impl Channel {
    /// A connection without TLS.
    pub(crate) fn plain(tcp: TcpStream) -> Channel {
        Channel {
            tcp,
            tls: None,
            out: Vec::new(),
            written: 0,
            passed: Rc::default(),
        }
    }

    /// Makes the TLS handshake up to the client's first byte of HTTP: with early data that byte may
    /// be there before the handshake is over. The words of the error are those of rustls or the
    /// kernel.
    pub(crate) async fn secure(
        tcp: TcpStream,
        config: Arc<ServerConfig>,
    ) -> Result<Channel, io::Error> {
        let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
        // what may wait in here is bounded by who writes
        tls.set_buffer_limit(None);
        let mut channel = Channel {
            tls: Some(Box::new(tls)),
            ..Channel::plain(tcp)
        };
        poll_fn(|context| channel.poll_handshake(context)).await?;
        Ok(channel)
    }

    /// The TLS session, if there is one.
    pub(crate) fn tls(&mut self) -> Option<&mut ServerConnection> {
        self.tls.as_deref_mut()
    }

    /// What passed so far.
    pub(crate) fn passed(&self) -> &Rc<ByteCounts> {
        &self.passed
    }

    /// Reads; nothing is the end of the stream.
    pub(crate) async fn read(&mut self, buffers: &Rc<ReadBuffers>) -> io::Result<ReadBuffer> {
        poll_fn(|context| {
            if let Poll::Ready(Err(error)) = self.poll_flush(context) {
                return Poll::Ready(Err(error));
            }
            self.poll_read(context, buffers)
        })
        .await
    }

    /// Sends all of [`Channel::out`].
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|context| self.poll_flush(context)).await
    }

    /// Has the kernel ask from time to time whether the peer is still there. A client that has
    /// closed its socket sends a FIN, as one does that waits for the response; only its kernel
    /// knows.
    pub(crate) fn probe_peer(&self) {
        let often = TcpKeepalive::new().with_time(PROBE).with_interval(PROBE);
        // without it, the descriptor is kept until the response
        let _ = SockRef::from(&self.tcp).set_tcp_keepalive(&often);
    }

    /// Waits until the peer resets the connection. Takes nothing from what the peer sent.
    pub(crate) async fn wait_for_reset(&self) {
        if self.tcp.ready(Interest::ERROR).await.is_ok() {
            self.passed.reset.set(true);
        }
    }

    /// See [`Channel::read`].
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffers: &Rc<ReadBuffers>,
    ) -> Poll<io::Result<ReadBuffer>> {
        let mut buffer = buffers.take();
        let mut wire = Wire {
            tcp: &mut self.tcp,
            context,
            passed: &self.passed,
        };
        let read = buffer.fill(|room| match &mut self.tls {
            None => wire.read(room),
            Some(tls) => read_tls(tls, &mut wire, room),
        });
        match read {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                // an idle connection keeps no room for what it once sent
                if self.out.is_empty() && self.out.capacity() > KEPT {
                    self.out = Vec::new();
                }
                return Poll::Pending;
            }
            Ok(()) if buffer.is_empty() => self.passed.ended.set(true),
            _ => {}
        }
        Poll::Ready(read.map(|()| buffer))
    }

    /// See [`Channel::flush`].
    pub(crate) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut wire = Wire {
            tcp: &mut self.tcp,
            context,
            passed: &self.passed,
        };
        let done = match &mut self.tls {
            None => wire.write_rest(&self.out, &mut self.written),
            // what the kernel did not take goes first: then all that waits is in `out`, where its
            // size is known
            Some(tls) => write_tls(tls, &mut wire).and_then(|()| {
                if self.out.is_empty() {
                    return Ok(());
                }
                tls.writer().write_all(&self.out)?;
                self.out.clear();
                write_tls(tls, &mut wire)
            }),
        };
        match done {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
            done => {
                self.out.clear();
                self.written = 0;
                Poll::Ready(done)
            }
        }
    }

    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_flush(context))?;
            let Some(tls) = &mut self.tls else {
                return Poll::Ready(Ok(()));
            };
            if !tls.is_handshaking() || tls.early_data().is_some() {
                return Poll::Ready(Ok(()));
            }
            let mut wire = Wire {
                tcp: &mut self.tcp,
                context,
                passed: &self.passed,
            };
            match take_records(tls, &mut wire) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Poll::Pending,
                Ok(0) => {
                    self.passed.ended.set(true);
                    return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
                }
                done => done?,
            };
        }
    }

    /// Ends our side: sends what is pending, close_notify of TLS unless it is to be left out, and a
    /// FIN. Then it reads until the client ends its side or `patience` is over. A socket closed
    /// with bytes unread sends a RST, which may destroy our last response.
    pub(crate) async fn finish(mut self, close_notify: bool, patience: Duration) {
        if let Some(tls) = &mut self.tls
            && close_notify
        {
            // what is not encrypted yet goes before it
            let _ = tls.writer().write_all(&self.out);
            self.out.clear();
            tls.send_close_notify();
        }
        let goodbye = async {
            let _ = self.flush().await;
            let _ = SockRef::from(&self.tcp).shutdown(Shutdown::Write);
            self.drain().await;
        };
        let _ = tokio::time::timeout(patience, goodbye).await;
    }

    /// Ends the connection with a RST; what is pending is sent before, up to what the kernel takes
    /// at once.
    pub(crate) async fn reset(mut self) {
        let _ = tokio::time::timeout(Duration::from_millis(100), self.flush()).await;
        let _ = SockRef::from(&self.tcp).set_linger(Some(Duration::ZERO));
    }

    /// Says nothing any more and listens to nothing, until the client gives up.
    pub(crate) async fn hold(&mut self) {
        self.drain().await;
    }

    async fn drain(&mut self) {
        // not an array: it would be part of every task
        let mut rest = vec![0; 4096];
        poll_fn(|context| {
            let mut wire = Wire {
                tcp: &mut self.tcp,
                context,
                passed: &self.passed,
            };
            loop {
                match wire.read(&mut rest) {
                    Ok(0) => return Poll::Ready(()),
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Poll::Pending,
                    Err(_) => return Poll::Ready(()),
                }
            }
        })
        .await;
        self.passed.ended.set(true);
    }
}

/// Plaintext, early or not, else more records.
fn read_tls(
    tls: &mut ServerConnection,
    wire: &mut Wire<'_, '_>,
    buffer: &mut [u8],
) -> io::Result<usize> {
    loop {
        if let Some(mut early) = tls.early_data() {
            let count = early.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
        }
        match tls.reader().read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // a FIN without close_notify: for us an end like any other
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
            read => return read,
        }
        take_records(tls, wire)?;
        // the answers of the handshake; what the kernel does not take now goes with the next flush
        match write_tls(tls, wire) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
}

/// Reads and decrypts what is there; 0 at the end of the stream.
fn take_records(tls: &mut ServerConnection, wire: &mut Wire<'_, '_>) -> io::Result<usize> {
    let count = tls.read_tls(wire)?;
    if let Err(error) = tls.process_new_packets() {
        // the alert with the reason for the client
        let _ = write_tls(tls, wire);
        return Err(io::Error::new(ErrorKind::InvalidData, error));
    }
    Ok(count)
}

fn write_tls(tls: &mut ServerConnection, wire: &mut Wire<'_, '_>) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(wire)?;
    }
    Ok(())
}

/// The socket as rustls wants it: `WouldBlock` where a poll is pending.
struct Wire<'a, 'c> {
    tcp: &'a mut TcpStream,
    context: &'a mut Context<'c>,
    passed: &'a ByteCounts,
}

impl Wire<'_, '_> {
    fn write_rest(&mut self, bytes: &[u8], written: &mut usize) -> io::Result<()> {
        while *written < bytes.len() {
            *written += self.write(&bytes[*written..])?;
        }
        Ok(())
    }

    fn note<T>(&self, done: Poll<io::Result<T>>) -> io::Result<T> {
        match done {
            Poll::Pending => Err(ErrorKind::WouldBlock.into()),
            Poll::Ready(Err(error)) => {
                if let ErrorKind::ConnectionReset | ErrorKind::BrokenPipe = error.kind() {
                    self.passed.reset.set(true);
                }
                Err(error)
            }
            Poll::Ready(done) => done,
        }
    }

    fn count_sent(&self, done: io::Result<usize>) -> io::Result<usize> {
        match done {
            Ok(0) => Err(ErrorKind::WriteZero.into()),
            Ok(count) => {
                self.passed.sent.set(self.passed.sent.get() + count as u64);
                Ok(count)
            }
            failed => failed,
        }
    }
}

impl Read for Wire<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(buffer);
        let done = Pin::new(&mut *self.tcp).poll_read(self.context, &mut buffer);
        self.note(done)?;
        let count = buffer.filled().len();
        self.passed
            .received
            .set(self.passed.received.get() + count as u64);
        Ok(count)
    }
}

impl Write for Wire<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = Pin::new(&mut *self.tcp).poll_write(self.context, bytes);
        self.count_sent(self.note(done))
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let done = Pin::new(&mut *self.tcp).poll_write_vectored(self.context, pieces);
        self.count_sent(self.note(done))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
