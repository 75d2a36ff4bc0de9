//! ClientHello and ServerHello (RFC 8446 sections 4.1.2 and 4.1.3, RFC 5246 section 7.4.1) as data.
//!
//! Lists keep their order and unknown values, as fingerprints (JA3, JA4) need them.

use super::cursor::Cursor;
use super::error::Error;
use super::{TLS12, TLS13};

/// The extension with application protocols; TLS 1.3 encrypts that of the server.
pub(super) const ALPN: u16 = 16;

/// Extension types that are read (IANA registry "TLS ExtensionType Values").
mod extension {
    pub(super) const SERVER_NAME: u16 = 0;
    pub(super) const ALPN: u16 = super::ALPN;
    pub(super) const ENCRYPT_THEN_MAC: u16 = 22;
    pub(super) const SESSION_TICKET: u16 = 35;
    pub(super) const PRE_SHARED_KEY: u16 = 41;
    pub(super) const EARLY_DATA: u16 = 42;
    pub(super) const SUPPORTED_VERSIONS: u16 = 43;
}

/// What a client offers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientHello {
    /// `legacy_version`: the highest version before TLS 1.3.
    pub legacy_version: u16,
    /// Identifies the connection in key logs.
    pub random: [u8; 32],
    /// The session to resume (TLS 1.2), or random bytes (TLS 1.3).
    pub session_id: Vec<u8>,
    /// Cipher suites, in order.
    pub cipher_suites: Vec<u16>,
    /// Extension types, in order.
    pub extensions: Vec<u16>,
    /// The requested name (SNI) as sent; `None` also for a name that is not visible ASCII.
    pub server_name: Option<String>,
    /// The protocols offered, in order.
    pub alpn: Vec<Vec<u8>>,
    /// `supported_versions`, in order; empty before TLS 1.3.
    pub supported_versions: Vec<u16>,
    /// Length of the TLS 1.2 session ticket in bytes: 0 requests one, more resumes a session,
    /// `None` means that there is no such extension.
    pub ticket_len: Option<usize>,
    /// Number of pre-shared keys that are offered: TLS 1.3 resumption.
    pub psk_identities: usize,
    /// Early data (0-RTT) follows.
    pub early_data: bool,
}

/// What a server chose.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerHello {
    /// `legacy_version`; see [`version`](Self::version).
    pub legacy_version: u16,
    /// An input of the key derivation of TLS 1.2.
    pub random: [u8; 32],
    /// The session's id, or the client's own one (TLS 1.3).
    pub session_id: Vec<u8>,
    /// The cipher suite chosen.
    pub cipher_suite: u16,
    /// How records are compressed before they are encrypted; 0 if they are not.
    pub compression: u8,
    /// Extension types, in order.
    pub extensions: Vec<u16>,
    /// The version in `supported_versions`, from TLS 1.3 on.
    pub selected_version: Option<u16>,
    /// The chosen protocol, if it is not encrypted (TLS 1.2).
    pub alpn: Option<Vec<u8>>,
    /// The chosen pre-shared key: the session is resumed (TLS 1.3).
    pub psk: Option<u16>,
    /// CBC suites authenticate what is encrypted (RFC 7366).
    pub encrypt_then_mac: bool,
    /// This is a HelloRetryRequest, which adds a round trip.
    pub retry: bool,
}

/// SHA-256 of "HelloRetryRequest" (RFC 8446 section 4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// Longest session id in bytes (RFC 5246 section 7.4.1.2, RFC 8446 section 4.1.2).
const LONGEST_SESSION_ID: usize = 32;

fn read_session_id(body: &mut Cursor<'_>) -> Option<Vec<u8>> {
    let id = body.vec8()?.0;
    (id.len() <= LONGEST_SESSION_ID).then(|| id.to_vec())
}

impl ClientHello {
    /// Parses the body of the message.
    pub fn parse(body: &[u8]) -> Result<Self, Error> {
        Self::read(Cursor(body)).ok_or(Error::Malformed("ClientHello"))
    }

    fn read(mut body: Cursor<'_>) -> Option<Self> {
        let mut hello = Self {
            legacy_version: body.u16()?,
            random: body.array()?,
            ..Self::default()
        };
        hello.session_id = read_session_id(&mut body)?;
        hello.cipher_suites = body.vec16()?.u16s()?;
        let _compression = body.vec8()?;
        each_extension(body, |kind, data| {
            hello.extensions.push(kind);
            hello.read_extension(kind, data)
        })?;
        Some(hello)
    }

    fn read_extension(&mut self, kind: u16, mut data: Cursor<'_>) -> Option<()> {
        match kind {
            extension::SERVER_NAME => self.server_name = read_server_name(data)?,
            extension::ALPN => self.alpn = read_protocols(data)?,
            extension::SUPPORTED_VERSIONS => self.supported_versions = data.vec8()?.u16s()?,
            extension::SESSION_TICKET => self.ticket_len = Some(data.0.len()),
            extension::EARLY_DATA => self.early_data = true,
            extension::PRE_SHARED_KEY => {
                let mut identities = data.vec16()?;
                while !identities.is_empty() {
                    identities.vec16()?;
                    identities.bytes(4)?;
                    self.psk_identities += 1;
                }
            }
            _ => {}
        }
        Some(())
    }

    /// The highest offered version, without reserved (GREASE) values.
    pub fn highest_version(&self) -> u16 {
        let known = |version: &&u16| **version <= TLS13;
        self.supported_versions
            .iter()
            .filter(known)
            .max()
            .copied()
            .unwrap_or(self.legacy_version)
    }
}

impl ServerHello {
    /// Parses the body of the message.
    pub fn parse(body: &[u8]) -> Result<Self, Error> {
        Self::read(Cursor(body)).ok_or(Error::Malformed("ServerHello"))
    }

    fn read(mut body: Cursor<'_>) -> Option<Self> {
        let mut hello = Self {
            legacy_version: body.u16()?,
            random: body.array()?,
            ..Self::default()
        };
        hello.retry = hello.random == RETRY_RANDOM;
        hello.session_id = read_session_id(&mut body)?;
        hello.cipher_suite = body.u16()?;
        hello.compression = body.u8()?;
        each_extension(body, |kind, mut data| {
            hello.extensions.push(kind);
            match kind {
                extension::SUPPORTED_VERSIONS => hello.selected_version = Some(data.u16()?),
                extension::ALPN => hello.alpn = read_protocols(data)?.into_iter().next(),
                extension::PRE_SHARED_KEY => hello.psk = Some(data.u16()?),
                extension::ENCRYPT_THEN_MAC => hello.encrypt_then_mac = true,
                _ => {}
            }
            Some(())
        })?;
        Some(hello)
    }

    /// The version that the connection uses.
    pub fn version(&self) -> u16 {
        self.selected_version
            .unwrap_or(self.legacy_version.min(TLS12))
    }
}

/// Visits the extensions at the end of a hello, if there are any.
fn each_extension<'a>(
    mut body: Cursor<'a>,
    mut visit: impl FnMut(u16, Cursor<'a>) -> Option<()>,
) -> Option<()> {
    if body.is_empty() {
        return Some(());
    }
    let mut extensions = body.vec16()?;
    while !extensions.is_empty() {
        let kind = extensions.u16()?;
        visit(kind, extensions.vec16()?)?;
    }
    // nothing follows the extensions (RFC 8446 sections 4.1.2 and 4.1.3)
    body.is_empty().then_some(())
}

/// RFC 6066 section 3: a list with one host name in it.
fn read_server_name(mut data: Cursor<'_>) -> Option<Option<String>> {
    let mut names = data.vec16()?;
    while !names.is_empty() {
        let kind = names.u8()?;
        let name = names.vec16()?.0;
        if kind == 0 {
            let clean = name.iter().all(u8::is_ascii_graphic);
            return Some(clean.then(|| String::from_utf8_lossy(name).into_owned()));
        }
    }
    Some(None)
}

/// RFC 7301 section 3.1.
pub(super) fn read_protocols(mut data: Cursor<'_>) -> Option<Vec<Vec<u8>>> {
    let mut names = data.vec16()?;
    let mut protocols = Vec::new();
    while !names.is_empty() {
        protocols.push(names.vec8()?.0.to_vec());
    }
    Some(protocols)
}
