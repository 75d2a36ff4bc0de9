//! HTTP/3 that a server announces: it works, it is blocked, or it is announced at another port.

use intact_check::{Check, CheckProgress, Config, ProbeKind, ServerProfile};
use intact_client::Clock;
use intact_client::tls::Verify;
use intact_ledger::server_profile::Http3Seen;
use intact_ledger::{Event, Failure, Outcome, Protocol, TlsVersion, Transport};
use intact_serve::{CertificateAuthority, TestServer, TlsConfig, Totals};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// Stops after the versions, and counts connections over QUIC.
#[derive(Default)]
struct Versions {
    quic: u64,
    is_over: bool,
}

impl CheckProgress for Versions {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Opened(connection) = event {
            self.quic += u64::from(connection.transport == Transport::Quic);
        }
    }
    fn stage(&mut self, stage: ProbeKind, _: &ServerProfile) {
        self.is_over = stage == ProbeKind::Waterfall;
    }
    fn waiting(&mut self, _: Duration) {}
    fn stopped(&self) -> bool {
        self.is_over
    }
}

/// What a check sees of HTTP/3, the connections over QUIC that it opened, and what the server saw.
fn check(change: impl FnOnce(&mut intact_serve::Config)) -> (Option<Http3Seen>, u64, Totals) {
    let authority = Arc::new(CertificateAuthority::make(&[]).unwrap());
    let tls = TlsConfig {
        authority: authority.clone(),
        versions: vec![TlsVersion::Tls13],
        tickets: 2,
        early_data: 0,
    };
    let mut config = intact_serve::Config {
        tls: Some((SocketAddr::from(([127, 0, 0, 1], 0)), tls)),
        ..intact_serve::Config::default()
    };
    change(&mut config);
    let server = TestServer::start(config).unwrap();
    let address = server.addresses().tls.unwrap();
    let mut config = Config::new(&format!("https://{address}/")).unwrap();
    config.idle = false;
    config.credentials.verify = Verify::Roots(authority.ca_pem().unwrap().as_bytes().into());
    let check = Check::new(config).unwrap();
    let mut progress = Versions::default();
    let profile = check.run(Clock::start(), None, &mut progress).unwrap();
    (profile.h3, progress.quic, server.end().unwrap())
}

#[test]
fn announced_http3_is_tried_and_resumed() {
    let (seen, opened, totals) = check(|server| server.http3 = true);
    let seen = seen.unwrap();
    assert_eq!(seen.announced, format!("h3=\":{}\"; ma=3600", seen.port));
    assert_eq!(seen.host, None);
    let tried = seen.tried.unwrap();
    assert_eq!((tried.outcome, tried.status), (Outcome::Ok, Some(200)));
    assert!(tried.setup.is_some());
    assert_eq!((tried.reused, tried.resumed), (Some(true), Some(true)));
    assert_eq!(opened, 2);
    // the second connection carries no request, so the server does not count it by version
    let theirs = totals
        .versions
        .iter()
        .find(|one| one.http == Protocol::Http3);
    assert_eq!(
        theirs.map(|one| (one.connections, one.requests)),
        Some((1, 2))
    );
}

fn announcing(port: u16) -> (Outcome, Option<String>) {
    let value = format!("h3=\":{port}\"; ma=60");
    let (seen, opened, _) = check(|server| {
        server.headers = vec![("Alt-Svc".to_owned(), value)];
    });
    assert_eq!(opened, 1);
    let tried = seen.unwrap().tried.unwrap();
    assert_eq!((tried.reused, tried.resumed), (None, None));
    (tried.outcome, tried.detail)
}

#[test]
fn a_network_that_drops_udp_differs_from_a_closed_port() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let dropped = announcing(port).0;
    assert_eq!(dropped, Outcome::Failed(Failure::ConnectTimeout));
    drop(silent);
    assert_eq!(announcing(port).0, Outcome::Failed(Failure::Refused));
}

#[test]
fn without_an_announcement_nothing_is_tried() {
    let (seen, opened, _) = check(|_| {});
    assert_eq!((seen, opened), (None, 0));
}
