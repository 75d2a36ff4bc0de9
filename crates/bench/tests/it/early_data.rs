//! Early data (0-RTT) over TCP: what the client counts as accepted is what the server's ledger has.

use crate::http3::{against, assert_same_counts, connections};
use crate::rig::Record;
use intact_bench::Config;
use intact_client::tls::{Client, Settings, Trust, Verify};
use intact_client::{
    Clock, Detail, Endpoint, EventLoop, HttpConnection, Plan, Proxy, RequestSpec, ServerUrl,
    SocketSettings,
};
use intact_ledger::{
    Connection, Event, Exchange, Handshake, Method, Nanos, Outcome, Protocol, Reuse, Row, Sink,
    TlsVersion,
};
use intact_serve::{CertificateAuthority, TlsConfig, Totals};
use intact_test_servers::TestServer;
use std::net::SocketAddr;
use std::sync::Arc;

fn early(record: &Record) -> u64 {
    let is_early =
        |one: &&Connection| one.tls.as_ref().unwrap().handshake == Some(Handshake::EarlyData);
    connections(record).filter(is_early).count() as u64
}

fn early_at_server(totals: &Totals) -> u64 {
    let all = totals.connections.handshakes.iter();
    let early = all.filter(|one| one.kind == Some(Handshake::EarlyData));
    early.map(|one| one.count).sum()
}

fn resuming(config: &mut Config, http: Protocol) {
    config.axes.http = vec![http];
    config.axes.keepalive = vec![false];
    config.axes.resume = vec![true];
    config.axes.early_data = vec![true];
}

#[test]
fn both_ledgers_count_the_same_early_data() {
    for http in [Protocol::Http10, Protocol::Http11, Protocol::Http2] {
        let (record, totals) = against(
            "/",
            |serve| serve.tls.as_mut().unwrap().1.early_data = 16_384,
            |config| resuming(config, http),
        );
        assert_same_counts(&record, &totals);
        let early = early(&record);
        assert_eq!(early, early_at_server(&totals), "{http:?}");
        // a connection that ends with its early response gets no session for the next one
        assert!(early >= record.opened() / 2, "{http:?}: {early}");
        for row in &record.rows {
            if let Row::Exchange(exchange) = row {
                assert_eq!(exchange.reuse, Some(Reuse::Fresh));
                assert_eq!(exchange.body.read, Some(100));
            }
        }
    }
}

#[test]
fn over_http2_the_client_waits_for_the_next_session_and_each_request_is_early() {
    let (record, totals) = against(
        "/",
        |serve| serve.tls.as_mut().unwrap().1.early_data = 16_384,
        |config| resuming(config, Protocol::Http2),
    );
    // the first connection has no session
    assert_eq!(early(&record), record.opened() - 1);
    assert_eq!(early_at_server(&totals), record.opened() - 1);
}

#[test]
fn a_request_longer_than_the_server_allows_is_complete() {
    for http in [Protocol::Http11, Protocol::Http2] {
        let (record, totals) = against(
            "/",
            // less than the request
            |serve| serve.tls.as_mut().unwrap().1.early_data = 40,
            |config| resuming(config, http),
        );
        assert_same_counts(&record, &totals);
        assert!(early(&record) > 0, "{http:?}");
    }
}

/// Connections and exchanges, as they are recorded.
#[derive(Default)]
struct Recorded {
    order: Vec<&'static str>,
    connections: Vec<Connection>,
    exchanges: Vec<Exchange>,
}

impl Sink for Recorded {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Opened(connection) => {
                self.order.push("opened");
                self.connections.push(connection.clone());
            }
            Event::Exchange(exchange) => {
                self.order.push("exchange");
                self.exchanges.push(exchange.clone());
            }
            _ => {}
        }
    }
}

/// One request on a connection of its own, read until the server's FIN or `patience` is over.
fn request_once(client: &Client, address: SocketAddr, recorded: &mut Recorded) {
    let clock = Clock::start();
    let url = ServerUrl::parse("https://localhost/").unwrap();
    let plan = Arc::new(Plan {
        origin: url.origin(),
        endpoint: Endpoint::Addresses([address].into()),
        proxy: Proxy::Transparent,
        names: None,
        tls: Some(client.clone()),
        protocol: Protocol::Http11,
        stamps: true,
        socket: SocketSettings::default(),
        local_address: true,
        header_table: None,
    });
    let mut event_loop = EventLoop::new(clock).unwrap();
    let limit = clock.now().after(5_000_000_000);
    let established = event_loop.open(&plan, 1, limit).unwrap().unwrap();
    if !established.is_early() {
        recorded.record(Event::Opened(&established.connection));
    }
    let spec = RequestSpec::new(&url, Method::new("GET"), "test", &[], |_| None).unwrap();
    let mut spec = spec;
    spec.connection = Some("close");
    let request = Arc::new(spec.format(Protocol::Http11));
    let blank = Exchange::new(0, Nanos(0));
    let mut open = HttpConnection::new(*established, Protocol::Http11, Detail::Outcome, 1, blank);
    open.begin(&request, 1, clock.now(), false);
    event_loop.send(&mut open);
    // the session for the next connection comes before the FIN
    while open.ended().is_none() {
        assert!(clock.now() < limit, "the server says nothing");
        event_loop.wait(limit).unwrap();
        while event_loop.read(&mut open, recorded) {}
    }
    open.close(clock.now());
}

#[test]
fn refused_early_data_is_counted_and_the_request_sent_again() {
    let authority = Arc::new(CertificateAuthority::make(&[]).unwrap());
    let server = |address: SocketAddr| {
        let mut tls = TlsConfig::new(authority.clone(), vec![TlsVersion::Tls13]);
        tls.early_data = 16_384;
        TestServer::start(intact_serve::Config {
            tls: Some((address, tls)),
            ..intact_serve::Config::default()
        })
        .unwrap()
    };
    let verify = Verify::Roots(authority.ca_pem().unwrap().as_bytes().into());
    let settings = Settings {
        version: Some(TlsVersion::Tls13),
        protocol: Protocol::Http11,
        resume: true,
        certificate: None,
    };
    let trust = Trust::load(&verify).unwrap();
    let client = Client::new("localhost", &settings, &trust).unwrap();
    let client = client.allowing_early_requests();
    let first = server(SocketAddr::from(([127, 0, 0, 1], 0)));
    let address = first.addresses().tls.unwrap();
    let mut recorded = Recorded::default();
    request_once(&client, address, &mut recorded);
    first.end().unwrap();
    // a server that has forgotten the sessions refuses what came early
    let second = server(address);
    request_once(&client, address, &mut recorded);
    let totals = second.end().unwrap();
    let kinds = recorded.connections.iter();
    let kinds: Vec<_> = kinds
        .map(|one| one.tls.as_ref().unwrap().handshake)
        .collect();
    assert_eq!(kinds, [Some(Handshake::Full), Some(Handshake::Full)]);
    assert_eq!(recorded.order, ["opened", "exchange"].repeat(2));
    for exchange in &recorded.exchanges {
        assert_eq!(exchange.outcome, Outcome::Ok);
        assert_eq!(exchange.body.read, Some(100));
    }
    assert_eq!(totals.requests.total, 1);
    assert_eq!(early_at_server(&totals), 0);
}
