//! TLS as a server: settings for rustls, and what a session turned out to be.

use crate::config::TlsConfig;
use intact_ledger::{Tls, TlsVersion};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::{ServerConfig, ServerConnection};
use std::sync::Arc;

/// Sessions kept for clients that may send early data; it needs memory of them, because each may be
/// used only once.
const SESSIONS: usize = 16 * 1024;

/// The settings as rustls wants them.
pub(crate) fn server_config(settings: &TlsConfig) -> Result<Arc<ServerConfig>, rustls::Error> {
    let config = settings.server_config(aws_lc_rs::default_provider())?;
    Ok(Arc::new(config))
}

impl TlsConfig {
    /// The settings as rustls wants them, with the cipher suites of `provider`.
    pub fn server_config(&self, provider: CryptoProvider) -> Result<ServerConfig, rustls::Error> {
        let versions: Vec<_> = self
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
            .with_single_cert(self.authority.chain.clone(), self.authority.key.clone_key())?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.send_tls13_tickets = self.tickets;
        if self.tickets == 0 {
            config.session_storage = Arc::new(NoServerSessionStorage {});
        } else if self.early_data > 0 {
            config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
            config.max_early_data_size = self.early_data;
            // the answer to a request in early data need not wait for the client's Finished
            config.send_half_rtt_data = true;
        } else {
            config.ticketer = aws_lc_rs::Ticketer::new()?;
        }
        Ok(config)
    }
}

/// The settings of TLS inside QUIC, where early data has no other limit than the windows.
#[cfg(feature = "http3")]
pub(crate) fn quic_config(settings: &TlsConfig) -> Result<ServerConfig, rustls::Error> {
    let only_1_3 = TlsConfig {
        versions: vec![TlsVersion::Tls13],
        ..settings.clone()
    };
    let mut config = only_1_3.server_config(aws_lc_rs::default_provider())?;
    config.alpn_protocols = vec![intact_wire::h3::ALPN.to_vec()];
    if config.max_early_data_size > 0 {
        config.max_early_data_size = u32::MAX;
    }
    Ok(config)
}

/// What a handshake led to.
pub(crate) fn describe(session: &mut ServerConnection) -> Tls {
    let is_early = session.early_data().is_some();
    Tls {
        server_name: session.server_name().map(Into::into),
        ..intact_client::tls::describe(session, is_early)
    }
}
