//! HTTP/3 on one QUIC connection, with frames of our own, so that it can also be spoken badly.
//!
//! `quinn` has the packets; here is what happens on a connection from its first datagram to its
//! end. Each request is a task of its own (`exchanges`), which may answer badly (`faults`).

mod control;
mod exchanges;
mod faults;
mod listener;

pub(crate) use listener::{QuicListener, end};

use crate::channel::ByteCounts;
use crate::config::{Accept, Close};
use crate::connection::failed_handshake;
use crate::http2;
use crate::record::Record;
use crate::thread_state::{Peer, ThreadState};
use intact_client::quic::QuicHandshake;
use intact_ledger::{CloseKind, Connection, Scheme, Side, Span, Transport};
use intact_wire::h3::{ErrorCode, writer};
use quinn::{ConnectionError, Incoming, RecvStream, SendStream, VarInt};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};

/// The longest handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The time between GOAWAY and the close. A close drops what was not sent before, and the client's
/// own close may come first.
const GOODBYE: Duration = Duration::from_millis(20);
/// How long a slow close takes.
const SLOW: Duration = Duration::from_secs(2);

/// What the exchanges of a connection share.
pub(crate) struct Http3Connection {
    quic: quinn::Connection,
    state: Rc<ThreadState>,
    record: Rc<Record>,
    passed: Rc<ByteCounts>,
    peer: Peer,
    /// The fields of every answer.
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// No request after those that came is served.
    is_closing: Cell<bool>,
}

/// Serves one connection until it is over.
pub(crate) async fn serve(state: Rc<ThreadState>, incoming: Incoming) {
    // as long as it is held, the server's end waits for this connection
    let _open = state.drain.notice();
    match state.config.accept {
        Accept::Serve | Accept::Plain | Accept::Tls => {}
        // the client sends its hello again and again
        Accept::Stall => return incoming.ignore(),
        Accept::Fin | Accept::Rst => return incoming.refuse(),
    }
    let at = state.recorder.now();
    let port = state.http3_port.unwrap_or(0);
    let local = incoming.local_ip().map(|ip| SocketAddr::new(ip, port));
    let (mut connection, peer) = state.accept(at, Scheme::Https, incoming.remote_address(), local);
    connection.transport = Transport::Quic;
    let handshake = timeout(HANDSHAKE, shake_hands(incoming)).await;
    connection.setup.connect = Some(Span::new(at, state.recorder.now()));
    match handshake {
        Ok(Ok((quic, session))) => {
            connection.tls = Some(session.tls);
            speak(state, quic, connection, peer).await;
        }
        failed => {
            connection.failed = Some(failed_handshake(failed));
            state.recorder.failed(&connection);
        }
    }
}

/// Makes the part of the handshake that precedes the client's first request. With early data, that
/// request may arrive before the handshake is complete.
async fn shake_hands(
    incoming: Incoming,
) -> Result<(quinn::Connection, QuicHandshake), ConnectionError> {
    let mut connecting = incoming.accept()?;
    let data = connecting.handshake_data().await?;
    let session = data
        .downcast::<QuicHandshake>()
        .map_or_else(|_| QuicHandshake::default(), |session| *session);
    let (quic, complete) = match connecting.into_0rtt() {
        Ok(both) => both,
        // the library does so on the client's side only
        Err(connecting) => return Ok((connecting.await?, session)),
    };
    if !session.early_data {
        complete.await;
        if let Some(reason) = quic.close_reason() {
            return Err(reason);
        }
    }
    Ok((quic, session))
}

/// Waits until this time; without one, for ever.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

async fn speak(
    state: Rc<ThreadState>,
    quic: quinn::Connection,
    connection: Box<Connection>,
    peer: Peer,
) {
    let passed: Rc<ByteCounts> = Rc::default();
    let record = Record::open(&state.recorder, *connection, passed.clone());
    let shared = Rc::new(Http3Connection {
        headers: http2::fields_of(&state, false),
        quic,
        state,
        record,
        passed,
        peer,
        is_closing: Cell::new(false),
    });
    let mut control = match control::open(&shared.quic).await {
        Ok(control) => control,
        Err(reason) => return shared.lost(&reason),
    };
    let mut exchanges = JoinSet::new();
    let leave = shared.take_requests(&mut control, &mut exchanges).await;
    match leave {
        Err(reason) => {
            shared.note_end(&reason);
            // what was in flight is recorded as cut off by the client
            exchanges.shutdown().await;
            shared.lost(&reason);
        }
        Ok(close) => shared.leave(close).await,
    }
}

impl Http3Connection {
    /// Serves requests until we end the connection, or until it is lost.
    async fn take_requests(
        self: &Rc<Self>,
        control: &mut SendStream,
        exchanges: &mut JoinSet<Option<Close>>,
    ) -> Result<Close, ConnectionError> {
        let mut drain = self.state.drain.notice();
        let mut idle_since = Instant::now();
        let mut next_stream = 0;
        let mut goodbye_until: Option<Instant> = None;
        loop {
            if self.is_closing.get() && goodbye_until.is_none() {
                goodbye_until = Some(self.say_goodbye(control, next_stream).await);
            }
            let leave_at = goodbye_until.filter(|_| exchanges.is_empty());
            if leave_at.is_some_and(|at| at <= Instant::now()) {
                return Ok(self.state.config.close);
            }
            let leave = until(leave_at);
            let is_idle = exchanges.is_empty() && goodbye_until.is_none();
            let idle = self.state.idle_until(idle_since, self.peer);
            let idle = until(idle.filter(|_| is_idle));
            tokio::select! {
                biased;
                stream = self.quic.accept_bi() => {
                    let (send, receive) = stream?;
                    next_stream = u64::from(receive.id()) + 4;
                    self.begin(send, receive, goodbye_until.is_some(), exchanges);
                }
                stream = self.quic.accept_uni() => {
                    tokio::task::spawn_local(control::read(self.quic.clone(), stream?));
                }
                Some(after) = exchanges.join_next() => {
                    idle_since = Instant::now();
                    if let Ok(Some(close)) = after {
                        exchanges.shutdown().await;
                        return Ok(close);
                    }
                }
                () = drain.begun(), if goodbye_until.is_none() => self.is_closing.set(true),
                () = idle => self.is_closing.set(true),
                () = leave => {}
            }
        }
    }

    /// Starts an exchange, unless the request came after our goodbye.
    fn begin(
        self: &Rc<Self>,
        mut send: SendStream,
        mut receive: RecvStream,
        is_late: bool,
        exchanges: &mut JoinSet<Option<Close>>,
    ) {
        if is_late {
            let code = code(ErrorCode::H3_REQUEST_REJECTED);
            let _ = (send.reset(code), receive.stop(code));
            return;
        }
        if receive.is_0rtt() && self.record.exchanges() == 0 {
            self.record.note_early_data();
        }
        exchanges.spawn_local(exchanges::serve(self.clone(), send, receive));
    }

    /// Announces that no request from `next` on is served, if that is our way. Returns the earliest
    /// time to close.
    async fn say_goodbye(&self, control: &mut SendStream, next: u64) -> Instant {
        let now = Instant::now();
        if !matches!(self.state.config.close, Close::Goaway | Close::Slow) {
            return now;
        }
        self.record.announced_by.set(Some(Side::Server));
        let mut frame = Vec::new();
        writer::write_go_away(&mut frame, next);
        let _ = control.write_all(&frame).await;
        now + GOODBYE
    }

    /// Ends the connection, and records how.
    async fn leave(&self, close: Close) {
        let mut end = ErrorCode::H3_NO_ERROR;
        match close {
            Close::Goaway | Close::Fin | Close::NoCloseNotify => {}
            Close::Slow => {
                tokio::select! {
                    reason = self.quic.closed() => return self.lost(&reason),
                    () = sleep(SLOW) => {}
                }
            }
            Close::Rst => end = ErrorCode::H3_INTERNAL_ERROR,
            Close::Silent => {
                self.count_bytes();
                self.record.close(Side::Server, CloseKind::Silent);
                self.quic.closed().await;
                return;
            }
        }
        self.count_bytes();
        self.record.close(Side::Server, CloseKind::Goaway);
        self.quic.close(code(end), b"");
    }

    /// Notes who ended a connection that is lost, for the exchanges in flight.
    fn note_end(&self, reason: &ConnectionError) {
        self.count_bytes();
        self.passed.ended.set(is_by_client(reason));
    }

    /// Records the end of a connection that is lost.
    fn lost(&self, reason: &ConnectionError) {
        self.note_end(reason);
        let how = match reason {
            ConnectionError::TimedOut => CloseKind::Silent,
            _ => CloseKind::Goaway,
        };
        let by = match is_by_client(reason) {
            true => Side::Client,
            false => Side::Server,
        };
        // after a GOAWAY of ours the client closes as it was asked to
        let was_announced = self.record.announced_by.get() == Some(Side::Server);
        let by = if was_announced { Side::Server } else { by };
        self.record.close(by, how);
    }

    fn count_bytes(&self) {
        let stats = self.quic.stats();
        self.passed.received.set(stats.udp_rx.bytes);
        self.passed.sent.set(stats.udp_tx.bytes);
    }
}

fn is_by_client(reason: &ConnectionError) -> bool {
    !matches!(
        reason,
        ConnectionError::LocallyClosed | ConnectionError::TransportError(_)
    )
}

fn code(code: ErrorCode) -> VarInt {
    VarInt::from_u64(code.0).unwrap_or(VarInt::MAX)
}
