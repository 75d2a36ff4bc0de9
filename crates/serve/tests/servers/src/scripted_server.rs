//! Plays a [`Script`]: a listener and a thread per connection, with blocking sockets. Nothing is
//! recorded.

use crate::script::{End, Script, Step};
use intact_serve::TlsConfig;
use intact_wire::h2::{Frame, FrameReader, Limits};
use rustls::crypto::aws_lc_rs;
use rustls::crypto::cipher::{MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::{
    ConnectionTrafficSecrets, ContentType, ProtocolVersion, ServerConfig, ServerConnection,
    SupportedCipherSuite,
};
use socket2::SockRef;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The longest that a connection is served.
const LONGEST: Duration = Duration::from_secs(60);
/// The most data of a TLS record (RFC 8446 section 5.1).
const LARGEST_RECORD: usize = 16_384;
/// Bytes that repetitions are gathered to, so that the peer sends as fast as it can be read.
const BATCH: usize = 64 * 1024;

/// A listener that plays a script to every client until it is dropped.
pub struct ScriptedServer {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
}

impl ScriptedServer {
    /// Listens on a free port of 127.0.0.1; with `tls` every connection begins with a handshake.
    ///
    /// # Errors
    /// No port is free, or TLS cannot be set up.
    pub fn start(script: &Script, tls: Option<&TlsConfig>) -> io::Result<ScriptedServer> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let config = tls.map(sealable_config).transpose();
        let config = config.map_err(io::Error::other)?;
        let stopped = Arc::new(AtomicBool::new(false));
        let (script, seen) = (Arc::new(script.clone()), stopped.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                if seen.load(Ordering::Acquire) {
                    return;
                }
                let (script, config, seen) = (script.clone(), config.clone(), seen.clone());
                // the client may leave at any time
                thread::spawn(move || drop(play(&script, stream, config, &seen)));
            }
        });
        Ok(ScriptedServer { address, stopped })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // wakes the listener
        let _ = TcpStream::connect(self.address);
    }
}

/// TLS whose records can be sealed from outside of rustls: AES of aws-lc refuses a key that did not
/// seal the first record.
fn sealable_config(settings: &TlsConfig) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut provider = aws_lc_rs::default_provider();
    let is_chacha = |suite: &SupportedCipherSuite| {
        let name = format!("{:?}", suite.suite());
        name.ends_with("CHACHA20_POLY1305_SHA256")
    };
    provider.cipher_suites.retain(is_chacha);
    let mut config = settings.server_config(provider)?;
    config.enable_secret_extraction = true;
    Ok(Arc::new(config))
}

fn play(
    script: &Script,
    stream: TcpStream,
    config: Option<Arc<ServerConfig>>,
    stopped: &AtomicBool,
) -> io::Result<()> {
    stream.set_read_timeout(Some(LONGEST))?;
    stream.set_write_timeout(Some(LONGEST))?;
    let until = Instant::now() + LONGEST;
    let mut wire = match config {
        None => {
            read_request(&mut &stream, script.is_http2)?;
            Wire { stream, seal: None }
        }
        Some(config) => Wire::accept(stream, config, script.is_http2)?,
    };
    wire.send(&script.start, 1)?;
    let times = match script.every.is_zero() {
        true => BATCH / script.repeat.iter().map(Step::len).sum::<usize>().max(16),
        false => 1,
    };
    while !script.repeat.is_empty() && Instant::now() < until && !stopped.load(Ordering::Acquire) {
        wire.send(&script.repeat, times.max(1))?;
        thread::sleep(script.every);
    }
    match script.end {
        End::Hold => wire.drain(),
        End::Fin => Ok(()),
        End::HalfClose => {
            wire.stream.shutdown(Shutdown::Write)?;
            wire.drain()
        }
        End::Rst => SockRef::from(&wire.stream).set_linger(Some(Duration::ZERO)),
    }
}

impl Step {
    fn len(&self) -> usize {
        match self {
            Step::Data(bytes) | Step::Raw(bytes) => bytes.len(),
            Step::Record(_, bytes) => bytes.len() + 22,
        }
    }
}

/// A connection after its request.
struct Wire {
    stream: TcpStream,
    seal: Option<Seal>,
}

impl Wire {
    /// The handshake and the request; after that records are sealed here, because rustls would not
    /// send bad ones.
    fn accept(
        mut stream: TcpStream,
        config: Arc<ServerConfig>,
        is_http2: bool,
    ) -> io::Result<Wire> {
        let mut session = ServerConnection::new(config).map_err(io::Error::other)?;
        read_request(
            &mut rustls::Stream::new(&mut session, &mut stream),
            is_http2,
        )?;
        while session.wants_write() {
            session.write_tls(&mut stream)?;
        }
        let suite = session.negotiated_cipher_suite();
        let secrets = session
            .dangerous_extract_secrets()
            .map_err(io::Error::other)?;
        let (sequence, secrets) = secrets.tx;
        let ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } = secrets else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let encrypter = match suite {
            Some(SupportedCipherSuite::Tls13(suite)) => suite.aead_alg.encrypter(key, iv),
            Some(SupportedCipherSuite::Tls12(suite)) => {
                let fixed = suite.aead_alg.key_block_shape().fixed_iv_len;
                let (fixed, explicit) = iv.as_ref().split_at(fixed);
                suite.aead_alg.encrypter(key, fixed, explicit)
            }
            None => return Err(io::ErrorKind::Unsupported.into()),
        };
        let seal = Some(Seal {
            encrypter,
            sequence,
        });
        Ok(Wire { stream, seal })
    }

    /// Sends the steps this number of times, in one write, data in records as large as they can be.
    fn send(&mut self, steps: &[Step], times: usize) -> io::Result<()> {
        let (mut out, mut data) = (Vec::new(), Vec::new());
        for _ in 0..times {
            for step in steps {
                match step {
                    Step::Data(bytes) => data.extend_from_slice(bytes),
                    Step::Raw(bytes) => {
                        self.append_data(&mut data, &mut out)?;
                        out.extend_from_slice(bytes);
                    }
                    Step::Record(kind, bytes) => {
                        self.append_data(&mut data, &mut out)?;
                        let seal = self.seal.as_mut();
                        let seal = seal.ok_or(io::ErrorKind::Unsupported)?;
                        seal.append(*kind, bytes, &mut out)?;
                    }
                }
            }
        }
        self.append_data(&mut data, &mut out)?;
        self.stream.write_all(&out)
    }

    fn append_data(&mut self, data: &mut Vec<u8>, out: &mut Vec<u8>) -> io::Result<()> {
        match &mut self.seal {
            None => out.append(data),
            Some(seal) => {
                for piece in data.chunks(LARGEST_RECORD) {
                    seal.append(23, piece, out)?;
                }
                data.clear();
            }
        }
        Ok(())
    }

    /// Reads until the client closes.
    fn drain(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        while self.stream.read(&mut buffer)? > 0 {}
        Ok(())
    }
}

/// Seals TLS records.
struct Seal {
    encrypter: Box<dyn MessageEncrypter>,
    sequence: u64,
}

impl Seal {
    fn append(&mut self, kind: u8, payload: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let record = OutboundPlainMessage {
            typ: ContentType::from(kind),
            version: ProtocolVersion::TLSv1_2,
            payload: OutboundChunks::Single(payload),
        };
        let sealed = self.encrypter.encrypt(record, self.sequence);
        out.extend_from_slice(&sealed.map_err(io::Error::other)?.encode());
        self.sequence += 1;
        Ok(())
    }
}

/// Reads until the header section of a request is complete.
fn read_request(from: &mut impl Read, is_http2: bool) -> io::Result<()> {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while !has_request(&seen, is_http2) {
        match from.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => seen.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(())
}

/// Whether the bytes hold a request's header section: in HTTP/2 a HEADERS frame behind the preface.
fn has_request(seen: &[u8], is_http2: bool) -> bool {
    if !is_http2 {
        return seen.windows(4).any(|window| window == b"\r\n\r\n");
    }
    let mut reader = FrameReader::client(Limits::default());
    let mut rest = seen;
    while let Ok(step) = reader.read(rest)
        && let Some(frame) = step.event
    {
        if matches!(frame, Frame::Headers(_)) {
            return true;
        }
        rest = &rest[step.consumed..];
    }
    false
}
