//! HTTP/3 that a server announces: it works, it is blocked, or it is announced at another port.

use intact_check::{Check, CheckProgress, Config, ProbeKind, ServerProfile};
use intact_client::Clock;
use intact_client::tls::Verify;
use intact_ledger::server_profile::{EarlyData, Http3Seen};
use intact_ledger::{
    CloseKind, Event, Failure, Handshake, Outcome, Protocol, TlsVersion, Transport,
};
use intact_serve::{CertificateAuthority, TlsConfig, Totals};
use intact_test_servers::TestServer;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// Stops before a stage, and counts connections over QUIC.
struct Versions {
    quic: u64,
    /// The stage before which it stops.
    last: ProbeKind,
    is_over: bool,
}

impl CheckProgress for Versions {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Opened(connection) = event {
            self.quic += u64::from(connection.transport == Transport::Quic);
        }
    }
    fn stage(&mut self, stage: ProbeKind, _: &ServerProfile) {
        self.is_over = stage == self.last;
    }
    fn waiting(&mut self, _: Duration) {}
    fn stopped(&self) -> bool {
        self.is_over
    }
}

/// What a check sees of HTTP/3, the connections over QUIC that it opened, and what the server saw.
fn check(change: impl FnOnce(&mut intact_serve::Config)) -> (Option<Http3Seen>, u64, Totals) {
    check_until(ProbeKind::Waterfall, change)
}

fn check_until(
    last: ProbeKind,
    change: impl FnOnce(&mut intact_serve::Config),
) -> (Option<Http3Seen>, u64, Totals) {
    let (profile, opened, totals) = profile(last, change, |_| {});
    (profile.h3, opened, totals)
}

/// A server with TLS 1.3, and a check of it.
pub(crate) fn secure_server(
    change: impl FnOnce(&mut intact_serve::Config),
) -> (TestServer, Config) {
    let authority = Arc::new(CertificateAuthority::make(&[]).unwrap());
    let tls = TlsConfig::new(authority.clone(), vec![TlsVersion::Tls13]);
    let mut server = intact_serve::Config {
        tls: Some((SocketAddr::from(([127, 0, 0, 1], 0)), tls)),
        ..intact_serve::Config::default()
    };
    change(&mut server);
    let server = TestServer::start(server).unwrap();
    let url = format!("https://{}/", server.addresses().tls.unwrap());
    let mut config = Config::new(&url).unwrap();
    config.credentials.verify = Verify::Roots(authority.ca_pem().unwrap().as_bytes().into());
    (server, config)
}

fn profile(
    last: ProbeKind,
    change: impl FnOnce(&mut intact_serve::Config),
    configure: impl FnOnce(&mut Config),
) -> (ServerProfile, u64, Totals) {
    let (server, mut config) = secure_server(change);
    config.idle = last != ProbeKind::Waterfall;
    config.idle_limit = Duration::from_millis(200);
    configure(&mut config);
    let check = Check::new(config).unwrap();
    let mut progress = Versions {
        quic: 0,
        last,
        is_over: false,
    };
    let profile = check.run(Clock::start(), None, &mut progress).unwrap();
    (profile, progress.quic, server.end().unwrap())
}

#[test]
fn announced_http3_is_tried_and_resumed() {
    let (seen, opened, totals) = check(|server| server.http3 = true);
    let seen = seen.unwrap();
    let announced = format!("h3=\":{}\"; ma=3600", seen.port);
    assert_eq!(seen.announced, Some(announced));
    assert_eq!(seen.host, None);
    let tried = seen.tried.unwrap();
    assert_eq!((tried.outcome, tried.status), (Outcome::Ok, Some(200)));
    assert_eq!((tried.answered, tried.wanted), (3, 3));
    let kinds: Vec<_> = tried.connections.iter().map(|one| one.handshake).collect();
    assert_eq!(
        kinds,
        [Handshake::Full, Handshake::Resumed, Handshake::Resumed]
    );
    for one in &tried.connections {
        assert_eq!(one.round_trips, Some(1), "{one:?}");
        assert!(
            one.setup.is_some() && one.to_first_answer.is_some(),
            "{one:?}"
        );
        assert!(one.first_request.unwrap().nanos() > one.setup.unwrap().nanos());
    }
    // this server's tickets allow none
    assert_eq!(tried.early_data, Some(EarlyData::NotOffered));
    let parameters = tried.parameters.unwrap();
    assert!(parameters.max_request_streams > 0, "{parameters:?}");
    // no idle probe ran
    assert_eq!(tried.idle, None);
    assert_eq!(opened, 3);
    let theirs = totals
        .versions
        .iter()
        .find(|one| one.http == Protocol::Http3);
    assert_eq!(
        theirs.map(|one| (one.connections, one.requests)),
        Some((3, 5))
    );
}

fn announcing(port: u16) -> (Outcome, Option<String>) {
    let value = format!("h3=\":{port}\"; ma=60");
    let (seen, opened, _) = check(|server| {
        server.headers = vec![("Alt-Svc".to_owned(), value)];
    });
    assert_eq!(opened, 1);
    let tried = seen.unwrap().tried.unwrap();
    assert_eq!((tried.answered, tried.connections.len()), (0, 0));
    assert_eq!((tried.early_data, tried.parameters), (None, None));
    (tried.outcome, tried.detail)
}

#[test]
fn a_network_that_drops_udp_differs_from_a_closed_port() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let dropped = announcing(port).0;
    assert_eq!(dropped, Outcome::Failed(Failure::ConnectTimeout));
    assert_eq!(announcing(9).0, Outcome::Failed(Failure::Refused));
}

#[test]
fn without_an_announcement_nothing_is_tried() {
    let (seen, opened, _) = check(|_| {});
    assert_eq!((seen, opened), (None, 0));
}

#[test]
fn early_data_is_accepted_where_the_tickets_allow_it() {
    let (seen, opened, totals) = check(|server| {
        server.http3 = true;
        let (_, tls) = server.tls.as_mut().unwrap();
        tls.early_data = 16 << 10;
    });
    let tried = seen.unwrap().tried.unwrap();
    assert_eq!(tried.early_data, Some(EarlyData::Accepted));
    let early = tried.connections[2];
    assert_eq!(early.handshake, Handshake::EarlyData);
    // no request waits for this setup
    assert_eq!((early.setup, early.round_trips), (None, None));
    assert!(early.first_request.is_some());
    assert_eq!(opened, 3);
    // the server counts it only if a request came in a 0-RTT packet
    let mut kinds = totals.connections.handshakes.iter();
    let early = kinds.find(|one| one.kind == Some(Handshake::EarlyData));
    assert_eq!(early.map(|one| one.count), Some(1));
}

/// A peer on UDP that sends `response` to each datagram.
fn peer(response: fn(&[u8]) -> Vec<u8>) -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        // ends with the process; a check sends a few datagrams only
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let bytes = response(&buffer[..len]);
            if socket.send_to(&bytes, from).is_err() {
                return;
            }
        }
    });
    port
}

/// Version Negotiation (RFC 9000 section 17.2.1) with one version, which is not 1.
fn negotiation(initial: &[u8]) -> Vec<u8> {
    let destination = &initial[6..6 + usize::from(initial[5])];
    let source_at = 6 + destination.len();
    let source = &initial[source_at + 1..source_at + 1 + usize::from(initial[source_at])];
    let mut bytes = vec![0x80, 0, 0, 0, 0, source.len() as u8];
    bytes.extend(source);
    bytes.push(destination.len() as u8);
    bytes.extend(destination);
    bytes.extend([0xff, 0, 0, 29]);
    bytes
}

#[test]
fn a_hostile_peer_is_an_outcome_in_bounded_time() {
    // neither is a packet of this connection, so there is no response
    for response in [
        (|_| vec![0xff; 1200]) as fn(&[u8]) -> Vec<u8>,
        <[u8]>::to_vec,
    ] {
        let outcome = announcing(peer(response)).0;
        assert_eq!(outcome, Outcome::Failed(Failure::ConnectTimeout));
    }
    let (outcome, detail) = announcing(peer(negotiation));
    assert_eq!(outcome, Outcome::Failed(Failure::Unreachable));
    assert_eq!(detail.unwrap(), "the server speaks no QUIC version 1");
}

#[test]
fn an_idle_connection_is_watched_next_to_those_of_http1() {
    let (seen, opened, _) = check_until(ProbeKind::Race, |server| server.http3 = true);
    let tried = seen.unwrap().tried.unwrap();
    let idle = tried.idle.unwrap();
    assert!(idle.span.nanos() > 0);
    // the limit of this server is far longer
    assert_eq!(idle.ended, None);
    assert_eq!(opened, 4);
}

#[test]
fn limits_are_those_of_http3_if_the_check_uses_it() {
    let (profile, opened, totals) = profile(
        ProbeKind::Held,
        |server| {
            server.http3 = true;
            server.max_requests = Some(20);
            server.idle_timeout = Some(Duration::from_secs(1));
        },
        |config| {
            config.http = Some(Protocol::Http3);
            config.idle_limit = Duration::from_secs(10);
        },
    );
    let row = profile.versions.last().unwrap();
    assert_eq!(
        (row.http, row.tls),
        (Protocol::Http3, Some(TlsVersion::Tls13))
    );
    assert_eq!((row.outcome, row.reused), (Outcome::Ok, Some(true)));
    assert!(profile.methods.iter().all(|one| one.kept == Some(true)));
    let requests = profile.requests.unwrap();
    assert_eq!(requests.http, Protocol::Http3);
    // GOAWAY may arrive in a packet after the last response
    assert!((20..=21).contains(&requests.answered), "{requests:?}");
    assert_eq!(requests.ended.unwrap().how, CloseKind::Goaway);
    let idle = profile.idle.unwrap();
    // this server closes before both sides would give up
    assert_eq!((idle.http, idle.announced_s), (Protocol::Http3, Some(600)));
    let between = idle.between.unwrap();
    assert!(
        (900_000_000..3_000_000_000).contains(&between.span.nanos()),
        "{between:?}"
    );
    assert_eq!(between.ended.unwrap().how, CloseKind::Goaway);
    let race = profile.race.unwrap();
    assert_eq!(race.attempts.len(), 4);
    assert_eq!(race.attempts[0].outcome, Some(Outcome::Ok));
    assert_eq!(race.attempts[3].outcome, None);
    let mut versions = totals.versions.iter();
    let theirs = versions.find(|one| one.http == Protocol::Http3).unwrap();
    // one connection idles without a request, so that the server learns no version
    assert_eq!(theirs.connections, opened - 1);
}

#[test]
fn http3_needs_an_address_with_tls() {
    let mut config = Config::new("http://127.0.0.1/").unwrap();
    config.http = Some(Protocol::Http3);
    let refused = Check::new(config).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "--http 3: HTTP/3 contains TLS 1.3; name an https:// URL"
    );
}
