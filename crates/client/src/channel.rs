//! Moves the bytes of one connection, over TLS or plain. It knows no HTTP and never blocks.
//!
//! Every loop here makes progress: an iteration moves at least one byte, or it is the last one.

use crate::failure::tls_words;
use crate::stream::without_waiting;
use crate::{ResponseError, Stream, stamp};
use intact_ledger::ConnectionBytes;
use intact_wire::tcp::Acknowledgements;
use rustls::ClientConnection;
use std::io::{self, BufRead, ErrorKind, Read, Write};

/// Limit of bytes of consecutive TLS records without plaintext; tickets and key updates need far
/// fewer.
const MOST_SILENT: usize = 1 << 20;

/// The socket and the TLS session of an open connection.
pub(crate) struct Channel {
    stream: Stream,
    session: Option<Box<ClientConnection>>,
    stamped: bool,
    /// Plain bytes that the socket did not accept yet.
    unsent: Vec<u8>,
    bytes: ConnectionBytes,
    /// What was sent before the end of the handshake; `None` after it.
    early: Option<Box<EarlyBytes>>,
    /// Bytes of TLS records since the last plaintext.
    silent: usize,
}

/// Plain bytes that were sent before the end of the TLS handshake. They are kept, because the
/// server may refuse them.
#[derive(Default)]
struct EarlyBytes {
    plain: Vec<u8>,
    /// How many of them went as early data; the rest exceeds the server's limit.
    taken: usize,
}

impl Channel {
    /// Takes over the stream and the session of a dial. The bytes of the handshake count.
    pub(crate) fn new(
        stream: Stream,
        session: Option<Box<ClientConnection>>,
        stamped: bool,
        bytes: ConnectionBytes,
    ) -> Channel {
        let session_of = session.as_deref();
        let is_handshaking = session_of.is_some_and(|session| session.is_handshaking());
        Channel {
            early: is_handshaking.then(Box::default),
            stream,
            session,
            stamped,
            unsent: Vec::new(),
            bytes,
            silent: 0,
        }
    }

    /// The TLS session; `None` without TLS.
    pub(crate) fn session(&self) -> Option<&ClientConnection> {
        self.session.as_deref()
    }

    /// Bytes sent and received so far.
    pub(crate) fn bytes(&self) -> ConnectionBytes {
        self.bytes
    }

    /// Bytes passed to this channel so far, including those that wait for the socket. With TLS a
    /// lower bound.
    #[inline]
    pub(crate) fn taken(&self) -> u64 {
        self.bytes.sent + self.unsent.len() as u64
    }

    /// Bytes that the peer's TCP acknowledged so far; `None` if the kernel does not count them.
    pub(crate) fn acknowledged(&self) -> Option<u64> {
        #[cfg(target_os = "linux")]
        return intact_sys::socket::acknowledged(&self.stream);
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Whether the next read returns the peer's end. Reads nothing, so it does not find an end
    /// after data.
    pub(crate) fn is_at_end(&self) -> bool {
        match self.stream.peek() {
            Ok(count) => count == 0,
            Err(error) => {
                let kind = error.kind();
                kind != ErrorKind::WouldBlock && kind != ErrorKind::Interrupted
            }
        }
    }

    /// The kernel's counts of segments and round trips; `None` if it has none.
    pub(crate) fn acknowledgements(&self) -> Option<Acknowledgements> {
        #[cfg(target_os = "linux")]
        return intact_sys::socket::acknowledgements(&self.stream).map(Acknowledgements::new);
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Whether data went with the SYN, and the server took it.
    pub(crate) fn sent_with_syn(&self) -> Option<bool> {
        #[cfg(target_os = "linux")]
        return intact_sys::socket::sent_with_syn(&self.stream);
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Sends bytes, and keeps the part that the socket does not accept.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(session) = &mut self.session {
            match &mut self.early {
                None => session.writer().write_all(bytes)?,
                Some(early) => early.send(session, bytes)?,
            }
            return self.flush();
        }
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return self.flush();
        }
        let mut rest = bytes;
        loop {
            match without_waiting(|| (&self.stream).write(rest))? {
                Some(0) if !rest.is_empty() => return Err(ErrorKind::WriteZero.into()),
                Some(written) => {
                    self.bytes.sent += written as u64;
                    rest = &rest[written..];
                    if rest.is_empty() {
                        return Ok(());
                    }
                }
                None => {
                    self.unsent.extend_from_slice(rest);
                    return Ok(());
                }
            }
        }
    }

    /// Sends the kept part, up to where the socket accepts it.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        loop {
            let mut stream = &self.stream;
            let written = match &mut self.session {
                Some(session) if session.wants_write() => {
                    without_waiting(|| session.write_tls(&mut stream))?
                }
                None if !self.unsent.is_empty() => without_waiting(|| stream.write(&self.unsent))?,
                _ => return Ok(()),
            };
            match written {
                Some(0) => return Err(ErrorKind::WriteZero.into()),
                Some(written) => {
                    self.bytes.sent += written as u64;
                    if self.session.is_none() {
                        self.unsent.drain(..written);
                    }
                }
                None => return Ok(()),
            }
        }
    }

    /// Whether bytes wait for the socket.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        match &self.session {
            Some(session) => session.wants_write(),
            None => !self.unsent.is_empty(),
        }
    }

    /// Reads once from the socket into `buffer`. Over TLS the bytes are still encrypted. Returns
    /// their number, 0 after a FIN of the peer, with the kernel's receive timestamp if there is
    /// one; `None` if no bytes are available.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
    ) -> io::Result<Option<(usize, Option<u64>)>> {
        let read = without_waiting(|| match self.stamped {
            true => stamp::receive(&self.stream, buffer),
            false => (&self.stream).read(buffer).map(|count| (count, None)),
        })?;
        self.note_received(read.map_or(0, |(count, _)| count));
        Ok(read)
    }

    /// The socket, for a caller that receives from it; it counts the bytes by
    /// [`Channel::note_received`].
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Counts bytes that the caller received from the socket.
    #[inline]
    pub(crate) fn note_received(&mut self, count: usize) {
        self.bytes.received += count as u64;
    }

    /// Whether the bytes of [`Channel::receive`] are plaintext.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.session.is_none()
    }

    /// Decrypts received bytes and passes the plaintext on in pieces. Returns whether the peer has
    /// sent close_notify. Bytes after that are dropped (RFC 8446 section 6.1).
    ///
    /// # Errors
    /// If the bytes are not TLS or not of this session, or if there are too many of them without
    /// plaintext.
    #[inline]
    pub(crate) fn decrypt(
        &mut self,
        mut bytes: &[u8],
        mut plaintext: impl FnMut(&[u8]),
    ) -> Result<bool, ResponseError> {
        let Some(session) = &mut self.session else {
            plaintext(bytes);
            return Ok(false);
        };
        while !bytes.is_empty() {
            // a closed session accepts nothing, and would never accept the rest
            let taken = session
                .read_tls(&mut bytes)
                .map_err(|error| ResponseError::tls(error.to_string()))?;
            if taken == 0 {
                return Ok(true);
            }
            let state = session
                .process_new_packets()
                .map_err(|error| ResponseError::tls(tls_words(&error)))?;
            self.silent += taken;
            if drain(session, &mut plaintext) {
                self.silent = 0;
            }
            if state.peer_has_closed() {
                return Ok(true);
            }
            if self.silent > MOST_SILENT {
                return Err(ResponseError::no_progress(format!(
                    "more than {MOST_SILENT} bytes of TLS records without data"
                )));
            }
        }
        Ok(false)
    }

    /// Whether the TLS handshake is not complete.
    #[inline]
    pub(crate) fn is_handshaking(&self) -> bool {
        self.early.is_some()
    }

    /// Reads bytes of the TLS handshake, up to its end. Returns the bytes after it;
    /// [`Channel::buffered`] and [`Channel::decrypt`] have their plaintext. `None`: the handshake
    /// is not complete.
    ///
    /// # Errors
    /// Those of the handshake.
    pub(crate) fn continue_handshake<'a>(
        &mut self,
        mut bytes: &'a [u8],
    ) -> Result<Option<&'a [u8]>, rustls::Error> {
        let Some(session) = &mut self.session else {
            return Ok(None);
        };
        while !bytes.is_empty() && session.is_handshaking() {
            let taken = session.read_tls(&mut bytes);
            if taken.map_err(|error| rustls::Error::General(error.to_string()))? == 0 {
                break;
            }
            if let Err(error) = session.process_new_packets() {
                // sends the alert with the reason; a failure does not matter
                let _ = session.write_tls(&mut &self.stream);
                return Err(error);
            }
        }
        if session.is_handshaking() {
            return Ok(None);
        }
        if let Some(early) = self.early.take() {
            let sent = match session.is_early_data_accepted() {
                true => early.taken,
                false => 0,
            };
            let again = session.writer().write_all(&early.plain[sent..]);
            again.map_err(|error| rustls::Error::General(error.to_string()))?;
        }
        Ok(Some(bytes))
    }

    /// Passes on the plaintext that is decrypted already, such as data that arrived with the
    /// handshake.
    pub(crate) fn buffered(&mut self, mut plaintext: impl FnMut(&[u8])) {
        if let Some(session) = &mut self.session {
            drain(session, &mut plaintext);
        }
    }

    /// Sends `last`, with TLS also a close_notify after it. Errors are ignored.
    pub(crate) fn say_goodbye(&mut self, last: &[u8]) {
        if !last.is_empty() {
            let _ = self.send(last);
        }
        if let Some(session) = &mut self.session {
            session.send_close_notify();
            let _ = self.flush();
        }
    }
}

impl EarlyBytes {
    /// Sends bytes as early data, up to the server's limit, and keeps them.
    fn send(&mut self, session: &mut ClientConnection, bytes: &[u8]) -> io::Result<()> {
        if self.taken == self.plain.len()
            && let Some(mut writer) = session.early_data()
        {
            let most = bytes.len().min(writer.bytes_left());
            writer.write_all(&bytes[..most])?;
            self.taken += most;
        }
        self.plain.extend_from_slice(bytes);
        Ok(())
    }
}

/// Passes the decrypted bytes on. Returns whether there were any.
#[inline]
fn drain(session: &mut ClientConnection, plaintext: &mut impl FnMut(&[u8])) -> bool {
    let mut reader = session.reader();
    let mut any = false;
    // an error means that no bytes are available, or that the peer closed: the socket shows which
    while let Ok(bytes) = reader.fill_buf() {
        if bytes.is_empty() {
            break;
        }
        any = true;
        let count = bytes.len();
        plaintext(bytes);
        reader.consume(count);
    }
    any
}
