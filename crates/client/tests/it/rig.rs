//! A scripted server, and a connection that is driven step by step.

use intact_client::tls::{Client, Settings, Trust, Verify};
use intact_client::{
    Clock, Detail, Endpoint, EventLoop, HttpConnection, Plan, Proxy, Request, RequestSpec,
    ServerUrl, SocketSettings,
};
use intact_ledger::{DialFailure, Event, Exchange, Method, Nanos, Protocol, Sink};
use rcgen::KeyPair;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Limit that detects a hang: far more than any exchange here takes.
const HANG: Duration = Duration::from_secs(10);

/// A server's TLS stream.
pub(crate) type TlsStream = StreamOwned<ServerConnection, TcpStream>;

/// Reads the header section of a request, and a body of this number of bytes.
pub(crate) fn read_request(stream: &mut TlsStream, body: usize) -> Option<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    stream.read_exact(&mut vec![0; body]).ok()
}

/// A TLS server that runs a script on its only connection, in a thread that ends with the test
/// process.
pub(crate) fn tls_server(script: impl FnOnce(TlsStream) + Send + 'static) -> SocketAddr {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    tls_server_with(own.cert.der().clone(), &own.signing_key, script)
}

/// The same server with this certificate.
pub(crate) fn tls_server_with(
    certificate: CertificateDer<'static>,
    key: &KeyPair,
    script: impl FnOnce(TlsStream) + Send + 'static,
) -> SocketAddr {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(intact_client::tls::provider());
    let key = provider.key_provider.load_private_key(key).unwrap();
    // the resolver does not compare the two: a server may lack the key of the certificate that it
    // sends
    let both = SingleCertAndKey::from(CertifiedKey::new(vec![certificate], key));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(both));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let session = ServerConnection::new(Arc::new(config)).unwrap();
        script(StreamOwned::new(session, stream));
    });
    address
}

/// Stores the ended exchanges.
#[derive(Default)]
struct Exchanges(Vec<Exchange>);

impl Sink for Exchanges {
    fn record(&mut self, event: Event<'_>) {
        if let Event::Exchange(exchange) = event {
            self.0.push(exchange.clone());
        }
    }
}

/// One connection and its loop.
pub(crate) struct Driver {
    pub(crate) http: HttpConnection,
    clock: Clock,
    event_loop: EventLoop,
    exchanges: Exchanges,
}

impl Driver {
    /// Connects with TLS, without verifying the certificate.
    pub(crate) fn connect(address: SocketAddr) -> Driver {
        Driver::verifying(address, "localhost", &Verify::Insecure).unwrap()
    }

    /// Connects with TLS to `name`, or returns why the dial failed.
    pub(crate) fn verifying(
        address: SocketAddr,
        name: &str,
        verify: &Verify,
    ) -> Result<Driver, DialFailure> {
        let url = ServerUrl::parse(&format!("https://{name}:{}/", address.port())).unwrap();
        let protocol = Protocol::Http11;
        let settings = Settings {
            version: None,
            protocol,
            resume: false,
            certificate: None,
        };
        let trust = Trust::load(verify).unwrap();
        let plan = Arc::new(Plan {
            origin: url.origin(),
            names: None,
            endpoint: Endpoint::Addresses([address].into()),
            proxy: Proxy::Transparent,
            tls: Some(Client::new(name, &settings, &trust).unwrap()),
            protocol,
            stamps: true,
            socket: SocketSettings::default(),
            local_address: false,
            header_table: None,
        });
        let clock = Clock::start();
        let mut event_loop = EventLoop::new(clock).unwrap();
        let opened = event_loop.open(&plan, 1, limit(&clock)).unwrap();
        let established = opened.map_err(|connection| connection.failed.unwrap())?;
        let blank = Exchange::new(0, Nanos(0));
        Ok(Driver {
            http: HttpConnection::new(*established, protocol, Detail::Fields, 1, blank),
            clock,
            event_loop,
            exchanges: Exchanges::default(),
        })
    }

    /// Sends a request and reads until its exchange ends.
    pub(crate) fn ask(&mut self, request: &Arc<Request>) -> Exchange {
        self.begin(request);
        self.answer()
    }

    /// Sends a request, and reads nothing.
    pub(crate) fn begin(&mut self, request: &Arc<Request>) {
        let id = self.http.exchanges() + 1;
        self.http.begin(request, id, self.clock.now(), false);
        self.http.send(&self.clock).unwrap();
    }

    /// Reads until the exchange in flight ends.
    pub(crate) fn answer(&mut self) -> Exchange {
        self.drive(|driver| !driver.exchanges.0.is_empty());
        self.exchanges.0.remove(0)
    }

    /// Reads and writes until `done`, at most until the limit.
    pub(crate) fn drive(&mut self, done: impl Fn(&Driver) -> bool) {
        let deadline = limit(&self.clock);
        loop {
            while self.event_loop.read(&mut self.http, &mut self.exchanges) {}
            if done(self) {
                return;
            }
            assert!(self.clock.now() < deadline, "a hang");
            self.event_loop.wait(deadline).unwrap();
        }
    }
}

fn limit(clock: &Clock) -> Nanos {
    clock.now().after(HANG.as_nanos() as u64)
}

/// A request of the server that the driver connects to.
pub(crate) fn request(method: Method, body: &[u8]) -> Arc<Request> {
    let url = ServerUrl::parse("https://localhost/").unwrap();
    let mut spec = RequestSpec::new(&url, method, "intact/test", &[], |_| None).unwrap();
    spec.body = body.into();
    Arc::new(spec.format(Protocol::Http11))
}
