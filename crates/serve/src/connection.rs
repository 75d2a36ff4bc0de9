//! One connection from accepting it to its end: TLS, which version is spoken, who ends it and how.

use crate::channel::Channel;
use crate::config::{Accept, Close};
use crate::read_buffers::ReadBuffer;
use crate::record::Record;
use crate::thread_state::{Peer, ThreadState};
use crate::{http1, http2, tls};
use intact_ledger::{CloseKind, Connection, DialFailure, Failure, Scheme, SetupPhase, Side, Span};
use rustls::ServerConfig;
#[cfg(target_os = "linux")]
use socket2::SockRef;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

/// The longest TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a connection that we closed is drained, so that the client reads our answer before a
/// RST.
const DRAIN: Duration = Duration::from_secs(1);
/// How long a slow close takes.
const SLOW: Duration = Duration::from_secs(2);
/// The start of HTTP/2's preface, which separates it from HTTP/1 where no ALPN has decided (RFC
/// 9113 section 3.3).
const PREFACE: &[u8] = b"PRI ";

/// Why a conversation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// The client has ended it, or cannot be reached.
    Theirs,
    /// We end it.
    Ours(Close),
}

/// Serves one connection until it is over.
pub(crate) async fn serve(
    state: Rc<ThreadState>,
    tcp: TcpStream,
    address: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
) {
    let at = state.recorder.now();
    // as long as it is held, the server's end waits for this connection
    let _open = state.drain.notice();
    let scheme = if tls.is_some() {
        Scheme::Https
    } else {
        Scheme::Http
    };
    let (mut connection, peer) = state.accept(at, scheme, address, tcp.local_addr().ok());
    // what belongs together is one write; what is apart shall be apart at once
    let _ = tcp.set_nodelay(true);
    if let Some(name) = &state.config.congestion {
        // a link's route has replaced what the listener had
        set_congestion(&tcp, name);
    }
    match state.config.accept {
        Accept::Serve | Accept::Plain | Accept::Tls => {}
        Accept::Stall => return dismiss(&state, tcp, connection, Close::Silent).await,
        Accept::Fin => return dismiss(&state, tcp, connection, Close::Fin).await,
        Accept::Rst => return dismiss(&state, tcp, connection, Close::Rst).await,
    }
    let Some(config) = tls else {
        return speak(&state, Channel::plain(tcp), connection, peer, None).await;
    };
    let handshake = timeout(HANDSHAKE, Channel::secure(tcp, config)).await;
    connection.setup.ssl = Some(Span::new(at, state.recorder.now()));
    match handshake {
        Ok(Ok(mut channel)) => {
            let http2 = channel.tls().map(|session| {
                connection.tls = Some(tls::describe(session));
                session.alpn_protocol() == Some(b"h2")
            });
            speak(&state, channel, connection, peer, http2).await;
        }
        failed => {
            connection.failed = Some(failed_handshake(failed));
            state.recorder.failed(&connection);
        }
    }
}

/// It was tried when the server started, so it does not fail here.
#[cfg(target_os = "linux")]
fn set_congestion(tcp: &TcpStream, name: &str) {
    let _ = SockRef::from(tcp).set_tcp_congestion(name.as_bytes());
}

/// Refused when the server started.
#[cfg(not(target_os = "linux"))]
fn set_congestion(_: &TcpStream, _: &str) {}

/// Why a handshake of TLS failed: the words of the library, unless the client took too long.
pub(crate) fn failed_handshake<T, E: Display>(
    failed: Result<Result<T, E>, Elapsed>,
) -> DialFailure {
    DialFailure {
        phase: SetupPhase::Ssl,
        kind: Failure::Tls,
        detail: Some(match failed {
            Ok(Err(error)) => error.to_string().into(),
            _ => "the client did not finish the handshake in time".into(),
        }),
    }
}

/// Ends a connection before it has begun.
async fn dismiss(
    state: &Rc<ThreadState>,
    tcp: TcpStream,
    connection: Box<Connection>,
    close: Close,
) {
    let channel = Channel::plain(tcp);
    let record = Record::open(&state.recorder, *connection, channel.passed().clone());
    leave_by(CloseReason::Ours(close), channel, state, &record).await;
}

/// Speaks HTTP. `http2`: what ALPN has chosen; absent without TLS.
async fn speak(
    state: &Rc<ThreadState>,
    mut channel: Channel,
    connection: Box<Connection>,
    peer: Peer,
    http2: Option<bool>,
) {
    let record = Record::open(&state.recorder, *connection, channel.passed().clone());
    let first = match http2 {
        Some(http2) => Ok((state.buffers.take(), http2)),
        None => first_bytes(state, &mut channel, peer).await,
    };
    // each in memory of its own: a task is as large as its largest part, and most connections only
    // ever wait in the smallest
    let leave = match first {
        Ok((first, true)) => {
            Box::pin(http2::serve(&mut channel, state, &record, peer, first)).await
        }
        Ok((first, false)) => {
            Box::pin(http1::serve(&mut channel, state, &record, peer, first)).await
        }
        Err(leave) => leave,
    };
    leave_by(leave, channel, state, &record).await;
}

/// Reads until it is clear whether a connection starts as HTTP/2 does.
async fn first_bytes(
    state: &ThreadState,
    channel: &mut Channel,
    peer: Peer,
) -> Result<(ReadBuffer, bool), CloseReason> {
    let mut first: Option<ReadBuffer> = None;
    let mut drain = state.drain.notice();
    loop {
        let read = within(state.patience(peer), channel.read(&state.buffers));
        let read = tokio::select! {
            biased;
            read = read => read,
            () = drain.begun() => continue,
        };
        let Some(read) = read else {
            return Err(CloseReason::Ours(state.config.close));
        };
        let read = match read {
            Ok(read) if !read.is_empty() => read,
            _ => return Err(CloseReason::Theirs),
        };
        let bytes = match first.take() {
            None => read,
            Some(mut bytes) => {
                bytes.append(&read);
                bytes
            }
        };
        let start = &bytes[..bytes.len().min(PREFACE.len())];
        if !PREFACE.starts_with(start) {
            return Ok((bytes, false));
        }
        if bytes.len() >= PREFACE.len() {
            return Ok((bytes, true));
        }
        first = Some(bytes);
    }
}

/// Waits for a read as long as there is patience; `None`: not longer.
pub(crate) async fn within(
    patience: Option<Duration>,
    read: impl Future<Output = io::Result<ReadBuffer>>,
) -> Option<io::Result<ReadBuffer>> {
    match patience {
        Some(limit) => timeout(limit, read).await.ok(),
        None => Some(read.await),
    }
}

/// Ends a connection, and records by whom and how.
async fn leave_by(leave: CloseReason, mut channel: Channel, state: &ThreadState, record: &Record) {
    let close = match leave {
        CloseReason::Ours(close) if !channel.passed().is_over() => close,
        _ => {
            record.close(Side::Client, CloseKind::Fin);
            // what they still listen for: an alert, a last answer; our FIN
            return channel
                .finish(state.config.close != Close::NoCloseNotify, DRAIN)
                .await;
        }
    };
    let secure = channel.tls().is_some();
    let polite = if secure {
        CloseKind::CloseNotify
    } else {
        CloseKind::Fin
    };
    match close {
        Close::Goaway | Close::Fin => {
            record.close(Side::Server, polite);
            channel.finish(true, DRAIN).await;
        }
        Close::Slow => {
            let is_late = timeout(SLOW, channel.hold()).await.is_err();
            let by = if is_late { Side::Server } else { Side::Client };
            record.close(by, polite);
            channel.finish(true, DRAIN).await;
        }
        Close::NoCloseNotify => {
            record.close(Side::Server, CloseKind::Fin);
            channel.finish(false, DRAIN).await;
        }
        Close::Rst => {
            record.close(Side::Server, CloseKind::Rst);
            channel.reset().await;
        }
        Close::Silent => {
            record.close(Side::Server, CloseKind::Silent);
            channel.hold().await;
        }
    }
}
