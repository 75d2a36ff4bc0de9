//! Invokes a function that serves HTTP. Acts as its runtime client, as platforms for containers do.
//! Each event becomes a request on a separate connection, and the HTTP response is the function's
//! response.

use super::mailbox::{Delivery, FunctionResponse, Mailbox};
use crate::event::Event;
use intact_wire::http1::{Eof, Kind, ResponseEvent, ResponseParser};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Interval between attempts to connect to a function that does not listen yet.
const ASK_AGAIN: Duration = Duration::from_millis(2);

/// The longest time from the end of a connection to the end of the process that closed it.
const LAST_BREATH: Duration = Duration::from_millis(500);

/// A free port. The function gets it as `PORT`.
pub(crate) fn free_port() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Sends events to the server at `address` and puts its responses into the mailbox, until the
/// mailbox is closed or the process has ended.
pub(crate) fn serve(address: SocketAddr, path: &str, room: &Mailbox) {
    if !listens(address, room) {
        return;
    }
    while let Some(delivery) = room.next() {
        let id = delivery.id.clone();
        let sent = send(address, path, &delivery);
        room.delivered(delivery, true);
        let answer = sent.and_then(receive);
        let at = Instant::now();
        let answer = match answer {
            Ok(answer) => answer,
            // a process that ends closes its connections a moment before
            Err(_) if room.ends_within(LAST_BREATH) => return,
            Err(error) => FunctionResponse::Error(format!("HTTP: {error}")),
        };
        room.answer(&id, answer, at);
    }
}

/// Waits until the function takes connections.
fn listens(address: SocketAddr, room: &Mailbox) -> bool {
    while !room.is_closed() && !room.has_exited() {
        if TcpStream::connect(address).is_ok() {
            return true;
        }
        std::thread::sleep(ASK_AGAIN);
    }
    false
}

/// Sends the event: GET if it is empty, else POST. If the function is frozen, the request waits in
/// its socket.
fn send(address: SocketAddr, path: &str, delivery: &Delivery) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let body: &[u8] = &delivery.body;
    let empty = body == Event::EMPTY.as_bytes();
    let method = if empty { "GET" } else { "POST" };
    let content = match empty {
        true => String::new(),
        false => format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        ),
    };
    let mut bytes = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: intact/{}\r\nX-Amzn-Request-Id: {}\r\nConnection: close\r\n{content}\r\n",
        env!("CARGO_PKG_VERSION"),
        delivery.id
    )
    .into_bytes();
    if !empty {
        bytes.extend_from_slice(body);
    }
    stream.write_all(&bytes)?;
    Ok(stream)
}

/// Reads the whole response; a status 5xx is an error of the function.
fn receive(mut stream: TcpStream) -> io::Result<FunctionResponse> {
    let mut parser = ResponseParser::default();
    parser.expect(Kind::Plain);
    let mut buffer = vec![0; 64 * 1024];
    let (mut status, mut length) = (0, 0);
    loop {
        let read = stream.read(&mut buffer)?;
        let mut bytes = &buffer[..read];
        let mut over = read == 0 && parser.finish() == Eof::Complete;
        if read == 0 && !over {
            let words = "the connection was closed before the answer was complete";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, words));
        }
        while !over {
            let step = parser.parse(bytes).map_err(io::Error::other)?;
            bytes = &bytes[step.consumed..];
            match step.event {
                None => break,
                Some(ResponseEvent::Head(head)) => status = head.status(),
                Some(ResponseEvent::Body(piece)) => length += piece.len() as u64,
                Some(ResponseEvent::End(_)) => over = true,
                Some(ResponseEvent::Interim(_) | ResponseEvent::Trailers(_)) => {}
            }
        }
        if over {
            return Ok(if status >= 500 {
                FunctionResponse::Error(format!("HTTP: status {status}"))
            } else {
                FunctionResponse::Response { bytes: length }
            });
        }
    }
}
