//! TLS as a client: the only user of `rustls` for dials.
//!
//! Versions, roots, resumption and protocols are settings. The signature of the handshake is always
//! verified, even without chain and name.

use crate::failure;
use crate::verifier::{ServerVerifier, Trusted};
use intact_ledger::{Handshake, Protocol, Tls, TlsVersion};
use intact_wire::tls::suite_name;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{
    ClientConfig, ClientConnection, CommonState, HandshakeKind, KeyLog, ProtocolVersion,
    SupportedCipherSuite, SupportedProtocolVersion,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Limit of the sessions that a client remembers for resumption.
const SESSIONS: usize = 64;

/// Why a TLS client could not be created. Each is an error in the settings, found before anything
/// is sent.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A PEM file could not be read.
    #[error("{path}: {reason}")]
    Pem {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The roots could not be read.
    #[error("the trusted certificates (--cacert): {0}")]
    Roots(String),
    /// The host is neither a name nor an address that TLS can verify.
    #[error("{0} is no name that a certificate can carry")]
    ServerName(String),
    /// rustls refuses the settings.
    #[error("TLS settings: {0}")]
    Tls(String),
}

// as a source, the library's error would be printed in its debug format
impl From<rustls::Error> for SettingsError {
    fn from(error: rustls::Error) -> SettingsError {
        SettingsError::Tls(failure::tls_words(&error))
    }
}

/// The verification of the server's certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Chain and name, with the system's roots.
    #[default]
    System,
    /// Chain and name, with the roots of this PEM text only.
    Roots(Arc<[u8]>),
    /// Neither chain nor name (`--insecure`).
    Insecure,
}

/// A client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// PEM file with the chain.
    pub chain: PathBuf,
    /// PEM file with the key.
    pub key: PathBuf,
}

/// The verification of the server, and our own certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The verification of the server.
    pub verify: Verify,
    /// Our certificate.
    pub certificate: Option<ClientCertificate>,
}

/// The settings of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The only version to offer; `None`: 1.3 and 1.2.
    pub version: Option<TlsVersion>,
    /// The protocol of the connection, which ALPN offers.
    pub protocol: Protocol,
    /// Whether sessions may be resumed.
    pub resume: bool,
    /// Our certificate.
    pub certificate: Option<ClientCertificate>,
}

/// The roots and certificates of the settings, read once and shared by all variants.
#[derive(Clone, Debug)]
pub struct Trust(Roots);

#[derive(Clone, Debug)]
enum Roots {
    /// Nothing is verified.
    Unused,
    Given(Arc<Trusted>),
    /// The system's, which take 2 ms and are read when a client needs them first.
    System(Arc<OnceLock<Arc<Trusted>>>),
}

impl Trust {
    /// Reads the roots for `verify`.
    pub fn load(verify: &Verify) -> Result<Trust, SettingsError> {
        let unreadable = |reason: String| SettingsError::Roots(reason);
        Ok(Trust(match verify {
            Verify::Insecure => Roots::Unused,
            Verify::Roots(pem) => {
                let mut trusted = Trusted::nothing();
                for certificate in CertificateDer::pem_slice_iter(pem) {
                    let certificate = certificate.map_err(|error| unreadable(pem_words(&error)))?;
                    trusted
                        .add(certificate)
                        .map_err(|error| unreadable(failure::tls_words(&error)))?;
                }
                if trusted.is_empty() {
                    return Err(unreadable("no certificate in it".to_owned()));
                }
                Roots::Given(Arc::new(trusted))
            }
            Verify::System => Roots::System(Arc::default()),
        }))
    }

    /// The roots; `None` if nothing is verified.
    fn trusted(&self) -> Option<Arc<Trusted>> {
        match &self.0 {
            Roots::Unused => None,
            Roots::Given(trusted) => Some(trusted.clone()),
            Roots::System(trusted) => {
                Some(trusted.get_or_init(|| Arc::new(system_roots())).clone())
            }
        }
    }
}

/// The roots of the system's store; without any, those of the public issuers.
fn system_roots() -> Trusted {
    let mut trusted = Trusted::nothing();
    for certificate in rustls_native_certs::load_native_certs().certs {
        // a system's store may hold certificates that cannot be parsed
        let _ = trusted.add(certificate);
    }
    if trusted.is_empty() {
        trusted.add_public_issuers();
    }
    trusted
}

/// Creates TLS sessions with one server. Clones share the sessions for resumption.
#[derive(Clone, Debug)]
pub struct Client {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    server_name: Arc<str>,
    alpn_offered: Arc<[Arc<str>]>,
    required_alpn: Option<&'static [u8]>,
    resume: bool,
    early: Option<Arc<[u8]>>,
    /// Connections send their first request before the handshake is complete.
    is_early: bool,
}

impl Client {
    /// A client for `host` with `settings`.
    pub fn new(host: &str, settings: &Settings, trust: &Trust) -> Result<Client, SettingsError> {
        let provider = Arc::new(provider());
        let versions: &[&SupportedProtocolVersion] = match settings.version {
            Some(TlsVersion::Tls12) => &[&rustls::version::TLS12],
            Some(TlsVersion::Tls13) => &[&rustls::version::TLS13],
            // QUIC has no other (RFC 9001 section 4.2)
            _ if settings.protocol == Protocol::Http3 => &[&rustls::version::TLS13],
            _ => &[&rustls::version::TLS13, &rustls::version::TLS12],
        };
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(ServerVerifier {
                trusted: trust.trusted(),
                provider,
            }));
        let mut config = match &settings.certificate {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let key =
                    PrivateKeyDer::from_pem_file(&own.key).map_err(|error| SettingsError::Pem {
                        path: own.key.clone(),
                        reason: pem_words(&error),
                    })?;
                builder.with_client_auth_cert(certificates(&own.chain)?, key)?
            }
        };
        let (offered, required_alpn): (&[&str], Option<&'static [u8]>) = match settings.protocol {
            Protocol::Http2 => (&["h2"], Some(b"h2")),
            Protocol::Http3 => (&["h3"], Some(b"h3")),
            Protocol::Http10 => (&[], None),
            _ => (&["http/1.1"], None),
        };
        config.alpn_protocols = offered.iter().map(|id| id.as_bytes().to_vec()).collect();
        config.resumption = if settings.resume {
            Resumption::in_memory_sessions(SESSIONS)
        } else {
            Resumption::disabled()
        };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| SettingsError::ServerName(host.to_owned()))?;
        Ok(Client {
            config: Arc::new(config),
            name,
            server_name: host.into(),
            alpn_offered: offered.iter().map(|&id| id.into()).collect(),
            required_alpn,
            resume: settings.resume,
            early: None,
            is_early: false,
        })
    }

    /// A client with the same sessions that sends `request` as early data (RFC 8446 section 2.3) if
    /// a session allows it. An attacker can replay early data, so use it only for requests that are
    /// safe to repeat. [`Tls::handshake`] shows whether the server accepted it. If not, send the
    /// request again.
    pub fn with_early_data(&self, request: &[u8]) -> Client {
        Client {
            early: Some(request.into()),
            ..self.with_config(|config| config.enable_early_data = true)
        }
    }

    /// A client with the same sessions whose connections send their first request before the server
    /// responds (0-RTT), if a session allows it. An attacker can replay early data, so use it only
    /// for requests that are safe to repeat. If the server refuses the early data, the connection
    /// sends the request again.
    pub fn allowing_early_requests(&self) -> Client {
        Client {
            is_early: true,
            ..self.with_config(|config| config.enable_early_data = true)
        }
    }

    /// The same client with a key log for its sessions, so that captures can be decrypted.
    pub fn with_key_log(&self, secrets: Arc<dyn KeyLog>) -> Client {
        self.with_config(|config| config.key_log = secrets)
    }

    /// The same client with changed settings of the library.
    fn with_config(&self, change: impl FnOnce(&mut ClientConfig)) -> Client {
        let mut config = ClientConfig::clone(&self.config);
        change(&mut config);
        Client {
            config: Arc::new(config),
            ..self.clone()
        }
    }

    /// A new session with its hello ready to be sent, and whether early data is sent with it.
    pub(crate) fn connect(&self) -> Result<(ClientConnection, bool), rustls::Error> {
        let mut session = ClientConnection::new(self.config.clone(), self.name.clone())?;
        // a request is sent completely: its size is the bound
        session.set_buffer_limit(None);
        let mut early_sent = false;
        if let Some(request) = &self.early
            && let Some(mut early) = session.early_data()
            && early.bytes_left() >= request.len()
        {
            early_sent = early.write_all(request).is_ok();
        }
        Ok((session, early_sent))
    }

    /// Whether a new session takes the first request before its handshake is complete.
    pub(crate) fn may_send_early(&self, session: &mut ClientConnection) -> bool {
        self.is_early && session.early_data().is_some()
    }

    /// The settings and the name for a session inside QUIC.
    #[cfg(feature = "http3")]
    pub(crate) fn config(&self) -> (&Arc<ClientConfig>, &ServerName<'static>) {
        (&self.config, &self.name)
    }

    /// Adds what the hello asked for to the facts of its session.
    pub(crate) fn with_offer(&self, tls: Tls) -> Tls {
        Tls {
            server_name: Some(self.server_name.clone()),
            alpn_offered: Some(self.alpn_offered.clone()),
            resumption_offered: Some(self.resume),
            ..tls
        }
    }

    /// Whether the server chose a protocol that we can use.
    pub(crate) fn accepts(&self, session: &ClientConnection) -> bool {
        self.required_alpn
            .is_none_or(|required| session.alpn_protocol() == Some(required))
    }

    /// The facts of an established session.
    pub(crate) fn describe(&self, session: &ClientConnection) -> Tls {
        self.with_offer(describe(session, session.is_early_data_accepted()))
    }
}

/// The facts of a session that both ends know. `is_early`: the server accepted early data.
pub fn describe(session: &CommonState, is_early: bool) -> Tls {
    let name = |suite: SupportedCipherSuite| suite_name(suite.suite().into()).into();
    let alpn = |id: &[u8]| String::from_utf8_lossy(id).into();
    Tls {
        version: match session.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => Some(TlsVersion::Tls12),
            Some(ProtocolVersion::TLSv1_3) => Some(TlsVersion::Tls13),
            _ => None,
        },
        cipher: session.negotiated_cipher_suite().map(name),
        alpn_chosen: session.alpn_protocol().map(alpn),
        handshake: match session.handshake_kind() {
            Some(HandshakeKind::Resumed) | None if is_early => Some(Handshake::EarlyData),
            Some(HandshakeKind::Resumed) => Some(Handshake::Resumed),
            Some(_) => Some(Handshake::Full),
            None => None,
        },
        ..Tls::default()
    }
}

/// X25519 and suites with SHA-256 first: the cheapest that every server has, so handshakes measure
/// the server.
pub fn provider() -> CryptoProvider {
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![
        aws_lc_rs::kx_group::X25519,
        aws_lc_rs::kx_group::SECP256R1,
        aws_lc_rs::kx_group::SECP384R1,
    ];
    provider
        .cipher_suites
        .sort_by_key(|suite| !format!("{:?}", suite.suite()).ends_with("AES_128_GCM_SHA256"));
    provider
}

/// The problem of a PEM file.
fn pem_words(error: &rustls_pki_types::pem::Error) -> String {
    use rustls_pki_types::pem::Error;
    match error {
        Error::Io(error) => error.to_string(),
        Error::NoItemsFound => "no certificate or key in it".to_owned(),
        Error::MissingSectionEnd { .. } => "a section has no END line".to_owned(),
        Error::IllegalSectionStart { .. } => "a BEGIN line is malformed".to_owned(),
        _ => "it is not in PEM format".to_owned(),
    }
}

/// The certificates in a PEM file.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
    let unreadable = |reason: String| SettingsError::Pem {
        path: path.to_owned(),
        reason,
    };
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(|error| unreadable(pem_words(&error)))?
        .collect::<Result<_, _>>()
        .map_err(|error| unreadable(pem_words(&error)))?;
    if found.is_empty() {
        return Err(unreadable("no certificate in it".to_owned()));
    }
    Ok(found)
}
