//! A stream that counts its bytes and notices who ended it.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What passed through a stream so far.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    pub(crate) received: Cell<u64>,
    pub(crate) sent: Cell<u64>,
    /// The peer closed its side.
    pub(crate) ended: Cell<bool>,
    /// The peer reset the connection.
    pub(crate) reset: Cell<bool>,
}

/// The stream.
pub(crate) struct Meter<S> {
    stream: S,
    passed: Rc<Passed>,
}

impl<S> Meter<S> {
    pub(crate) fn new(stream: S) -> (Meter<S>, Rc<Passed>) {
        let passed = Rc::new(Passed::default());
        let meter = Meter {
            stream,
            passed: passed.clone(),
        };
        (meter, passed)
    }

    fn note<T>(&self, result: &Poll<io::Result<T>>) {
        if let Poll::Ready(Err(error)) = result
            && matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
            )
        {
            self.passed.reset.set(true);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Meter<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let room = buffer.remaining();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.note(&result);
        if let Poll::Ready(Ok(())) = result {
            let read = buffer.filled().len() - before;
            if read == 0 && room > 0 {
                self.passed.ended.set(true);
            }
            let passed = &self.passed.received;
            passed.set(passed.get() + read as u64);
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Meter<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(&result);
        if let Poll::Ready(Ok(written)) = result {
            let passed = &self.passed.sent;
            passed.set(passed.get() + written as u64);
        }
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
