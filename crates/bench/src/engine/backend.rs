//! What the loop of a [`super::round::Round`] needs of the kernel. Two implementations:
//! [`super::readiness`] asks which sockets are ready and reads them, [`super::completion`] has the
//! kernel fill buffers.
//!
//! Sending is the same in both: a connection writes to its own socket at once. A queue of sends
//! would save less than it would falsify, because a request is timed from before its send.

use intact_client::clock::TimestampConverter;
use intact_client::{Clock, Dial, HttpConnection, Received};
use intact_ledger::Sink;
use mio::{Registry, Token};
use std::io;
use std::time::Duration;

/// A back end of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IoBackend {
    /// `mio`.
    Readiness,
    /// io_uring.
    #[cfg(target_os = "linux")]
    Uring,
}

/// The token of the resolver's waker.
pub(crate) const RESOLVER: Token = Token(usize::MAX);

/// What an event says of the peer's side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// Nothing of an end.
    Open,
    /// A FIN has come behind what is there to be read.
    Fin,
    /// An end; only a read shows which kind.
    Unclear,
}

/// Something that has happened to a socket, or at [`RESOLVER`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occurrence {
    /// The slot and its generation.
    pub(crate) token: Token,
    /// Whether a connecting socket is connected, without an error.
    pub(crate) is_connected: bool,
    /// What is known of the peer's side.
    pub(crate) closed: Hint,
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// At most this long.
    pub(crate) limit: Duration,
    /// Whether the end of the wait matters to less than a millisecond.
    pub(crate) is_precise: bool,
    /// A pause to gather responses in.
    pub(crate) pause: Option<Duration>,
    /// Responses that would end the pause early, where the kernel can count them.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "io_uring counts them")
    )]
    pub(crate) batch: usize,
}

/// Waits for the kernel, and receives.
pub(crate) trait Backend {
    /// Waits until something happens. What failed since the last wait is reported here too.
    fn wait(&mut self, wait: Wait) -> io::Result<()>;

    /// Whether a pause ends as soon as the batch is complete.
    fn counts_a_batch(&self) -> bool;

    /// The next occurrence since the last wait.
    fn next_occurrence(&mut self) -> Option<Occurrence>;

    /// Where dials register their sockets; `None` if [`Backend::watch_dial`] does it.
    fn registry(&self) -> Option<&Registry>;

    /// Watches the socket of a pending dial for its next step.
    fn watch_dial(&mut self, token: Token, dial: &Dial);

    /// Begins to receive on a connection that was established.
    fn open(&mut self, token: Token, connection: &HttpConnection);

    /// Receives what is there on the connection of the last occurrence.
    fn receive(
        &mut self,
        token: Token,
        connection: &mut HttpConnection,
        clock: &Clock,
        bridge: &TimestampConverter,
        sink: &mut impl Sink,
    ) -> Received;

    /// Whether a receive of this number of bytes may have left some in the socket.
    fn may_have_more(&self, connection: &HttpConnection, count: usize) -> bool;

    /// Watches a connection whose socket did not accept all bytes.
    fn watch_unsent(&mut self, token: Token, connection: &HttpConnection);

    /// The descriptor with this token will be closed.
    fn forget(&mut self, token: Token);
}
