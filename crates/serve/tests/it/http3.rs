//! HTTP/3 against clients that know as little as possible (`quinn` and bytes), and against
//! datagrams of an attacker.

use intact_ledger::{Handshake, TlsVersion};
use intact_serve::{CachingConfig, CertificateAuthority, Config, TlsConfig, Totals};
use intact_test_servers::TestServer;
use intact_wire::h3::{ErrorCode, qpack, writer};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::future::Future;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tokio::time::timeout;

/// Longer than anything takes; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server with HTTP/3, and a client that trusts it.
struct Rig {
    server: TestServer,
    client: ClientConfig,
}

impl Rig {
    fn start() -> Rig {
        Rig::with(CachingConfig::default())
    }

    fn with(caching: CachingConfig) -> Rig {
        let authority = Arc::new(CertificateAuthority::make(&[]).unwrap());
        let mut tls = TlsConfig::new(authority.clone(), vec![TlsVersion::Tls13]);
        tls.early_data = 16_384;
        let config = Config {
            tls: Some((SocketAddr::from(([127, 0, 0, 1], 0)), tls)),
            http3: true,
            caching,
            ..Config::default()
        };
        let mut roots = RootCertStore::empty();
        let pem = authority.ca_pem().unwrap().as_bytes();
        roots
            .add(CertificateDer::from_pem_slice(pem).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut client = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![b"h3".to_vec()];
        client.enable_early_data = true;
        let client = QuicClientConfig::try_from(client).unwrap();
        Rig {
            server: TestServer::start(config).unwrap(),
            client: ClientConfig::new(Arc::new(client)),
        }
    }

    fn address(&self) -> SocketAddr {
        self.server.addresses().tls.unwrap()
    }

    fn endpoint(&self) -> Endpoint {
        let mut endpoint = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        endpoint.set_default_client_config(self.client.clone());
        endpoint
    }

    async fn connect(&self, endpoint: &Endpoint) -> Connection {
        let connecting = endpoint.connect(self.address(), "localhost").unwrap();
        connecting.await.unwrap()
    }

    fn end(self) -> Totals {
        self.server.end().unwrap()
    }
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async { timeout(PATIENCE, test).await.expect("a hang") })
}

fn head(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    qpack::begin(&mut block);
    for (name, value) in fields {
        qpack::encode(name.as_bytes(), value.as_bytes(), false, &mut block);
    }
    let mut out = Vec::new();
    writer::write_headers(&mut out, &block);
    out
}

const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "localhost"),
    (":path", "/bytes/10"),
];

/// Asks for 10 bytes twice with further fields: the two responses as bytes, and the server's
/// counts.
pub(crate) fn ask_twice(
    caching: CachingConfig,
    fields: [&[(&str, &str)]; 2],
) -> (Vec<u8>, Vec<u8>, Totals) {
    let rig = Rig::with(caching);
    let (first, second) = run(async {
        let connection = rig.connect(&rig.endpoint()).await;
        let request = |more: &[(&str, &str)]| head(&[&GET[..], more].concat());
        let first = ask(&connection, &request(fields[0])).await.unwrap();
        let second = ask(&connection, &request(fields[1])).await.unwrap();
        (first, second)
    });
    (first, second, rig.end())
}

/// Sends bytes as a whole request; the answer, or the code of a reset.
async fn ask(connection: &Connection, bytes: &[u8]) -> Result<Vec<u8>, Option<u64>> {
    let (mut send, mut receive) = connection.open_bi().await.map_err(|_| None)?;
    send.write_all(bytes).await.map_err(|_| None)?;
    let _ = send.finish();
    let mut answer = Vec::new();
    loop {
        match receive.read_chunk(usize::MAX, true).await {
            Ok(Some(chunk)) => answer.extend_from_slice(&chunk.bytes),
            Ok(None) => return Ok(answer),
            Err(quinn::ReadError::Reset(code)) => return Err(Some(code.into_inner())),
            Err(_) => return Err(None),
        }
    }
}

/// The code with which the server ends a connection.
async fn closed(connection: &Connection) -> ErrorCode {
    match connection.closed().await {
        ConnectionError::ApplicationClosed(close) => ErrorCode(close.error_code.into_inner()),
        other => panic!("{other}"),
    }
}

#[test]
fn a_client_of_another_make_is_served() {
    let rig = Rig::start();
    run(async {
        let endpoint = rig.endpoint();
        let connection = rig.connect(&endpoint).await;
        for _ in 0..3 {
            let answer = ask(&connection, &head(&GET)).await.unwrap();
            assert!(answer.ends_with(b"xxxxxxxxxx"), "{answer:x?}");
        }
        connection.close(0x100u32.into(), b"");
        endpoint.wait_idle().await;
    });
    let totals = rig.end();
    assert_eq!((totals.requests.total, totals.requests.ok), (3, 3));
    assert_eq!((totals.connections.opened, totals.reused), (1, 2));
}

#[test]
fn a_malformed_request_ends_its_stream_and_others_are_served() {
    let rig = Rig::start();
    run(async {
        let endpoint = rig.endpoint();
        let connection = rig.connect(&endpoint).await;
        let message = Err(Some(ErrorCode::H3_MESSAGE_ERROR.0));
        let with = |name, value| head(&[&GET[..], &[(name, value)]].concat());
        assert_eq!(ask(&connection, &with("Upper", "case")).await, message);
        assert_eq!(
            ask(&connection, &with("connection", "close")).await,
            message
        );
        assert_eq!(
            ask(&connection, &with("content-length", "3")).await,
            message
        );
        assert_eq!(ask(&connection, &head(&GET[..3])).await, message);
        let incomplete = Err(Some(ErrorCode::H3_REQUEST_INCOMPLETE.0));
        assert_eq!(ask(&connection, b"").await, incomplete);
        assert!(ask(&connection, &head(&GET)).await.is_ok());
    });
    assert_eq!(rig.end().requests.ok, 1);
}

#[test]
fn a_client_that_breaks_the_protocol_gets_the_code_and_others_are_served() {
    let rig = Rig::start();
    let mut settings = vec![0];
    writer::write_settings(&mut settings, &[]);
    // of a stream for a request, or of a unidirectional one
    let cases: [(bool, Vec<u8>, ErrorCode); 8] = [
        (false, b"\0\x03abc".to_vec(), ErrorCode::H3_FRAME_UNEXPECTED),
        (false, b"\x04\0".to_vec(), ErrorCode::H3_FRAME_UNEXPECTED),
        (false, b"\x06\0".to_vec(), ErrorCode::H3_FRAME_UNEXPECTED),
        (
            false,
            b"\x01\x03\x02\0\x80".to_vec(),
            ErrorCode::QPACK_DECOMPRESSION_FAILED,
        ),
        (
            false,
            b"\x01\xc0\0\0\0\x40\0\0\0".to_vec(),
            ErrorCode::H3_EXCESSIVE_LOAD,
        ),
        (
            true,
            b"\0\x07\x01\0".to_vec(),
            ErrorCode::H3_MISSING_SETTINGS,
        ),
        (
            true,
            b"\x02\x41a\x01b".to_vec(),
            ErrorCode::QPACK_ENCODER_STREAM_ERROR,
        ),
        (true, b"\x01".to_vec(), ErrorCode::H3_STREAM_CREATION_ERROR),
    ];
    run(async {
        let endpoint = rig.endpoint();
        for (is_uni, bytes, expected) in &cases {
            let other = rig.connect(&endpoint).await;
            let connection = rig.connect(&endpoint).await;
            if *is_uni {
                let mut stream = connection.open_uni().await.unwrap();
                stream.write_all(bytes).await.unwrap();
                assert_eq!(closed(&connection).await, *expected, "{bytes:x?}");
            } else {
                let _ = ask(&connection, bytes).await;
                assert_eq!(closed(&connection).await, *expected, "{bytes:x?}");
            }
            assert!(ask(&other, &head(&GET)).await.is_ok());
        }
    });
    assert_eq!(rig.end().requests.ok, cases.len() as u64);
}

/// A long header of another version (RFC 8999), of this size.
fn other_version(size: usize) -> Vec<u8> {
    let mut datagram = vec![0xc3, 0x0a, 0x0a, 0x0a, 0x0a, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0];
    datagram.resize(size, 0);
    datagram
}

#[test]
fn datagrams_of_an_attacker_are_not_amplified_and_others_are_served() {
    let rig = Rig::start();
    let attacker = UdpSocket::bind("127.0.0.1:0").unwrap();
    attacker.connect(rig.address()).unwrap();
    attacker
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let mut sent = 0;
    for nth in 0..2_000u32 {
        let datagram = match nth % 4 {
            0 => other_version(1_200),
            // too short for a response
            1 => other_version(100),
            // a short header for a connection that does not exist
            2 => [&[0x40][..], &nth.to_be_bytes(), &[7; 60]].concat(),
            _ => vec![nth as u8; 1 + nth as usize % 1_400],
        };
        sent += datagram.len();
        // a full socket buffer is the attacker's loss
        let _ = attacker.send(&datagram);
    }
    let mut received = 0;
    let mut buffer = [0; 65_536];
    while let Ok(count) = attacker.recv(&mut buffer) {
        received += count;
    }
    assert!(received < sent, "{received} for {sent}");
    run(async {
        let endpoint = rig.endpoint();
        let connection = rig.connect(&endpoint).await;
        assert!(ask(&connection, &head(&GET)).await.is_ok());
    });
    assert_eq!(rig.end().requests.ok, 1);
}

/// A path to the server that keeps what the client sends: each datagram by the client's connection.
fn recording(server: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<Vec<u8>>>>) {
    let path = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = path.local_addr().unwrap();
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let record = recorded.clone();
    thread::spawn(move || {
        let mut client = None;
        let mut buffer = [0; 65_536];
        while let Ok((count, from)) = path.recv_from(&mut buffer) {
            let to = if from == server {
                client
            } else {
                client = Some(from);
                record.lock().unwrap().push(buffer[..count].to_vec());
                Some(server)
            };
            if let Some(to) = to {
                let _ = path.send_to(&buffer[..count], to);
            }
        }
    });
    (address, recorded)
}

#[test]
fn a_replayed_early_request_is_not_served_again() {
    let rig = Rig::start();
    let server = rig.address();
    let (path, recorded) = recording(server);
    run(async {
        let endpoint = rig.endpoint();
        let first = rig.connect(&endpoint).await;
        assert!(ask(&first, &head(&GET)).await.is_ok());
        // the tickets
        tokio::time::sleep(Duration::from_millis(200)).await;
        let connecting = endpoint.connect(path, "localhost").unwrap();
        let Ok((early, accepted)) = connecting.into_0rtt() else {
            panic!("no session");
        };
        assert!(ask(&early, &head(&GET)).await.is_ok());
        assert!(accepted.await);
        for connection in [first, early] {
            connection.close(0x100u32.into(), b"");
        }
        endpoint.wait_idle().await;
    });
    let attacker = UdpSocket::bind("127.0.0.1:0").unwrap();
    let datagrams = recorded.lock().unwrap().clone();
    assert!(!datagrams.is_empty());
    for _ in 0..3 {
        for datagram in &datagrams {
            attacker.send_to(datagram, server).unwrap();
        }
        thread::sleep(Duration::from_millis(100));
    }
    let totals = rig.end();
    assert_eq!((totals.requests.total, totals.requests.ok), (2, 2));
    let early = totals.connections.handshakes.iter();
    let mut early = early.filter(|one| one.kind == Some(Handshake::EarlyData));
    assert_eq!(early.next().map(|one| one.count), Some(1));
}
