//! The properties of a cipher suite for decryption (IANA registry "TLS Cipher Suites").

use aws_lc_rs::{hkdf, hmac};

use crate::tls::suite_name;

/// How records are protected, and the hash of the key derivation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Suite {
    pub(super) bulk: Bulk,
    pub(super) hash: Hash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bulk {
    /// AES-GCM with a key of this length in bytes.
    Gcm(usize),
    /// AES-CCM with a key and a tag of these lengths in bytes.
    Ccm(usize, usize),
    ChaCha20Poly1305,
    /// AES-CBC with a key of this length in bytes, and HMAC.
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

    /// A secret of TLS 1.3, which only uses SHA-256 and SHA-384.
    pub(super) fn secret(self, bytes: &[u8]) -> hkdf::Prk {
        let algorithm = match self {
            Self::Sha384 => hkdf::HKDF_SHA384,
            Self::Sha256 | Self::Sha1 => hkdf::HKDF_SHA256,
        };
        hkdf::Prk::new_less_safe(algorithm, bytes)
    }

    pub(super) fn len(self) -> usize {
        self.hmac().tag_len()
    }
}

impl Suite {
    /// The suites with AES or ChaCha20, with any key exchange; `None` for others.
    pub(super) fn find(number: u16) -> Option<Self> {
        let name = suite_name(number);
        let cipher = name.split_once("_WITH_").map(|(_, cipher)| cipher);
        let (bulk, hash) = match cipher.or_else(|| name.strip_prefix("TLS_"))? {
            "AES_128_GCM_SHA256" => (Bulk::Gcm(16), Hash::Sha256),
            "AES_256_GCM_SHA384" => (Bulk::Gcm(32), Hash::Sha384),
            "CHACHA20_POLY1305_SHA256" => (Bulk::ChaCha20Poly1305, Hash::Sha256),
            "AES_128_CCM" | "AES_128_CCM_SHA256" => (Bulk::Ccm(16, 16), Hash::Sha256),
            "AES_128_CCM_8" | "AES_128_CCM_8_SHA256" => (Bulk::Ccm(16, 8), Hash::Sha256),
            "AES_256_CCM" => (Bulk::Ccm(32, 16), Hash::Sha256),
            "AES_256_CCM_8" => (Bulk::Ccm(32, 8), Hash::Sha256),
            "AES_128_CBC_SHA" => (Bulk::Cbc(16, Hash::Sha1), Hash::Sha256),
            "AES_256_CBC_SHA" => (Bulk::Cbc(32, Hash::Sha1), Hash::Sha256),
            "AES_128_CBC_SHA256" => (Bulk::Cbc(16, Hash::Sha256), Hash::Sha256),
            "AES_256_CBC_SHA256" => (Bulk::Cbc(32, Hash::Sha256), Hash::Sha256),
            "AES_256_CBC_SHA384" => (Bulk::Cbc(32, Hash::Sha384), Hash::Sha384),
            _ => return None,
        };
        Some(Self { bulk, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_shows_how_records_are_protected() {
        let find = |number| Suite::find(number).map(|suite| suite.bulk);
        assert_eq!(find(0x1301), Some(Bulk::Gcm(16)));
        assert_eq!(find(0xc030), Some(Bulk::Gcm(32)));
        assert_eq!(find(0xc0ae), Some(Bulk::Ccm(16, 8)));
        assert_eq!(find(0x1304), Some(Bulk::Ccm(16, 16)));
        assert_eq!(find(0x002f), Some(Bulk::Cbc(16, Hash::Sha1)));
        assert_eq!(find(0xccaa), Some(Bulk::ChaCha20Poly1305));
        for unread in [0x000a, 0x0041, 0xc05c, 0x00ff] {
            assert_eq!(find(unread), None);
        }
    }
}
