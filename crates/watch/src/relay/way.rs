//! One direction of a relayed connection: read here, write there, hold what does not fit.

use mio::net::TcpStream;
use std::io::{self, Read, Write};
use std::net::Shutdown;

/// Reads in a row before another connection has its turn.
const TURN: usize = 16;

/// What came.
pub(super) enum Came<'a> {
    /// Bytes.
    Bytes(&'a [u8]),
    /// The end of the stream.
    Fin,
}

/// Why a pass over a direction stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Nothing more to read for now, or no room to write.
    Waiting,
    /// There is more; another connection's turn first.
    Turn,
    /// The stream was passed on to its end.
    Ended,
    /// The source was reset.
    SourceReset,
    /// The destination was reset.
    SinkReset,
}

/// One direction.
#[derive(Default)]
pub(super) struct Way {
    /// Read and not yet written.
    held: Vec<u8>,
    /// How much of that has been written.
    written: usize,
    /// The source may have more.
    pub(super) readable: bool,
    /// The source has said that its end is near.
    pub(super) closing: bool,
    /// The end of the stream was read.
    fin: bool,
    /// It was passed on.
    ended: bool,
}

impl Way {
    /// Whether the end of the stream was passed on.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Passes on what there is.
    pub(super) fn pass(
        &mut self,
        from: &mut TcpStream,
        to: &mut TcpStream,
        scratch: &mut [u8],
        mut see: impl FnMut(Came<'_>),
    ) -> Stop {
        for _ in 0..TURN {
            match self.write_held(to) {
                Ok(true) => {}
                Ok(false) => return Stop::Waiting,
                Err(_) => return Stop::SinkReset,
            }
            if self.fin {
                if !self.ended {
                    self.ended = true;
                    let _ = to.shutdown(Shutdown::Write);
                }
                return Stop::Ended;
            }
            if !self.readable {
                return Stop::Waiting;
            }
            match from.read(scratch) {
                Ok(0) => {
                    self.fin = true;
                    see(Came::Fin);
                }
                Ok(count) => {
                    let bytes = &scratch[..count];
                    // a short read has emptied the socket; only an end may follow without another event
                    self.readable = count == scratch.len() || self.closing;
                    see(Came::Bytes(bytes));
                    match to.write(bytes) {
                        Ok(written) => self.held.extend_from_slice(&bytes[written..]),
                        Err(error) if is_patient(&error) => self.held.extend_from_slice(bytes),
                        Err(_) => return Stop::SinkReset,
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Stop::SourceReset,
            }
        }
        Stop::Turn
    }

    /// Whether all that was held has been written.
    fn write_held(&mut self, to: &mut TcpStream) -> io::Result<bool> {
        while self.written < self.held.len() {
            match to.write(&self.held[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_patient(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.held.clear();
        self.written = 0;
        Ok(true)
    }
}

fn is_patient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
