//! TLS 1.3 inside QUIC (RFC 9001), for `quinn-proto`, at both ends.
//!
//! The session of the library hides the kind of handshake and the cipher suite. This one passes on
//! the keys of rustls and reports both. The only computation of its own is the check of a Retry.

use crate::tls::describe;
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use intact_ledger::{Tls, TlsVersion};
use intact_wire::quic;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::pki_types::ServerName;
use rustls::quic::{Connection, DirectionalKeys, KeyChange, Secrets, Suite, Version};
use rustls::{AlertDescription, CipherSuite, ClientConfig, HandshakeKind, ServerConfig};
use std::any::Any;
use std::sync::Arc;

/// Key and nonce of the tag of a Retry packet (RFC 9001 section 5.8).
const RETRY_KEY: [u8; 16] = [
    0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e,
];
const RETRY_NONCE: [u8; 12] = [
    0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
];

/// What a handshake has led to so far: the `handshake_data` of a connection.
#[derive(Clone, Debug, Default)]
pub struct QuicHandshake {
    /// The facts for the ledger, without early data, and without what a client offered.
    pub tls: Tls,
    /// The client had to repeat its hello.
    pub is_hello_repeated: bool,
    /// The server accepted early data; also true if the client sent none.
    pub early_data: bool,
    /// Tickets for later sessions that a client has received.
    pub tickets: u32,
    /// What the peer announced, once its handshake messages were read. Before that, a client that
    /// sends early data has those of the session's first connection.
    pub parameters: Option<quic::TransportParameters>,
    /// Why TLS refused the peer's messages.
    pub error: Option<rustls::Error>,
}

/// TLS of a client.
pub(super) struct QuicClientTls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    suite: Suite,
}

impl QuicClientTls {
    /// A client for the server with this name. `None` if the provider lacks the suite that QUIC
    /// begins with.
    pub(super) fn new(config: &Arc<ClientConfig>, name: &ServerName<'static>) -> Option<Self> {
        let suite = initial_suite(&config.crypto_provider().cipher_suites)?;
        Some(QuicClientTls {
            config: config.clone(),
            name: name.clone(),
            suite,
        })
    }
}

impl crypto::ClientConfig for QuicClientTls {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let params = encoded(params);
        let session = rustls::quic::ClientConnection::new(
            self.config.clone(),
            Version::V1,
            self.name.clone(),
            params,
        )
        .map_err(|_| ConnectError::EndpointStopping)?;
        Ok(Box::new(TlsSession::new(
            Connection::Client(session),
            self.suite,
        )))
    }
}

/// TLS of a server.
pub struct QuicServerTls {
    config: Arc<ServerConfig>,
    /// For what needs no session.
    stateless: QuicServerConfig,
    suite: Suite,
}

impl QuicServerTls {
    /// A server with these settings. `None` if they allow no TLS 1.3 with the suite that QUIC
    /// begins with.
    pub fn new(config: Arc<ServerConfig>) -> Option<QuicServerTls> {
        let suite = initial_suite(&config.crypto_provider().cipher_suites)?;
        let stateless = QuicServerConfig::with_initial(config.clone(), suite).ok()?;
        // what rustls refuses is found out here, and not with the first client
        server_session(&config, Vec::new())?;
        Some(QuicServerTls {
            config,
            stateless,
            suite,
        })
    }
}

impl crypto::ServerConfig for QuicServerTls {
    fn initial_keys(&self, version: u32, id: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.stateless.initial_keys(version, id)
    }

    fn retry_tag(&self, version: u32, original: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.stateless.retry_tag(version, original, packet)
    }

    fn start_session(
        self: Arc<Self>,
        _: u32,
        params: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        match server_session(&self.config, encoded(params)) {
            Some(session) => Box::new(TlsSession::new(session, self.suite)),
            None => unreachable!("`new` has made a session with these settings"),
        }
    }
}

fn server_session(config: &Arc<ServerConfig>, params: Vec<u8>) -> Option<Connection> {
    let session = rustls::quic::ServerConnection::new(config.clone(), Version::V1, params);
    session.ok().map(Connection::Server)
}

/// One session.
struct TlsSession {
    inner: Connection,
    suite: Suite,
    next_secrets: Option<Secrets>,
    has_reported: bool,
    error: Option<rustls::Error>,
}

impl TlsSession {
    fn new(inner: Connection, suite: Suite) -> TlsSession {
        TlsSession {
            inner,
            suite,
            next_secrets: None,
            has_reported: false,
            error: None,
        }
    }

    fn side(&self) -> Side {
        match self.inner {
            Connection::Client(_) => Side::Client,
            Connection::Server(_) => Side::Server,
        }
    }
}

impl crypto::Session for TlsSession {
    fn initial_keys(&self, id: &ConnectionId, side: Side) -> Keys {
        let side = match side {
            Side::Client => rustls::Side::Client,
            Side::Server => rustls::Side::Server,
        };
        both(self.suite.keys(id, side, Version::V1))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let (early_data, tickets, server_name) = match &self.inner {
            Connection::Client(client) => (
                client.is_early_data_accepted(),
                client.tls13_tickets_received(),
                None,
            ),
            Connection::Server(server) => (
                server.zero_rtt_keys().is_some(),
                0,
                server.server_name().map(Into::into),
            ),
        };
        Some(Box::new(QuicHandshake {
            tls: Tls {
                version: Some(TlsVersion::Tls13),
                server_name,
                ..describe(&self.inner, false)
            },
            is_hello_repeated: self.inner.handshake_kind()
                == Some(HandshakeKind::FullWithHelloRetryRequest),
            early_data,
            tickets,
            parameters: self
                .inner
                .quic_transport_parameters()
                .and_then(quic::TransportParameters::read),
            error: self.error.clone(),
        }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.inner.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.inner {
            Connection::Client(client) => Some(client.is_early_data_accepted()),
            Connection::Server(_) => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        if let Err(error) = self.inner.read_hs(bytes) {
            let reason = error.to_string();
            self.error = Some(error);
            let alert = self
                .inner
                .alert()
                .unwrap_or(AlertDescription::InternalError);
            return Err(TransportError {
                code: TransportErrorCode::crypto(alert.into()),
                frame: None,
                reason,
            });
        }
        let is_ready = self.inner.alpn_protocol().is_some() || !self.inner.is_handshaking();
        Ok(is_ready && !std::mem::replace(&mut self.has_reported, true))
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(mut bytes) = self.inner.quic_transport_parameters() else {
            return Ok(None);
        };
        Ok(Some(TransportParameters::read(self.side(), &mut bytes)?))
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let keys = match self.inner.write_hs(out)? {
            KeyChange::Handshake { keys } => keys,
            KeyChange::OneRtt { keys, next } => {
                self.next_secrets = Some(next);
                keys
            }
        };
        Some(both(keys))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next_secrets.as_mut()?.next_packet_keys();
        Some(KeyPair {
            local: Box::new(keys.local),
            remote: Box::new(keys.remote),
        })
    }

    fn is_valid_retry(&self, original: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some(tag_start) = payload.len().checked_sub(16) else {
            return false;
        };
        let (payload, tag) = payload.split_at(tag_start);
        let length = [original.len() as u8];
        let covered = [&length[..], original, header, payload].concat();
        let Ok(key) = UnboundKey::new(&AES_128_GCM, &RETRY_KEY) else {
            return false;
        };
        let nonce = Nonce::assume_unique_for_key(RETRY_NONCE);
        let mut tag = tag.to_vec();
        LessSafeKey::new(key)
            .open_in_place(nonce, Aad::from(covered), &mut tag)
            .is_ok()
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let exported = self
            .inner
            .export_keying_material(output, label, Some(context));
        exported.map(drop).map_err(|_| ExportKeyingMaterialError)
    }
}

/// The keys of both directions, as the library wants them.
fn both(keys: rustls::quic::Keys) -> Keys {
    let (local, remote): (DirectionalKeys, DirectionalKeys) = (keys.local, keys.remote);
    Keys {
        header: KeyPair {
            local: Box::new(local.header),
            remote: Box::new(remote.header),
        },
        packet: KeyPair {
            local: Box::new(local.packet),
            remote: Box::new(remote.packet),
        },
    }
}

fn encoded(params: &TransportParameters) -> Vec<u8> {
    let mut bytes = Vec::new();
    params.write(&mut bytes);
    bytes
}

/// The suite of the first packets (RFC 9001 section 5.2).
fn initial_suite(suites: &[rustls::SupportedCipherSuite]) -> Option<Suite> {
    suites
        .iter()
        .filter(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256)
        .find_map(|suite| suite.tls13()?.quic_suite())
}
