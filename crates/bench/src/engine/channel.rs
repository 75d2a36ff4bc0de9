//! Moves the bytes of one connection, through TLS or plain. Knows nothing of HTTP.

use intact_client::{Established, Stream, stamp};
use intact_ledger::Failure;
use rustls::ClientConnection;
use std::io::{self, BufRead, ErrorKind, Read, Write};

/// An open connection's socket and TLS session.
pub(crate) struct Channel {
    pub(crate) stream: Stream,
    session: Option<Box<ClientConnection>>,
    stamped: bool,
    /// Plain bytes that the socket did not take yet.
    unsent: Vec<u8>,
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// What one read of the socket gave.
pub(crate) enum ReadResult {
    /// So many bytes of the wire, with the kernel's stamp where there is one.
    Bytes(usize, Option<u64>),
    /// Nothing for now.
    Nothing,
    /// The peer closed its side.
    End,
}

impl Channel {
    pub(crate) fn new(established: Established) -> (Channel, intact_ledger::Connection) {
        let channel = Channel {
            stream: established.stream,
            session: established.session,
            stamped: established.stamped,
            unsent: Vec::new(),
            sent: 0,
            received: 0,
        };
        (channel, established.connection)
    }

    /// Sends, and keeps what the socket does not take. `Ok(true)`: all of it is with the kernel.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<bool> {
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
                Ok(written) => {
                    self.sent += written as u64;
                    rest = &rest[written..];
                    if rest.is_empty() {
                        return Ok(true);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.unsent.extend_from_slice(rest);
                    return Ok(false);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends what was kept. `Ok(true)`: nothing is left.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        if let Some(session) = &mut self.session {
            while session.wants_write() {
                match session.write_tls(&mut &self.stream) {
                    Ok(written) => self.sent += written as u64,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            return Ok(true);
        }
        while !self.unsent.is_empty() {
            match (&self.stream).write(&self.unsent) {
                Ok(written) => {
                    self.sent += written as u64;
                    self.unsent.drain(..written);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Whether something waits for the socket to take it.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        match &self.session {
            Some(session) => session.wants_write(),
            None => !self.unsent.is_empty(),
        }
    }

    /// Reads once from the socket into `buffer`; what is read there is still encrypted under TLS.
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
                    self.received += count as u64;
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

    /// Decrypts what was received and hands the plaintext on piece by piece.
    pub(crate) fn decrypt(
        &mut self,
        mut bytes: &[u8],
        mut plaintext: impl FnMut(&[u8]),
    ) -> Result<(), Failure> {
        let Some(session) = &mut self.session else {
            plaintext(bytes);
            return Ok(());
        };
        while !bytes.is_empty() {
            session.read_tls(&mut bytes).map_err(|_| Failure::Tls)?;
            session.process_new_packets().map_err(|_| Failure::Tls)?;
            drain(session, &mut plaintext);
        }
        Ok(())
    }

    /// Sends the last words, under TLS with a close_notify behind them. Errors do not matter any more.
    pub(crate) fn say_goodbye(&mut self, words: &[u8]) {
        if !words.is_empty() {
            let _ = self.send(words);
        }
        if let Some(session) = &mut self.session {
            session.send_close_notify();
            let _ = self.flush();
        }
    }
}

#[inline]
fn drain(session: &mut ClientConnection, plaintext: &mut impl FnMut(&[u8])) {
    let mut reader = session.reader();
    // an error means that nothing is there now, or that the peer closed: the socket will say so
    while let Ok(bytes) = reader.fill_buf() {
        if bytes.is_empty() {
            return;
        }
        let count = bytes.len();
        plaintext(bytes);
        reader.consume(count);
    }
}
