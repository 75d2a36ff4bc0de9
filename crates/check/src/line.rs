//! One open connection: moves its bytes, through TLS or plain, and notices how it ends.

use crate::conversation::{Answered, HttpConnection};
use intact_client::clock::TimestampConverter;
use intact_client::{Arrival, Clock, Established, HandshakeFacts, Stream, stamp};
use intact_ledger::server_profile::Ended;
use intact_ledger::{
    Close, CloseKind, ClosePoint, Closed, Connection, ConnectionBytes, Failure, Nanos, Protocol,
    Side,
};
use rustls::ClientConnection;
use std::io::{self, ErrorKind, Read, Write};

/// An open connection.
pub(crate) struct Line {
    pub(crate) connection: Connection,
    pub(crate) talk: HttpConnection,
    pub(crate) handshake: HandshakeFacts,
    stream: Stream,
    session: Option<Box<ClientConnection>>,
    stamped: bool,
    /// What the socket has not taken yet; under TLS plaintext that has not gone to the session.
    out: Vec<u8>,
    bytes: ConnectionBytes,
    /// Exchanges begun.
    pub(crate) exchanges: u32,
    /// The exchange that ended, until it is collected.
    pub(crate) answered: Option<Answered>,
    /// The end of the setup or of the last answer, whichever is later.
    pub(crate) active_at: Nanos,
    ended: Option<(Nanos, CloseKind)>,
    /// It ended while an exchange was in flight.
    mid_exchange: bool,
}

impl Line {
    /// Takes over what a dial established.
    pub(crate) fn new(established: Established, protocol: Protocol) -> Line {
        let mut out = Vec::new();
        let talk = HttpConnection::new(protocol, &mut out);
        let setup = established.connection.setup;
        let ready = setup.ssl.or(setup.connect).map(|span| span.end);
        Line {
            talk,
            handshake: established.handshake,
            stream: established.stream,
            session: established.session,
            stamped: established.stamped,
            out,
            bytes: ConnectionBytes {
                sent: 0,
                received: established.handshake.received,
            },
            exchanges: 0,
            answered: None,
            active_at: ready.unwrap_or(established.connection.at),
            connection: established.connection,
            ended: None,
            mid_exchange: false,
        }
    }

    /// The TLS session, if TLS is spoken.
    pub(crate) fn session(&self) -> Option<&ClientConnection> {
        self.session.as_deref()
    }

    /// How the server ended it, if it did; a GOAWAY ends its use before the stream does.
    pub(crate) fn ended(&self) -> Option<(Nanos, Ended)> {
        let goaway = self.talk.goaway_at().map(|at| (at, CloseKind::Goaway));
        let (at, how) = goaway.or(self.ended)?;
        let told = Ended {
            by: Some(Side::Server),
            how,
            announced: self.talk.announced_by() == Some(Side::Server),
            unsolicited_status: self.talk.unasked(),
        };
        Some((at, told))
    }

    /// Whether another request may be sent.
    pub(crate) fn is_usable(&self) -> bool {
        self.ended.is_none() && !self.talk.is_over()
    }

    /// Queues bytes for the wire.
    pub(crate) fn queue(&mut self, fill: impl FnOnce(&mut HttpConnection, &mut Vec<u8>)) {
        fill(&mut self.talk, &mut self.out);
    }

    /// Sends what is queued, as far as the socket takes it.
    pub(crate) fn flush(&mut self, now: Nanos) {
        // what breaks here shows again in reading, and what the server said before it broke is still to be read
        let _ = self.try_flush(now);
        if self.ended.is_some() {
            let answered = self.talk.end(None, now);
            self.note(answered);
        }
    }

    fn try_flush(&mut self, now: Nanos) -> io::Result<()> {
        let had = !self.out.is_empty();
        if let Some(session) = &mut self.session {
            session.writer().write_all(&self.out)?;
            self.out.clear();
            while session.wants_write() {
                match session.write_tls(&mut &self.stream) {
                    Ok(written) => self.bytes.sent += written as u64,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        while !self.out.is_empty() {
            match (&self.stream).write(&self.out) {
                Ok(written) => {
                    self.bytes.sent += written as u64;
                    self.out.drain(..written);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if had {
            self.talk.sent(now);
        }
        Ok(())
    }

    /// Reads everything that is there; no longer than until then, because a server that never pauses keeps it coming.
    pub(crate) fn pump(&mut self, clock: &Clock, buffer: &mut [u8], until: Nanos) {
        // TLS may hold plaintext from the handshake already
        self.take_plaintext(buffer, Arrival::new(None, clock.now()));
        while self.ended.is_none() {
            let read = if self.stamped {
                stamp::receive(&self.stream, buffer)
            } else {
                (&self.stream).read(buffer).map(|count| (count, None))
            };
            let now = clock.now();
            match read {
                Ok((0, _)) => self.end(CloseKind::Fin, None, now),
                Ok((count, kernel)) => {
                    self.bytes.received += count as u64;
                    let at = kernel.and_then(|kernel| {
                        TimestampConverter::read(clock).convert(kernel, clock.now())
                    });
                    let arrival = Arrival::new(at, now);
                    self.take(count, buffer, arrival);
                    if now >= until {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.end(CloseKind::Rst, Some(Failure::Reset), now),
            }
        }
        self.flush(clock.now());
    }

    fn take(&mut self, count: usize, buffer: &mut [u8], arrival: Arrival) {
        if self.session.is_none() {
            let answered = self.talk.receive(&buffer[..count], arrival, &mut self.out);
            self.note(answered);
            return;
        }
        let encrypted = buffer[..count].to_vec();
        let mut rest = &*encrypted;
        while !rest.is_empty() {
            let Some(session) = &mut self.session else {
                return;
            };
            let state = session
                .read_tls(&mut rest)
                .ok()
                .and_then(|_| session.process_new_packets().ok());
            let Some(state) = state else {
                return self.end(CloseKind::Fin, Some(Failure::Tls), arrival.read);
            };
            self.take_plaintext(buffer, arrival);
            if state.peer_has_closed() {
                return self.end(CloseKind::CloseNotify, None, arrival.at);
            }
        }
    }

    fn take_plaintext(&mut self, buffer: &mut [u8], arrival: Arrival) {
        while let Some(session) = &mut self.session {
            // an error means that nothing is there now, or that the peer closed: the socket will say so
            let Ok(count @ 1..) = session.reader().read(buffer) else {
                return;
            };
            let answered = self.talk.receive(&buffer[..count], arrival, &mut self.out);
            self.note(answered);
        }
    }

    fn note(&mut self, answered: Option<Answered>) {
        if let Some(answered) = answered {
            self.active_at = self.active_at.max(answered.exchange.end);
            self.answered = Some(answered);
        }
    }

    /// The server's side of the stream is over.
    fn end(&mut self, how: CloseKind, failure: Option<Failure>, at: Nanos) {
        self.ended = Some((at, how));
        self.mid_exchange |= self.talk.is_busy();
        let answered = self.talk.end(failure, at);
        self.note(answered);
    }

    /// Gives the exchange in flight up.
    pub(crate) fn give_up(&mut self, failure: Failure, at: Nanos) {
        self.mid_exchange |= self.talk.is_busy();
        let answered = self.talk.end(Some(failure), at);
        self.note(answered);
    }

    /// Closes it, after the server where that was first; what the ledger records.
    pub(crate) fn close(mut self, at: Nanos) -> Closed {
        let server_first = self.ended.is_some();
        if !server_first {
            self.queue(|talk, out| talk.goodbye(out));
            // errors do not matter any more
            let _ = self.try_flush(at);
            if let Some(session) = &mut self.session {
                session.send_close_notify();
                let _ = session.write_tls(&mut &self.stream);
            }
        }
        let moment = match (self.exchanges, self.mid_exchange) {
            (0, _) => ClosePoint::Unused,
            (_, true) => ClosePoint::MidExchange,
            _ if self.talk.announced_by().is_some() => ClosePoint::AfterExchange,
            _ => ClosePoint::Idle,
        };
        let ended = self.ended();
        Closed {
            connection: self.connection.id,
            variant: self.connection.variant,
            round: self.connection.round,
            close: Close {
                at: ended.map_or(at, |(at, _)| at),
                by: Some(if ended.is_some() {
                    Side::Server
                } else {
                    Side::Client
                }),
                how: Some(ended.map_or(CloseKind::Fin, |(_, ended)| ended.how)),
                announced_by: self.talk.announced_by(),
                moment: Some(moment),
                exchanges: Some(u64::from(self.exchanges)),
                bytes: self.bytes,
                probes: intact_ledger::Probes::default(),
            },
        }
    }
}
