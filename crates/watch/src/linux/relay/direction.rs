//! One direction of a relayed connection: read here, write there, hold what does not fit.

use super::delay::Delay;
use super::delivery::Delivery;
use super::hold::Hold;
use intact_sys::socket;
use mio::net::TcpStream;
use socket2::SockRef;
use std::borrow::Cow;
use std::io::{self, Read};
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// Reads in a row before another connection has its turn.
const TURN: usize = 16;

/// What came.
#[derive(Clone, Copy)]
pub(super) enum ReadResult<'a> {
    /// Bytes.
    Bytes(&'a [u8]),
    /// The end of the stream.
    Fin {
        /// Bytes that the source's TCP had acknowledged by then.
        acknowledged: Option<u64>,
    },
}

/// What is passed on of bytes that came.
pub(super) enum Passed {
    /// All of them.
    All,
    /// The first of them, and nothing later.
    First(usize),
    /// The first of them together with the end of the stream, which the caller sends next.
    Last(usize),
    /// These bytes instead.
    Instead(Vec<u8>),
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
    /// The destination was reset after its FIN.
    SinkClosed,
    /// Our kernel gave the peer up: probes or bytes were not acknowledged in time.
    TimedOut,
}

impl Stop {
    /// Why the sink took no bytes. Linux reports a RST that follows a FIN as EPIPE.
    fn by_sink(error: &io::Error) -> Stop {
        match error.kind() {
            io::ErrorKind::ConnectionReset => Stop::SinkReset,
            io::ErrorKind::TimedOut => Stop::TimedOut,
            _ => Stop::SinkClosed,
        }
    }
}

/// One direction.
#[derive(Default)]
pub(super) struct RelayDirection {
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
    /// It was a reset, which what is on its way still precedes.
    reset: bool,
    /// A write to the source has met its RST, so that reads see a FIN in its place.
    pub(super) is_source_reset: bool,
    /// It was passed on.
    ended: bool,
    /// How many bytes have left the source.
    pub(super) taken: u64,
    /// Bytes that the source's TCP had acknowledged at its end.
    pub(super) acknowledged: Option<u64>,
    delivery: Delivery,
    /// Whether the sink reports when it has room.
    room_reported: bool,
    /// Where a distance is emulated.
    delay: Option<Box<Delay>>,
    /// Bytes are shown when they arrive and not when they depart: so the program sees answers.
    shown_late: bool,
    /// Nothing is read from the source any more, and nothing passed on but what is held.
    is_cut: bool,
    /// Bytes that were read and are not passed on.
    dropped: u64,
}

impl RelayDirection {
    /// A direction in which everything takes that long.
    pub(super) fn over(distance: Duration, shown_late: bool) -> RelayDirection {
        RelayDirection {
            delay: (!distance.is_zero()).then(|| Box::new(Delay::new(distance))),
            shown_late: shown_late && !distance.is_zero(),
            ..RelayDirection::default()
        }
    }

    /// The same direction, to this sink.
    pub(super) fn to(self, sink: &TcpStream) -> RelayDirection {
        let delivery = Delivery::to(sink);
        RelayDirection { delivery, ..self }
    }

    /// When something arrives over the emulated distance.
    pub(super) fn next(&self) -> Option<Instant> {
        self.delay.as_ref().filter(|_| !self.ended)?.next()
    }

    /// Whether any bytes have left the source.
    pub(super) fn has_spoken(&self) -> bool {
        self.taken > 0
    }

    /// How many bytes the sink has taken.
    pub(super) fn passed_on(&self) -> u64 {
        let underway = self.delay.as_ref().map_or(0, |delay| delay.bytes());
        self.taken - self.dropped - (self.held.len() - self.written + underway) as u64
    }

    /// How many bytes the TCP of the sink's peer has received; `None` if it is on another machine.
    pub(super) fn received(&self) -> Option<u64> {
        self.delivery.received(self.passed_on())
    }

    /// Whether the end of the stream was passed on.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Reads nothing any more.
    pub(super) fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Whether it reads nothing any more.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Reads on after [`RelayDirection::cut`].
    pub(super) fn resume(&mut self) {
        self.is_cut = false;
        self.readable = true;
    }

    /// Whether all that was read has been written.
    pub(super) fn is_flushed(&self) -> bool {
        self.held.is_empty() && self.delay.as_ref().is_none_or(|delay| delay.bytes() == 0)
    }

    /// Writes what the source did not send behind what it sent.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.taken += bytes.len() as u64;
        self.send(bytes);
    }

    /// Writes what was read and not passed on after all.
    pub(super) fn pass_late(&mut self, bytes: &[u8]) {
        self.dropped -= bytes.len() as u64;
        self.send(bytes);
    }

    fn send(&mut self, bytes: &[u8]) {
        match &mut self.delay {
            Some(delay) => delay.depart(Instant::now(), bytes),
            None => self.held.extend_from_slice(bytes),
        }
    }

    /// Whether the sink is full, and was not asked to report when it has room.
    pub(super) fn begins_to_wait_for_room(&mut self) -> bool {
        let waits = self.written < self.held.len();
        waits && !std::mem::replace(&mut self.room_reported, true)
    }

    /// Passes on what there is, and reads nothing while the sender is on `hold`. Where the other
    /// direction has ended, `is_last`, the end of the stream is passed on by the close that
    /// follows.
    pub(super) fn pass(
        &mut self,
        (from, to): (&mut TcpStream, &mut TcpStream),
        scratch: &mut [u8],
        is_last: bool,
        hold: &Hold,
        mut see: impl FnMut(ReadResult<'_>) -> Passed,
    ) -> Stop {
        for _ in 0..TURN {
            self.take_arrivals(to, &mut see);
            match self.write_held(to) {
                Ok(true) => {}
                Ok(false) => return Stop::Waiting,
                Err(error) => return Stop::by_sink(&error),
            }
            if self.fin && self.has_arrived() {
                if self.reset {
                    return Stop::SourceReset;
                }
                if !self.ended {
                    self.ended = true;
                    if self.shown_late {
                        let acknowledged = self.acknowledged;
                        see(ReadResult::Fin { acknowledged });
                    }
                    if !is_last {
                        let _ = to.shutdown(Shutdown::Write);
                    }
                }
                return Stop::Ended;
            }
            if !self.readable || self.fin || self.is_cut || self.is_full() || hold.is_held() {
                return Stop::Waiting;
            }
            if let Some(stop) = self.take(from, to, scratch, &mut see) {
                return stop;
            }
        }
        Stop::Turn
    }

    /// Reads once, and passes on what there is room for. Why the pass stops, if it does.
    fn take(
        &mut self,
        from: &mut TcpStream,
        to: &mut TcpStream,
        scratch: &mut [u8],
        see: &mut impl FnMut(ReadResult<'_>) -> Passed,
    ) -> Option<Stop> {
        let came = match from.read(scratch) {
            Ok(0) if self.is_source_reset => Err(io::ErrorKind::ConnectionReset.into()),
            came => came,
        };
        match came {
            Ok(0) => {
                self.fin = true;
                self.acknowledged = socket::acknowledged(from);
                if let Some(delay) = &mut self.delay {
                    delay.depart_end(Instant::now());
                }
                if !self.shown_late {
                    let acknowledged = self.acknowledged;
                    see(ReadResult::Fin { acknowledged });
                }
            }
            Ok(count) => {
                self.taken += count as u64;
                let bytes = &scratch[..count];
                // a short read has emptied the socket; only an end may follow without another event
                self.readable = count == scratch.len() || self.closing;
                let passed = match self.shown_late {
                    true => Passed::All,
                    false => see(ReadResult::Bytes(bytes)),
                };
                let bytes = &*self.pass_on(passed, bytes, to);
                if let Some(delay) = &mut self.delay {
                    delay.depart(Instant::now(), bytes);
                    return None;
                }
                match self.delivery.write(to, bytes) {
                    Ok(written) => self.held.extend_from_slice(&bytes[written..]),
                    Err(error) if is_patient(&error) => self.held.extend_from_slice(bytes),
                    Err(error) => {
                        self.held.extend_from_slice(bytes);
                        return Some(Stop::by_sink(&error));
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                self.acknowledged = socket::acknowledged(from);
                let Some(delay) = &mut self.delay else {
                    return Some(match error.kind() {
                        io::ErrorKind::TimedOut => Stop::TimedOut,
                        _ => Stop::SourceReset,
                    });
                };
                delay.depart_end(Instant::now());
                self.fin = true;
                self.reset = true;
            }
        }
        None
    }

    /// Holds what has arrived over the emulated distance ready for writing.
    fn take_arrivals(&mut self, to: &TcpStream, see: &mut impl FnMut(ReadResult<'_>) -> Passed) {
        if self.delay.is_none() {
            return;
        }
        let now = Instant::now();
        while let Some(bytes) = self.delay.as_mut().and_then(|delay| delay.arrive(now)) {
            let passed = match self.shown_late {
                true if self.is_cut => Passed::First(0),
                true => see(ReadResult::Bytes(&bytes)),
                false => Passed::All,
            };
            let bytes = self.pass_on(passed, &bytes, to);
            self.held.extend_from_slice(&bytes);
        }
    }

    /// What goes on of bytes that were shown. Where that is a part, cuts the direction behind it.
    fn pass_on<'b>(&mut self, passed: Passed, bytes: &'b [u8], to: &TcpStream) -> Cow<'b, [u8]> {
        let count = match passed {
            Passed::All => return bytes.into(),
            Passed::Instead(other) => return other.into(),
            Passed::First(count) => count,
            Passed::Last(count) => {
                // the end of the stream comes in the same segment
                let _ = SockRef::from(to).set_tcp_cork(true);
                count
            }
        };
        self.is_cut = true;
        self.readable = false;
        self.dropped += (bytes.len() - count) as u64;
        bytes[..count].into()
    }

    fn has_arrived(&self) -> bool {
        let delay = self.delay.as_ref();
        delay.is_none_or(|delay| delay.has_ended(Instant::now()))
    }

    fn is_full(&self) -> bool {
        self.delay.as_ref().is_some_and(|delay| delay.is_full())
    }

    /// Whether all that was held has been written.
    fn write_held(&mut self, to: &mut TcpStream) -> io::Result<bool> {
        while self.written < self.held.len() {
            match self.delivery.write(to, &self.held[self.written..]) {
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
