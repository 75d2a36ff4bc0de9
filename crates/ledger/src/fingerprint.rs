//! Recognises a repeated request without storing it.

use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// The first 16 bytes of an HMAC-SHA-256 (RFC 2104) over method, full target and body; hexadecimal
/// when written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
pub struct Fingerprint(u128);

/// The key of one run. The producer makes it; it is never written.
pub struct FingerprintKey(Hmac<Sha256>);

impl FingerprintKey {
    /// A key from 32 random bytes.
    pub fn new(random: &[u8; 32]) -> FingerprintKey {
        FingerprintKey(Hmac::new_from_slice(random).expect("HMAC takes a key of any length"))
    }

    /// The fingerprint of a request with a complete body.
    pub fn of(&self, method: &str, target: &str, body: &[u8]) -> Fingerprint {
        let mut builder = self.begin(method.as_bytes(), target.as_bytes());
        builder.update(body);
        builder.finish()
    }

    /// A salted hash of a credential or a cookie.
    pub fn hash(&self, secret: &[u8]) -> u64 {
        let mut mac = self.0.clone();
        // no method is as long: it cannot be a fingerprint
        mac.update(&u64::MAX.to_be_bytes());
        mac.update(secret);
        let digest = mac.finalize().into_bytes();
        u64::from_be_bytes(*digest.first_chunk().expect("SHA-256 has 32 bytes"))
    }

    /// Begins the fingerprint of a request whose body arrives in pieces.
    pub fn begin(&self, method: &[u8], target: &[u8]) -> FingerprintBuilder {
        let mut mac = self.0.clone();
        // lengths, so that the parts cannot be confused
        for part in [method, target] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        FingerprintBuilder { mac, body_len: 0 }
    }
}

/// The fingerprint of a request whose body is still arriving. It stores no byte of the body.
pub struct FingerprintBuilder {
    mac: Hmac<Sha256>,
    body_len: u64,
}

impl FingerprintBuilder {
    /// Adds the next bytes of the body.
    pub fn update(&mut self, bytes: &[u8]) {
        self.mac.update(bytes);
        self.body_len += bytes.len() as u64;
    }

    /// Number of bytes of the body so far.
    pub fn body_len(&self) -> u64 {
        self.body_len
    }

    /// The fingerprint of all bytes so far.
    pub fn finish(mut self) -> Fingerprint {
        self.mac.update(&self.body_len.to_be_bytes());
        let digest = self.mac.finalize().into_bytes();
        let first = digest.first_chunk().expect("SHA-256 has 32 bytes");
        Fingerprint(u128::from_be_bytes(*first))
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> String {
        format!("{:032x}", fingerprint.0)
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = &'static str;

    fn try_from(hex: String) -> Result<Fingerprint, Self::Error> {
        match u128::from_str_radix(&hex, 16) {
            Ok(number) if hex.len() == 32 => Ok(Fingerprint(number)),
            _ => Err("a fingerprint is 32 hexadecimal digits"),
        }
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
    fn the_pieces_of_a_body_do_not_matter() {
        let key = FingerprintKey::new(&[1; 32]);
        let mut builder = key.begin(b"POST", b"/a");
        builder.update(b"first, ");
        builder.update(b"");
        builder.update(b"second");
        assert_eq!(builder.body_len(), 13);
        assert_eq!(builder.finish(), key.of("POST", "/a", b"first, second"));
    }

    #[test]
    fn a_fingerprint_reads_back() {
        let one = FingerprintKey::new(&[1; 32]).of("GET", "/", b"");
        let json = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<Fingerprint>(&json).unwrap(), one);
        assert!(serde_json::from_str::<Fingerprint>("\"zz\"").is_err());
    }
}
