//! Offers TLS 1.0 and 1.1, without a handshake.

use crate::context::ProbeContext;
use crate::old_tls;
use crate::prober::Probed;
use intact_ledger::server_profile::OldTls;
use intact_ledger::{
    Connection, ConnectionId, DialFailure, Event, Failure, SetupPhase, Span, Tls, TlsVersion,
};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, SocketAddr};

pub(super) fn probe(context: &mut ProbeContext<'_>) -> Probed {
    let Some(peer) = context.peer.filter(|_| context.plans.is_secure()) else {
        return Ok(());
    };
    for version in [TlsVersion::Tls10, TlsVersion::Tls11] {
        context.prober.may_go_on()?;
        context.prober.wait_for_turn(peer.ip().is_loopback())?;
        let offered = try_one(context, peer, version);
        context.profile.old_tls.push(offered);
    }
    Ok(())
}

/// Offers a version. The ledger records a dial that failed in TLS, because no handshake follows.
fn try_one(context: &mut ProbeContext<'_>, peer: SocketAddr, version: TlsVersion) -> OldTls {
    let address = &context.plans.address;
    let name = address
        .host
        .parse::<IpAddr>()
        .is_err()
        .then_some(&*address.host);
    let clock = context.prober.clock;
    let mut connection = Connection::new(ConnectionId(context.prober.id()), clock.now());
    connection.origin = Some(address.origin());
    connection.peer = Some(peer);
    let stream = old_tls::connect(peer);
    let connected = clock.now();
    connection.setup.connect = Some(Span::new(connection.at, connected));
    let (offered, phase, kind) = match stream {
        Err(error) => {
            let offered = OldTls {
                version,
                accepted: None,
                detail: Some(error.to_string()),
            };
            (offered, SetupPhase::Connect, Failure::ConnectTimeout)
        }
        Ok(stream) => {
            let offered = old_tls::offer(stream, name, version, random());
            let kind = match offered.accepted {
                Some(true) => Failure::Aborted,
                Some(false) => Failure::TlsVersion,
                None => Failure::Timeout,
            };
            connection.tls = Some(Tls {
                version: (offered.accepted == Some(true)).then_some(version),
                server_name: name.map(Into::into),
                ..Tls::default()
            });
            connection.setup.ssl = Some(Span::new(connected, clock.now()));
            (offered, SetupPhase::Ssl, kind)
        }
    };
    connection.failed = Some(DialFailure {
        phase,
        kind,
        detail: offered.detail.as_deref().map(Into::into),
    });
    context.prober.observer.event(Event::Opened(&connection));
    offered
}

/// The random of a ClientHello. No session follows, so a weak generator is enough.
fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    for part in bytes.chunks_exact_mut(8) {
        part.copy_from_slice(&RandomState::new().build_hasher().finish().to_be_bytes());
    }
    bytes
}
