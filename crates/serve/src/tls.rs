//! TLS as a server: settings for rustls, and what a session turned out to be.

use crate::config::TlsConfig;
use intact_ledger::{Handshake, Tls, TlsVersion};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::{HandshakeKind, ServerConfig, ServerConnection};
use std::sync::Arc;

/// Sessions kept for clients that may send early data; it needs memory of them, because each may be
/// used only once.
const SESSIONS: usize = 16 * 1024;

/// The settings as rustls wants them.
pub(crate) fn server_config(settings: &TlsConfig) -> Result<Arc<ServerConfig>, rustls::Error> {
    let config = config_with(settings, aws_lc_rs::default_provider())?;
    Ok(Arc::new(config))
}

/// The same with the cipher suites of `provider`.
pub(crate) fn config_with(
    settings: &TlsConfig,
    provider: CryptoProvider,
) -> Result<ServerConfig, rustls::Error> {
    let versions: Vec<_> = settings
        .versions
        .iter()
        .filter_map(|version| match version {
            TlsVersion::Tls12 => Some(&rustls::version::TLS12),
            TlsVersion::Tls13 => Some(&rustls::version::TLS13),
            _ => None,
        })
        .collect();
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&versions)?
        .with_no_client_auth()
        .with_single_cert(
            settings.authority.chain.clone(),
            settings.authority.key.clone_key(),
        )?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.send_tls13_tickets = settings.tickets;
    if settings.tickets == 0 {
        config.session_storage = Arc::new(NoServerSessionStorage {});
    } else if settings.early_data > 0 {
        config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
        config.max_early_data_size = settings.early_data;
        // the answer to a request in early data need not wait for the client's Finished
        config.send_half_rtt_data = true;
    } else {
        config.ticketer = aws_lc_rs::Ticketer::new()?;
    }
    Ok(config)
}

/// The settings of TLS inside QUIC, where early data has no other limit than the windows.
#[cfg(feature = "http3")]
pub(crate) fn quic_config(settings: &TlsConfig) -> Result<ServerConfig, rustls::Error> {
    let only_1_3 = TlsConfig {
        versions: vec![TlsVersion::Tls13],
        ..settings.clone()
    };
    let mut config = config_with(&only_1_3, aws_lc_rs::default_provider())?;
    config.alpn_protocols = vec![intact_wire::h3::ALPN.to_vec()];
    if config.max_early_data_size > 0 {
        config.max_early_data_size = u32::MAX;
    }
    Ok(config)
}

/// What a handshake inside QUIC led to. Whether early data came shows the first request.
#[cfg(feature = "http3")]
pub(crate) fn describe_quic(session: &intact_client::quic::QuicHandshake) -> Tls {
    Tls {
        version: Some(TlsVersion::Tls13),
        cipher: session
            .cipher
            .and_then(|suite| suite.as_str())
            .map(Into::into),
        server_name: session.server_name.as_deref().map(Into::into),
        alpn_chosen: session
            .protocol
            .as_deref()
            .map(|id| String::from_utf8_lossy(id).into()),
        handshake: session.kind.map(|kind| match kind {
            HandshakeKind::Resumed => Handshake::Resumed,
            _ => Handshake::Full,
        }),
        ..Tls::default()
    }
}

/// What a handshake led to.
pub(crate) fn describe(session: &mut ServerConnection) -> Tls {
    let early = session.early_data().is_some();
    Tls {
        version: session
            .protocol_version()
            .and_then(|version| match version {
                rustls::ProtocolVersion::TLSv1_2 => Some(TlsVersion::Tls12),
                rustls::ProtocolVersion::TLSv1_3 => Some(TlsVersion::Tls13),
                _ => None,
            }),
        cipher: session
            .negotiated_cipher_suite()
            .and_then(|suite| suite.suite().as_str())
            .map(Into::into),
        server_name: session.server_name().map(Into::into),
        alpn_chosen: session
            .alpn_protocol()
            .map(|id| String::from_utf8_lossy(id).into()),
        handshake: match session.handshake_kind() {
            _ if early => Some(Handshake::EarlyData),
            Some(HandshakeKind::Resumed) => Some(Handshake::Resumed),
            Some(_) => Some(Handshake::Full),
            None => None,
        },
        ..Tls::default()
    }
}
