//! A small scripted server. In place of a response it can end a connection that carried an earlier
//! request. It records all requests.

use anyhow::Context;
use intact_wire::http1::{RequestEvent, RequestParser};
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Prefix of the paths of requests that get a close in place of a response.
pub(crate) const RACE: &str = "/race/";

/// How the peer ends a connection in place of a response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Fin,
    Rst,
}

/// What the peer does.
#[derive(Clone, Copy)]
pub(crate) struct Script {
    /// What requests below [`RACE`] get on a connection that was used before.
    pub(crate) race: End,
    /// The `Keep-Alive` field of all answers.
    pub(crate) keep_alive: Option<&'static str>,
    /// Whether all answers set a cookie.
    pub(crate) sets_cookie: bool,
    /// Whether each response is the last on its connection, with `Connection: close`.
    pub(crate) closes: bool,
    /// How long it takes to answer.
    pub(crate) takes: Duration,
}

impl Script {
    /// Answers everything and keeps connections.
    pub(crate) const PLAIN: Script = Script {
        race: End::Fin,
        keep_alive: None,
        sets_cookie: false,
        closes: false,
        takes: Duration::ZERO,
    };
}

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) at: Instant,
    pub(crate) connection: u64,
    /// Without its query string.
    pub(crate) target: String,
    /// The `Connection` field, empty when there was none.
    pub(crate) connection_field: String,
    /// Whether it brought a cookie.
    pub(crate) has_cookie: bool,
    /// Its connection was ended in place of an answer.
    pub(crate) struck: bool,
}

/// A running peer. It ends with this value; connections end when their clients do.
pub(crate) struct Peer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    over: Arc<AtomicBool>,
}

impl Peer {
    /// Starts it on a free port.
    pub(crate) fn start(script: Script) -> anyhow::Result<Peer> {
        Peer::start_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), script)
    }

    /// Starts it at an address.
    pub(crate) fn start_at(address: SocketAddr, script: Script) -> anyhow::Result<Peer> {
        let listener =
            TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
        let address = listener.local_addr()?;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let over = Arc::new(AtomicBool::new(false));
        let (recorded, ended) = (asked.clone(), over.clone());
        std::thread::spawn(move || {
            for (stream, connection) in listener.incoming().zip(1..) {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let recorded = recorded.clone();
                // an error here also reaches the client, whose result shows it
                std::thread::spawn(move || serve(stream, connection, script, &recorded));
            }
        });
        Ok(Peer {
            address,
            asked,
            over,
        })
    }

    /// Where it listens, without a slash at the end.
    pub(crate) fn plain(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The same by name: some clients keep no cookies of addresses.
    pub(crate) fn by_name(&self) -> String {
        format!("http://localhost:{}", self.address.port())
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // wakes the listener, which then ends
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

fn serve(
    mut stream: TcpStream,
    connection: u64,
    script: Script,
    recorded: &Mutex<Vec<Asked>>,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut parser = RequestParser::default();
    let mut buffer = [0; 16 * 1024];
    let mut answered = 0;
    let mut strike = false;
    let mut is_last = false;
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let mut input = &buffer[..count];
        loop {
            let Ok(step) = parser.parse(input) else {
                return Ok(());
            };
            let used = step.consumed;
            match step.event {
                None => break,
                Some(RequestEvent::Head(head)) => {
                    let text = |bytes: Option<&[u8]>| {
                        String::from_utf8_lossy(bytes.unwrap_or(b"")).into_owned()
                    };
                    let mut asked = Asked {
                        at: Instant::now(),
                        connection,
                        target: text(head.target().split(|&byte| byte == b'?').next()),
                        connection_field: text(head.header("connection")),
                        has_cookie: head.header("cookie").is_some(),
                        struck: false,
                    };
                    strike = answered > 0 && asked.target.starts_with(RACE);
                    asked.struck = strike;
                    is_last = script.closes || asked.connection_field.eq_ignore_ascii_case("close");
                    if head.expects_continue {
                        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
                    }
                    recorded
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(asked);
                }
                Some(RequestEvent::End(_)) => {
                    if std::mem::take(&mut strike) {
                        if script.race == End::Rst {
                            SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
                        }
                        return Ok(());
                    }
                    std::thread::sleep(script.takes);
                    stream.write_all(answer(script).as_bytes())?;
                    answered += 1;
                    // a client that requested the close may read until the connection is closed
                    if is_last {
                        return Ok(());
                    }
                }
                Some(_) => {}
            }
            input = &input[used..];
        }
    }
}

fn answer(script: Script) -> String {
    let field = script
        .keep_alive
        .map_or(String::new(), |value| format!("Keep-Alive: {value}\r\n"));
    let cookie = if script.sets_cookie {
        "Set-Cookie: measured=1; Path=/\r\n"
    } else {
        ""
    };
    let connection = if script.closes { "close" } else { "keep-alive" };
    format!(
        "HTTP/1.1 200 OK\r\nConnection: {connection}\r\n{field}{cookie}Content-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
    )
}
