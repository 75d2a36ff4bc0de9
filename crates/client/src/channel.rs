//! Moves the bytes of one connection, over TLS or plain. It knows nothing of HTTP, and it never blocks.
//!
//! Every loop here makes progress: a turn moves at least one byte, or it is the last one.

use crate::failure::tls_words;
use crate::{ResponseError, Stream, stamp};
use intact_ledger::ConnectionBytes;
use rustls::ClientConnection;
use std::io::{self, BufRead, ErrorKind, Read, Write};

/// Bytes of TLS records in a row without plaintext: a session needs far less for its tickets and key updates.
const MOST_SILENT: usize = 1 << 20;

/// The socket and the TLS session of an open connection.
pub(crate) struct Channel {
    stream: Stream,
    session: Option<Box<ClientConnection>>,
    stamped: bool,
    /// Plain bytes that the socket did not take yet.
    unsent: Vec<u8>,
    bytes: ConnectionBytes,
    /// Bytes of TLS records since the last plaintext.
    silent: usize,
}

/// The result of one read of the socket.
pub(crate) enum ReadResult {
    /// The number of bytes on the wire, with the kernel's receive timestamp if there is one.
    Bytes(usize, Option<u64>),
    /// Nothing is there now.
    Nothing,
    /// The peer has sent a FIN.
    End,
}

impl Channel {
    /// Takes over what a dial established. The bytes of the handshake count.
    pub(crate) fn new(
        stream: Stream,
        session: Option<Box<ClientConnection>>,
        stamped: bool,
        bytes: ConnectionBytes,
    ) -> Channel {
        Channel {
            stream,
            session,
            stamped,
            unsent: Vec::new(),
            bytes,
            silent: 0,
        }
    }

    /// The TLS session; absent over plain.
    pub(crate) fn session(&self) -> Option<&ClientConnection> {
        self.session.as_deref()
    }

    /// Bytes sent and received so far.
    pub(crate) fn bytes(&self) -> ConnectionBytes {
        self.bytes
    }

    /// Bytes that were passed to this channel so far, those that wait for the socket included. Over TLS they are a lower bound.
    #[inline]
    pub(crate) fn taken(&self) -> u64 {
        self.bytes.sent + self.unsent.len() as u64
    }

    /// Bytes of ours that the peer's TCP acknowledged so far; `None` where the kernel does not count.
    pub(crate) fn acknowledged(&self) -> Option<u64> {
        #[cfg(target_os = "linux")]
        return intact_sys::socket::acknowledged(&self.stream);
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Whether the peer's end is the next thing to be read. Nothing is read, and an end behind data is not found.
    pub(crate) fn is_at_end(&self) -> bool {
        match self.stream.peek() {
            Ok(count) => count == 0,
            Err(error) => {
                let kind = error.kind();
                kind != ErrorKind::WouldBlock && kind != ErrorKind::Interrupted
            }
        }
    }

    /// Segments that the kernel sent again so far; `None` where it does not count.
    pub(crate) fn retransmissions(&self) -> Option<u32> {
        #[cfg(target_os = "linux")]
        return intact_sys::socket::retransmissions(&self.stream);
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Sends, and keeps the part that the socket does not take.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(session) = &mut self.session {
            session.writer().write_all(bytes)?;
            return self.flush();
        }
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return self.flush();
        }
        let mut rest = bytes;
        loop {
            match (&self.stream).write(rest) {
                Ok(0) if !rest.is_empty() => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.bytes.sent += written as u64;
                    rest = &rest[written..];
                    if rest.is_empty() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.unsent.extend_from_slice(rest);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends the kept part, as much as the socket takes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        loop {
            let written = match &mut self.session {
                Some(session) if session.wants_write() => session.write_tls(&mut &self.stream),
                None if !self.unsent.is_empty() => (&self.stream).write(&self.unsent),
                _ => return Ok(()),
            };
            match written {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.bytes.sent += written as u64;
                    if self.session.is_none() {
                        self.unsent.drain(..written);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether something waits for the socket to take it.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        match &self.session {
            Some(session) => session.wants_write(),
            None => !self.unsent.is_empty(),
        }
    }

    /// Reads once from the socket into `buffer`. Over TLS the bytes are still encrypted.
    #[inline]
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<ReadResult> {
        loop {
            let read = if self.stamped {
                stamp::receive(&self.stream, buffer)
            } else {
                (&self.stream).read(buffer).map(|count| (count, None))
            };
            return match read {
                Ok((0, _)) => Ok(ReadResult::End),
                Ok((count, stamp)) => {
                    self.bytes.received += count as u64;
                    Ok(ReadResult::Bytes(count, stamp))
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(ReadResult::Nothing),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
    }

    /// Whether the bytes of [`Channel::receive`] are plaintext.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.session.is_none()
    }

    /// Decrypts received bytes and passes the plaintext on, piece by piece. Returns whether the peer has sent close_notify; bytes
    /// after that are dropped (RFC 8446 section 6.1).
    ///
    /// # Errors
    /// The bytes are not TLS or not of this session, or there are too many of them without plaintext.
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
            // a session that is closed takes nothing, and would never take the rest
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

    /// Passes on the plaintext that TLS has decrypted already, such as data that came with the handshake.
    pub(crate) fn buffered(&mut self, mut plaintext: impl FnMut(&[u8])) {
        if let Some(session) = &mut self.session {
            drain(session, &mut plaintext);
        }
    }

    /// Sends `last`, over TLS with a close_notify after it. Errors have no consequence any more.
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

/// Passes the decrypted bytes on. Returns whether there were any.
#[inline]
fn drain(session: &mut ClientConnection, plaintext: &mut impl FnMut(&[u8])) -> bool {
    let mut reader = session.reader();
    let mut any = false;
    // an error means that nothing is there now, or that the peer closed: the socket will say so
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
