//! HTTP/3 against the server of this workspace, whose ledger has to agree, and against UDP ports
//! that speak no QUIC.

use crate::hostile::{id, outcomes};
use crate::rig::{Record, config, run};
use intact_bench::{Config, Length};
use intact_client::tls::{Client, Settings, Trust, Verify};
use intact_client::{
    Clock, Detail, Endpoint, EventLoop, HttpConnection, Plan, Proxy, RequestSpec, ServerUrl,
    SocketSettings,
};
use intact_experiment::TlsChoice;
use intact_ledger::{
    CloseKind, Connection, EndedBy, Event, Exchange, Handshake, Method, Nanos, Outcome, Protocol,
    Reuse, Row, Sink, TlsVersion, Transport,
};
use intact_serve::{CertificateAuthority, Close, Fault, TlsConfig, Totals};
use intact_test_servers::TestServer;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A server with HTTP/3 and a bench of it.
pub(crate) fn against(
    path: &str,
    serve: impl FnOnce(&mut intact_serve::Config),
    adjust: impl FnOnce(&mut Config),
) -> (Record, Totals) {
    let authority = Arc::new(CertificateAuthority::make(&[]).unwrap());
    let tls = TlsConfig::new(authority.clone(), vec![TlsVersion::Tls13]);
    let mut server = intact_serve::Config {
        tls: Some((SocketAddr::from(([127, 0, 0, 1], 0)), tls)),
        http3: true,
        ..intact_serve::Config::default()
    };
    serve(&mut server);
    let server = TestServer::start(server).unwrap();
    let port = server.addresses().tls.unwrap().port();
    let mut config = config(&format!("https://localhost:{port}{path}"));
    config.axes.http = vec![Protocol::Http3];
    config.axes.tls = vec![TlsChoice::Any];
    config.timeout = Duration::from_secs(5);
    config.route.resolve = vec![format!("localhost:{port}:127.0.0.1")];
    config.credentials.verify = Verify::Roots(authority.ca_pem().unwrap().as_bytes().into());
    adjust(&mut config);
    let record = run(config);
    (record, server.end().unwrap())
}

pub(crate) fn connections(record: &Record) -> impl Iterator<Item = &Connection> {
    record.rows.iter().filter_map(|row| match row {
        Row::Opened(connection) => Some(&**connection),
        _ => None,
    })
}

/// Whether both ledgers have the same requests, all complete, and the same connections.
pub(crate) fn assert_same_counts(record: &Record, totals: &Totals) {
    let (ok, failed) = record.outcomes();
    assert_eq!(failed, []);
    assert_eq!(ok, totals.requests.total);
    assert_eq!(totals.requests.ok, ok);
    assert_eq!(record.opened(), totals.connections.opened);
}

fn assert_agrees(record: &Record, totals: &Totals) {
    assert_same_counts(record, totals);
    assert_eq!(totals.versions.len(), 1);
    assert_eq!(totals.versions[0].http, Protocol::Http3);
}

#[test]
fn the_ledgers_of_client_and_server_agree() {
    for (keepalive, streams) in [(true, 1), (true, 8), (false, 1)] {
        let (record, totals) = against(
            "/",
            |_| {},
            |config| {
                config.axes.keepalive = vec![keepalive];
                config.axes.streams = vec![streams];
                config.axes.concurrency = vec![2];
                config.length = Length::Exchanges(60);
            },
        );
        assert_agrees(&record, &totals);
        let opened = if keepalive { 1 + 2 * 2 } else { 1 + 60 };
        assert_eq!(record.opened(), opened);
        assert_eq!(record.ended_by(EndedBy::Client), opened);
        let theirs = totals.versions[0].ended_by.get(&EndedBy::Client);
        assert_eq!(theirs, Some(&opened));
        for connection in connections(&record) {
            assert_eq!(connection.transport, Transport::Quic);
            assert!(connection.setup.connect.is_some() && connection.setup.ssl.is_none());
            let tls = connection.tls.as_ref().unwrap();
            assert_eq!(tls.handshake, Some(Handshake::Full));
            assert_eq!(tls.alpn_chosen.as_deref(), Some("h3"));
            assert!(tls.cipher.is_some());
        }
        for row in &record.rows {
            if let Row::Exchange(exchange) = row {
                let is_first = exchange.ordinal == Some(1);
                assert_eq!(exchange.reuse == Some(Reuse::Fresh), is_first);
                assert_eq!(exchange.spans.connect.is_some(), is_first);
                let nth = u64::from(exchange.ordinal.unwrap());
                assert_eq!(exchange.stream, Some((nth - 1) * 4));
                assert_eq!(exchange.status, Some(200));
                assert_eq!(exchange.body.read, Some(100));
            }
        }
    }
}

#[test]
fn sessions_are_resumed_where_they_may_be() {
    for (resume, expected) in [(true, Handshake::Resumed), (false, Handshake::Full)] {
        let (record, totals) = against(
            "/",
            |_| {},
            |config| {
                config.axes.keepalive = vec![false];
                config.axes.resume = vec![resume];
            },
        );
        assert_agrees(&record, &totals);
        let kinds = connections(&record).skip(1);
        let mut kinds = kinds.map(|one| one.tls.as_ref().unwrap().handshake);
        assert!(kinds.all(|kind| kind == Some(expected)), "{resume}");
        let theirs = &totals.connections.handshakes;
        let count = theirs.iter().find(|one| one.kind == Some(expected));
        assert!(count.is_some_and(|one| one.count >= 20), "{theirs:?}");
    }
}

fn accepts_early_data(serve: &mut intact_serve::Config) {
    if let Some((_, tls)) = &mut serve.tls {
        tls.early_data = 16_384;
    }
}

#[test]
fn a_request_in_early_data_is_counted_so_by_both_ledgers() {
    let (record, totals) = against("/", accepts_early_data, |config| {
        config.axes.keepalive = vec![false];
        config.axes.resume = vec![true];
        config.axes.early_data = vec![true];
    });
    assert_agrees(&record, &totals);
    let is_early =
        |one: &&Connection| one.tls.as_ref().unwrap().handshake == Some(Handshake::EarlyData);
    let early = connections(&record).filter(is_early).count() as u64;
    // the first connection has no session, and each waits for the next one
    assert_eq!(early, record.opened() - 1);
    let theirs = &totals.connections.handshakes;
    let theirs = theirs
        .iter()
        .find(|one| one.kind == Some(Handshake::EarlyData));
    assert_eq!(theirs.map(|one| one.count), Some(early));
    for row in &record.rows {
        if let Row::Exchange(exchange) = row {
            assert_eq!(exchange.reuse, Some(Reuse::Fresh));
        }
    }
}

#[test]
fn early_data_is_not_sent_where_the_server_takes_none() {
    let (record, totals) = against(
        "/",
        |_| {},
        |config| {
            config.axes.keepalive = vec![false];
            config.axes.resume = vec![true];
            config.axes.early_data = vec![true];
        },
    );
    assert_agrees(&record, &totals);
    let kinds = connections(&record).skip(1);
    let mut kinds = kinds.map(|one| one.tls.as_ref().unwrap().handshake);
    assert!(kinds.all(|kind| kind == Some(Handshake::Resumed)));
}

#[test]
fn early_data_without_effect_or_with_a_risk_is_refused() {
    let refused = |adjust: &dyn Fn(&mut Config)| {
        let mut config = of_port(1);
        config.axes.resume = vec![true];
        config.axes.early_data = vec![false, true];
        adjust(&mut config);
        let refused = intact_bench::Bench::new(config).err();
        refused.unwrap().to_string()
    };
    let without_resumption = refused(&|config| config.axes.resume = vec![false]);
    assert!(without_resumption.starts_with("--early-data: only a resumed"));
    let by_tls12 = refused(&|config| {
        config.axes.http = vec![Protocol::Http2];
        config.axes.tls = vec![TlsChoice::Version(TlsVersion::Tls12)];
    });
    assert!(by_tls12.starts_with("--early-data: only a resumed"));
    let unsafe_method = refused(&|config| config.method = "POST".to_owned());
    assert!(unsafe_method.contains("twice"), "{unsafe_method}");
    let plain = refused(&|config| config.axes.tls = vec![TlsChoice::None]);
    assert!(plain.starts_with("--http 3: "), "{plain}");
}

#[test]
fn bodies_of_any_size_pass_in_both_directions() {
    let sent = vec![b'b'; 300_000];
    let body = sent.clone();
    let (record, totals) = against(
        "/echo",
        |_| {},
        |config| {
            config.method = "POST".to_owned();
            config.body = body;
            config.axes.streams = vec![3];
        },
    );
    assert_agrees(&record, &totals);
    for row in &record.rows {
        if let Row::Exchange(exchange) = row {
            assert_eq!(exchange.body.read, Some(300_000));
            // the body, and the header of its frame
            assert_eq!(exchange.bytes.request_body, 300_005);
        }
    }
    let (record, totals) = against("/chunked/3000000", |_| {}, |_| {});
    assert_agrees(&record, &totals);
    let whole = |row: &Row| match row {
        Row::Exchange(exchange) => exchange.body.read == Some(3_000_000),
        _ => true,
    };
    assert!(record.rows.iter().all(whole));
}

#[test]
fn a_server_that_announces_its_end_ends_the_connection() {
    let (record, totals) = against(
        "/",
        |serve| serve.max_requests = Some(5),
        |config| {
            config.axes.concurrency = vec![2];
            config.length = Length::Exchanges(48);
        },
    );
    assert_agrees(&record, &totals);
    let announced = record.ended_by(EndedBy::ServerAnnounced);
    assert!(announced >= 4, "{announced}");
    let theirs = totals.versions[0].ended_by.get(&EndedBy::ServerAnnounced);
    assert_eq!(theirs, Some(&announced));
}

#[test]
fn an_idle_connection_that_the_server_closed_is_no_failure_of_a_later_request() {
    for close in [Close::Fin, Close::Rst, Close::Goaway] {
        let (record, totals) = against(
            "/",
            |serve| {
                serve.idle_timeout = Some(Duration::from_millis(60));
                serve.close = close;
            },
            |config| {
                // far more than the idle limit between two requests
                config.requests_per_s = Some(2.0);
                config.length = Length::Exchanges(4);
                config.rounds = Some(1);
            },
        );
        assert_agrees(&record, &totals);
        assert!(record.opened() >= 4, "{close:?}: {}", record.opened());
        let ends = record.rows.iter().filter_map(|row| match row {
            Row::Closed(closed) => Some(&closed.close),
            _ => None,
        });
        let by_server = ends.filter(|close| close.by == Some(intact_ledger::Side::Server));
        assert!(by_server.clone().count() >= 3, "{close:?}");
        assert!(
            by_server
                .clone()
                .all(|one| one.how == Some(CloseKind::Goaway))
        );
    }
}

#[test]
fn every_fault_is_counted_by_its_kind() {
    let mut wrong = Vec::new();
    for fault in Fault::ALL {
        let begun = Instant::now();
        let (record, totals) = against(
            &format!("/fault/{fault}"),
            |_| {},
            |config| {
                config.length = Length::Exchanges(4);
                config.timeout = Duration::from_secs(1);
            },
        );
        let expected = fault
            .failure(Protocol::Http3)
            .map_or(Outcome::Ok, Outcome::Failed);
        let mut found = outcomes(&record);
        if fault == Fault::KeepAliveThenClose {
            // the next request can be on its way when the connection ends
            found.retain(|id| id != "closed" && id != "stale");
        }
        let (here, there) = (record.opened(), totals.connections.opened);
        if found != [id(&expected)] || here != there || begun.elapsed() > Duration::from_secs(30) {
            wrong.push(format!(
                "{fault}: {found:?} for {expected:?}, {here} connections here, {there} there"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A bench of a UDP port with this behaviour: datagram in, datagrams out.
fn against_udp(answer: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> (Vec<String>, Duration) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok((count, peer)) = socket.recv_from(&mut buffer) {
            for datagram in answer(&buffer[..count]) {
                let _ = socket.send_to(&datagram, peer);
            }
        }
    });
    let begun = Instant::now();
    let record = run(of_port(port));
    (outcomes(&record), begun.elapsed())
}

fn of_port(port: u16) -> Config {
    let mut config = config(&format!("https://127.0.0.1:{port}/"));
    config.axes.http = vec![Protocol::Http3];
    config.axes.tls = vec![TlsChoice::Any];
    config.timeout = Duration::from_millis(300);
    config.length = Length::Exchanges(2);
    config.rounds = Some(1);
    config
}

/// A Version Negotiation packet (RFC 9000 section 17.2.1) in response to a long header.
fn version_negotiation(hello: &[u8], versions: &[u32]) -> Vec<u8> {
    let theirs = usize::from(hello[5]);
    let (to, rest) = hello[6..].split_at(theirs);
    let from = &rest[1..=usize::from(rest[0])];
    let mut packet = vec![0x80, 0, 0, 0, 0, rest[0]];
    packet.extend_from_slice(from);
    packet.push(hello[5]);
    packet.extend_from_slice(to);
    for version in versions {
        packet.extend_from_slice(&version.to_be_bytes());
    }
    packet
}

#[test]
fn what_is_no_quic_is_an_outcome_and_no_crash() {
    let silent = against_udp(|_| Vec::new());
    assert_eq!(silent.0, ["connect-timeout"]);
    let garbage = against_udp(|hello| {
        let mut datagrams: Vec<Vec<u8>> = (0..50).map(|size| vec![0x40 | size; 60]).collect();
        datagrams.push(hello.to_vec());
        datagrams.push(hello.iter().map(|byte| !byte).collect());
        datagrams.push(vec![0xc3; 1200]);
        datagrams
    });
    assert_eq!(garbage.0, ["connect-timeout"]);
    // a storm of packets that offer no version we know
    let other = against_udp(|hello| vec![version_negotiation(hello, &[0x0a0a_0a0a]); 100]);
    assert_eq!(other.0, ["unreachable"]);
    // one that lists the version that was asked for has to be ignored (RFC 9000 section 6.2)
    let same = against_udp(|hello| vec![version_negotiation(hello, &[1]); 100]);
    assert_eq!(same.0, ["connect-timeout"]);
    for (_, took) in [silent, garbage, other, same] {
        assert!(took < Duration::from_secs(10));
    }
}

#[test]
fn a_closed_port_is_refused_at_once() {
    let begun = Instant::now();
    let mut config = of_port(9);
    config.timeout = Duration::from_secs(10);
    assert_eq!(outcomes(&run(config)), ["refused"]);
    assert!(begun.elapsed() < Duration::from_secs(8));
}

#[test]
fn a_certificate_that_is_not_trusted_is_counted_by_kind() {
    let (record, totals) = against(
        "/",
        |_| {},
        |config| {
            config.length = Length::Exchanges(2);
            config.credentials.verify = Verify::System;
        },
    );
    assert_eq!(outcomes(&record), ["certificate-unknown"]);
    assert_eq!(totals.requests.total, 0);
}

/// A connection that the test drives by itself.
struct Driven {
    http: HttpConnection,
    event_loop: EventLoop,
}

/// A limit that no exchange here reaches, in nanoseconds.
const HANG: u64 = 20_000_000_000;

#[derive(Default)]
struct Recorded {
    opened: Vec<Connection>,
    exchanges: Vec<Exchange>,
}

impl Sink for Recorded {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Opened(connection) => self.opened.push(connection.clone()),
            Event::Exchange(exchange) => self.exchanges.push(exchange.clone()),
            _ => {}
        }
    }
}

impl Driven {
    fn dial(
        client: &Client,
        address: SocketAddr,
        clock: &Clock,
        recorded: &mut Recorded,
    ) -> Driven {
        let plan = Arc::new(Plan {
            origin: ServerUrl::parse("https://localhost/").unwrap().origin(),
            names: None,
            endpoint: Endpoint::Addresses([address].into()),
            proxy: Proxy::Transparent,
            tls: Some(client.clone()),
            protocol: Protocol::Http3,
            stamps: true,
            socket: SocketSettings::default(),
            local_address: true,
            header_table: None,
        });
        let mut event_loop = EventLoop::new(*clock).unwrap();
        let limit = clock.now().after(HANG);
        let established = event_loop.open(&plan, 1, limit).unwrap().unwrap();
        if !established.is_early() {
            recorded.opened.push(established.connection.clone());
        }
        let blank = Exchange::new(0, Nanos(0));
        let (protocol, detail) = (Protocol::Http3, Detail::Fields);
        let http = HttpConnection::new(*established, protocol, detail, 4, blank);
        Driven { http, event_loop }
    }

    /// Sends a request, and reads until its exchange and the server's tickets are there.
    fn ask(&mut self, clock: &Clock, recorded: &mut Recorded) -> Exchange {
        let url = ServerUrl::parse("https://localhost/").unwrap();
        let spec = RequestSpec::new(&url, Method::GET, "intact/test", &[], |_| None).unwrap();
        let request = Arc::new(spec.format(Protocol::Http3));
        self.http.begin(&request, 1, clock.now(), false);
        self.event_loop.send(&mut self.http);
        let begun = clock.now();
        let tickets_at = begun.after(200_000_000);
        while recorded.exchanges.is_empty() || clock.now() < tickets_at {
            assert!(clock.now() < begun.after(HANG), "a hang");
            self.event_loop.read(&mut self.http, recorded);
            self.event_loop.wait(clock.now().after(10_000_000)).unwrap();
        }
        recorded.exchanges.remove(0)
    }
}

#[test]
fn a_request_that_was_refused_as_early_data_is_sent_again() {
    let authority = Arc::new(CertificateAuthority::make(&[]).unwrap());
    let start = |address: SocketAddr| {
        let mut tls = TlsConfig::new(authority.clone(), vec![TlsVersion::Tls13]);
        tls.early_data = 16_384;
        let config = intact_serve::Config {
            tls: Some((address, tls)),
            http3: true,
            ..intact_serve::Config::default()
        };
        TestServer::start(config).unwrap()
    };
    let settings = Settings {
        version: None,
        protocol: Protocol::Http3,
        resume: true,
        certificate: None,
    };
    let verify = Verify::Roots(authority.ca_pem().unwrap().as_bytes().into());
    let trust = Trust::load(&verify).unwrap();
    let client = Client::new("localhost", &settings, &trust).unwrap();
    let client = client.allowing_early_requests();
    let clock = Clock::start();
    let mut recorded = Recorded::default();
    let mut visit = |address| {
        let mut driven = Driven::dial(&client, address, &clock, &mut recorded);
        let exchange = driven.ask(&clock, &mut recorded);
        driven.http.close(clock.now());
        let tls = recorded.opened.pop().unwrap().tls.unwrap();
        assert!(
            recorded.opened.is_empty(),
            "each connection is recorded once"
        );
        (exchange.outcome, exchange.status, tls.handshake)
    };
    let server = start(SocketAddr::from(([127, 0, 0, 1], 0)));
    let address = server.addresses().tls.unwrap();
    let ok = |handshake| (Outcome::Ok, Some(200), Some(handshake));
    assert_eq!(visit(address), ok(Handshake::Full));
    assert_eq!(visit(address), ok(Handshake::EarlyData));
    assert_eq!(server.end().unwrap().requests.total, 2);
    // a server without memory of the session: it refuses both the session and the request
    let server = start(address);
    assert_eq!(visit(address), ok(Handshake::Full));
    let totals = server.end().unwrap();
    assert_eq!((totals.requests.total, totals.requests.ok), (1, 1));
}
