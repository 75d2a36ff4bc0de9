//! A server on a thread of this process, and clients that know as little as possible.

use intact_ledger::TlsVersion;
use intact_serve::{Addresses, CertificateAuthority, Config, TlsConfig, Totals};
use intact_test_servers::TestServer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Longer than anything takes; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running server.
pub(crate) struct Rig {
    running: TestServer,
}

impl Rig {
    pub(crate) fn start(config: Config) -> Rig {
        Rig {
            running: TestServer::start(config).unwrap(),
        }
    }

    /// A plain connection.
    pub(crate) fn connect(&self) -> TcpStream {
        connect(self.plain())
    }

    /// A TLS connection that has not shaken hands yet.
    pub(crate) fn connect_tls(&self, client: &Arc<ClientConfig>) -> Secure {
        let name = ServerName::try_from("localhost").unwrap();
        let session = ClientConnection::new(client.clone(), name).unwrap();
        StreamOwned::new(session, connect(self.addresses().tls.unwrap()))
    }

    /// Where it speaks plain HTTP.
    pub(crate) fn plain(&self) -> SocketAddr {
        self.addresses().plain.unwrap()
    }

    /// Where it serves names.
    pub(crate) fn names(&self) -> SocketAddr {
        self.addresses().names.unwrap()
    }

    fn addresses(&self) -> Addresses {
        self.running.addresses()
    }

    /// Ends the server; what it has recorded.
    pub(crate) fn end(self) -> Totals {
        self.running.end().unwrap()
    }
}

/// A TLS connection.
pub(crate) type Secure = StreamOwned<ClientConnection, TcpStream>;

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// A server with a TLS port, and the settings of a client that trusts it and speaks `alpn`.
pub(crate) fn secure(config: Config, alpn: &[u8]) -> (Rig, Arc<ClientConfig>) {
    secure_with(config, alpn, |_| {})
}

/// The same with other settings of TLS.
pub(crate) fn secure_with(
    mut config: Config,
    alpn: &[u8],
    change: impl Fn(&mut TlsConfig),
) -> (Rig, Arc<ClientConfig>) {
    let authority = Arc::new(CertificateAuthority::make(&[]).unwrap());
    let versions = vec![TlsVersion::Tls12, TlsVersion::Tls13];
    let mut tls = TlsConfig::new(authority.clone(), versions);
    change(&mut tls);
    config.tls = Some((SocketAddr::from(([127, 0, 0, 1], 0)), tls));
    let mut roots = RootCertStore::empty();
    let pem = authority.ca_pem().unwrap().as_bytes();
    roots
        .add(CertificateDer::from_pem_slice(pem).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![alpn.to_vec()];
    client.enable_early_data = true;
    (Rig::start(config), Arc::new(client))
}

/// An answer in HTTP/1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn status(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    /// The value of a field, in any case.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// Sends a GET in HTTP/1.1 and reads the answer.
pub(crate) fn get(stream: &mut (impl Read + Write), path: &str) -> Answer {
    ask(stream, path);
    answer(stream)
}

/// Sends a GET in HTTP/1.1.
pub(crate) fn ask(stream: &mut impl Write, path: &str) {
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
        .unwrap();
    stream.flush().unwrap();
}

/// Reads an answer with a length, byte by byte, so that nothing of the next one is taken.
pub(crate) fn answer(stream: &mut impl Read) -> Answer {
    let head = head(stream);
    let mut answer = Answer {
        head,
        body: Vec::new(),
    };
    let length = answer.field("content-length").map_or("0", |value| value);
    answer.body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut answer.body).unwrap();
    answer
}

/// Reads up to the empty line.
pub(crate) fn head(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// What comes until the end of the stream, and how it ends.
pub(crate) fn rest(stream: &mut impl Read) -> (Vec<u8>, io::Result<()>) {
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes);
    (bytes, ended.map(|_| ()))
}

/// Asserts that nothing comes and nothing ends for a while: a lower bound, it cannot fail on a slow
/// machine.
pub(crate) fn assert_silent(stream: &mut TcpStream) {
    stream
        .set_read_timeout(Some(Duration::from_millis(150)))
        .unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert!(is_timeout(&error), "{error}");
}

/// Whether a read or a write ended at its timeout. Windows has another error than Unix for it.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}
