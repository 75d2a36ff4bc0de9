//! TLS on a client's connection: after a handshake with a rustls server, any mix of data in
//! records, bytes that are no records, close_notify, and a FIN. Every read moves bytes, the loop
//! ends, nothing is taken after close_notify, and every exchange ends once.
//!
//! `env --ignore-signal=PIPE` has to precede the program: libFuzzer's main does not ignore SIGPIPE
//! as Rust's does.
#![no_main]

use intact_client::clock::TimestampConverter;
use intact_client::tls::{Client, Settings, Trust, Verify};
use intact_client::{
    Clock, Detail, Dial, Endpoint, Established, HttpConnection, Plan, Progress, Proxy, Received,
    RequestSpec, Resolver, ServerUrl, State,
};
use intact_ledger::{ConnectionId, Event, Exchange, Method, Nanos, Protocol, Sink, TlsVersion};
use libfuzzer_sys::fuzz_target;
use mio::{Events, Poll, Token, Waker};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What is made once: a certificate takes longer than a handshake.
struct Fixture {
    listener: UnixListener,
    server: Arc<ServerConfig>,
    plans: [Arc<Plan>; 2],
    _folder: std::path::PathBuf,
}

fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
        let provider = Arc::new(intact_client::tls::provider());
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .unwrap();
        let folder =
            std::env::temp_dir().join(format!("intact-fuzz-channel-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let trust = Trust::load(&Verify::Insecure).unwrap();
        let plan = |version| {
            let settings = Settings {
                version: Some(version),
                protocol: Protocol::Http11,
                resume: false,
                certificate: None,
            };
            Arc::new(Plan {
                origin: ServerUrl::parse("https://localhost/").unwrap().origin(),
                names: None,
                endpoint: Endpoint::Unix(path.clone()),
                proxy: Proxy::Transparent,
                tls: Some(Client::new("localhost", &settings, &trust).unwrap()),
                protocol: Protocol::Http11,
                stamps: false,
                socket: intact_client::SocketSettings::default(),
                local_address: false,
                header_table: None,
            })
        };
        Fixture {
            listener,
            server: Arc::new(server),
            plans: [plan(TlsVersion::Tls13), plan(TlsVersion::Tls12)],
            _folder: folder,
        }
    })
}

/// Counts the exchanges that ended.
#[derive(Default)]
struct Ended(u64);

impl Sink for Ended {
    fn record(&mut self, event: Event<'_>) {
        if let Event::Exchange(exchange) = event {
            assert!(exchange.at <= exchange.end);
            self.0 += 1;
        }
    }
}

/// Both ends after the handshake.
fn shake_hands(plan: &Arc<Plan>, clock: &Clock) -> (Established, ServerConnection, UnixStream) {
    let fixture = fixture();
    let mut poll = Poll::new().unwrap();
    let waker = Waker::new(poll.registry(), Token(1)).unwrap();
    let mut resolver = Resolver::new(waker);
    let (id, token) = (ConnectionId(1), Token(0));
    let (mut dial, mut progress) =
        Dial::start(plan, id, token, &mut resolver, Some(poll.registry()), clock);
    let (mut socket, _) = fixture.listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut session = ServerConnection::new(fixture.server.clone()).unwrap();
    let mut events = Events::with_capacity(8);
    let mut established = None;
    for _ in 0..100 {
        match progress {
            Progress::Established(done) => established = Some(*done),
            Progress::Failed(connection) => panic!("{:?}", connection.failed),
            Progress::Pending => {}
        }
        while session.wants_write() {
            session.write_tls(&mut socket).unwrap();
        }
        if session.read_tls(&mut socket).is_ok() {
            session.process_new_packets().unwrap();
        }
        if let Some(established) = established.take_if(|_| !session.is_handshaking()) {
            while session.wants_write() {
                session.write_tls(&mut socket).unwrap();
            }
            return (established, session, socket);
        }
        progress = Progress::Pending;
        if established.is_none() {
            poll.poll(&mut events, Some(Duration::from_millis(100)))
                .unwrap();
            progress = dial.ready(Some(poll.registry()));
        }
    }
    panic!("no end of the handshake");
}

/// Bytes, and how they are sent: as data of the session, as they are, or with an end after them.
type Piece = (Vec<u8>, u8);

fuzz_target!(|data: (bool, Vec<Piece>)| {
    let (old, pieces) = data;
    let clock = Clock::start();
    let (established, mut session, mut socket) =
        shake_hands(&fixture().plans[usize::from(old)], &clock);
    let blank = Exchange::new(0, Nanos(0));
    let mut http = HttpConnection::new(established, Protocol::Http11, Detail::Outcome, 1, blank);
    let url = ServerUrl::parse("https://localhost/").unwrap();
    let spec = RequestSpec::new(&url, Method::GET, "intact/fuzz", &[], |_| None).unwrap();
    let request = Arc::new(spec.format(Protocol::Http11));
    let (mut sink, mut begun, mut closed) = (Ended::default(), 0, false);
    // the head of a record without its end would have swallowed a close_notify
    let mut is_framed = true;
    let mut buffer = vec![0; 4096];
    for (bytes, how) in pieces {
        if http.state() == State::Ready {
            begun += 1;
            http.begin(&request, begun, clock.now(), false);
            let _ = http.send(&clock);
        }
        let bytes = &bytes[..bytes.len().min(16 * 1024)];
        match how % 8 {
            0 | 1 => {
                is_framed &= bytes.is_empty();
                drop(socket.write_all(bytes));
            }
            2 => {
                session.send_close_notify();
                closed |= is_framed;
            }
            3 => drop(session.refresh_traffic_keys()),
            4 => drop(socket.shutdown(std::net::Shutdown::Write)),
            _ => drop(session.writer().write_all(bytes)),
        }
        while session.wants_write() && session.write_tls(&mut socket).is_ok() {}
        let ended_before = sink.0;
        let was_over = http.state() == State::Over;
        let mut reads = 0;
        loop {
            let before = http.moved();
            let timestamps = TimestampConverter::read(&clock);
            match http.receive(&mut buffer, &clock, &timestamps, &mut sink) {
                Received::Bytes { count, .. } => assert!(count > 0 && http.moved() > before),
                Received::Nothing | Received::Ended => break,
            }
            reads += 1;
            assert!(reads < 100_000, "reads without an end");
        }
        http.flush();
        if was_over {
            assert_eq!(
                sink.0, ended_before,
                "an exchange ended on a connection that was over"
            );
        }
        if closed {
            assert_eq!(http.state(), State::Over, "close_notify ends a connection");
        }
        // what the client sends is of no interest, and must not fill the socket
        let mut rest = [0; 4096];
        while socket.read(&mut rest).is_ok_and(|count| count > 0) {}
    }
    http.give_up(None, clock.now(), &mut sink);
    assert_eq!(sink.0, begun, "an exchange did not end");
});
