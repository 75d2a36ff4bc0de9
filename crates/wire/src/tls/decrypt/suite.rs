//! What a cipher suite number means for decryption (IANA registry "TLS Cipher Suites").

use aws_lc_rs::{hkdf, hmac};

/// How records are protected, and the hash that keys are derived with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Suite {
    pub(super) bulk: Bulk,
    pub(super) hash: Hash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bulk {
    /// AES-GCM with a key of that many bytes.
    Gcm(usize),
    ChaCha20Poly1305,
    /// AES-CBC with a key of that many bytes, and HMAC.
    Cbc(usize, Hash),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha256,
    Sha384,
}

impl Hash {
    pub(super) fn hmac(self) -> hmac::Algorithm {
        match self {
            Self::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha384 => hmac::HMAC_SHA384,
        }
    }

    /// A secret of TLS 1.3, which has no hashes but SHA-256 and SHA-384.
    pub(super) fn secret(self, bytes: &[u8]) -> hkdf::Prk {
        let algorithm = match self {
            Self::Sha384 => hkdf::HKDF_SHA384,
            Self::Sha256 | Self::Sha1 => hkdf::HKDF_SHA256,
        };
        hkdf::Prk::new_less_safe(algorithm, bytes)
    }

    pub(super) fn len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
        }
    }
}

impl Suite {
    /// The AES and ChaCha20 suites of TLS 1.2 and 1.3, whatever their key exchange; `None` for all others.
    pub(super) fn find(number: u16) -> Option<Self> {
        use Hash::{Sha1, Sha256, Sha384};
        let (bulk, hash) = match number {
            0x1301 | 0x009c | 0x009e | 0xc02b | 0xc02f => (Bulk::Gcm(16), Sha256),
            0x1302 | 0x009d | 0x009f | 0xc02c | 0xc030 => (Bulk::Gcm(32), Sha384),
            0x1303 | 0xcca8 | 0xcca9 | 0xccaa => (Bulk::ChaCha20Poly1305, Sha256),
            0x002f | 0x0033 | 0xc009 | 0xc013 => (Bulk::Cbc(16, Sha1), Sha256),
            0x0035 | 0x0039 | 0xc00a | 0xc014 => (Bulk::Cbc(32, Sha1), Sha256),
            0x003c | 0x0067 | 0xc023 | 0xc027 => (Bulk::Cbc(16, Sha256), Sha256),
            0x003d | 0x006b => (Bulk::Cbc(32, Sha256), Sha256),
            0xc024 | 0xc028 => (Bulk::Cbc(32, Sha384), Sha384),
            _ => return None,
        };
        Some(Self { bulk, hash })
    }
}
