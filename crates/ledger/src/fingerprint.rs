//! Recognising the same request twice without keeping it.

use hmac::{Hmac, Mac};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// The first 16 bytes of an HMAC-SHA-256 (RFC 2104) over method, full target and body, in hexadecimal when written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Fingerprint([u8; 16]);

/// The key of one run. It is made by the producer, lives in memory and is never written.
pub struct FingerprintKey(Hmac<Sha256>);

impl FingerprintKey {
    /// A key from 32 random bytes.
    pub fn new(random: &[u8; 32]) -> FingerprintKey {
        FingerprintKey(Hmac::new_from_slice(random).expect("HMAC takes a key of any length"))
    }

    /// The fingerprint of one request; the parts are length-prefixed so that they cannot run into each other.
    pub fn of(&self, method: &str, target: &str, body: &[u8]) -> Fingerprint {
        let mut mac = self.0.clone();
        for part in [method.as_bytes(), target.as_bytes(), body] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        let digest = mac.finalize().into_bytes();
        let mut first = [0; 16];
        first.copy_from_slice(&digest[..16]);
        Fingerprint(first)
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> String {
        use std::fmt::Write;
        let mut hex = String::with_capacity(32);
        for byte in fingerprint.0 {
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = &'static str;

    fn try_from(hex: String) -> Result<Fingerprint, Self::Error> {
        let wrong = "a fingerprint is 32 hexadecimal digits";
        if hex.len() != 32 || !hex.is_ascii() {
            return Err(wrong);
        }
        let mut bytes = [0; 16];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).map_err(|_| wrong)?;
        }
        Ok(Fingerprint(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_request_has_the_same_fingerprint_under_one_key_only() {
        let key = FingerprintKey::new(&[1; 32]);
        let other = FingerprintKey::new(&[2; 32]);
        assert_eq!(key.of("POST", "/a", b"x"), key.of("POST", "/a", b"x"));
        assert_ne!(key.of("POST", "/a", b"x"), other.of("POST", "/a", b"x"));
        assert_ne!(key.of("POST", "/a", b"x"), key.of("POST", "/ax", b""));
    }

    #[test]
    fn a_fingerprint_reads_back() {
        let one = FingerprintKey::new(&[1; 32]).of("GET", "/", b"");
        let json = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<Fingerprint>(&json).unwrap(), one);
        assert!(serde_json::from_str::<Fingerprint>("\"zz\"").is_err());
    }
}
