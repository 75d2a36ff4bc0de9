//! Derives keys from secrets: the PRF of TLS 1.0 (RFC 2246 section 5) and of TLS 1.2 (RFC 5246
//! section 5). For TLS 1.3 it has HKDF-Expand-Label (RFC 8446 section 7.1).

use ::hmac::Mac;
use aws_lc_rs::{hkdf, hmac};

use super::suite::{Bulk, Suite};
use crate::Side;
use crate::tls::{TLS10, TLS12};

/// The key material of one direction up to TLS 1.2.
pub(super) struct Block {
    pub(super) mac: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) iv: Vec<u8>,
}

/// A side's part of the key block up to TLS 1.2 (RFC 5246 section 6.3). `randoms` are those of the
/// server and the client.
pub(super) fn expand_master(
    suite: Suite,
    version: u16,
    master: &[u8],
    randoms: (&[u8; 32], &[u8; 32]),
    side: Side,
) -> Block {
    let (mac, key, iv) = match suite.bulk {
        Bulk::Gcm(key) | Bulk::Ccm(key, _) => (0, key, 4),
        Bulk::ChaCha20Poly1305 => (0, 32, 12),
        Bulk::Cbc(key, mac) if version <= TLS10 => (mac.len(), key, 16),
        Bulk::Cbc(key, mac) => (mac.len(), key, 0),
    };
    let seed = [b"key expansion", randoms.0.as_slice(), randoms.1].concat();
    let len = 2 * (mac + key + iv);
    let material = if version < TLS12 {
        old_prf(master, &seed, len)
    } else {
        p_hash(|parts| sign(suite.hash.hmac(), master, parts), &seed, len)
    };
    // each part of the client is followed by that of the server
    let part = |start: usize, len: usize| material[start + len * side as usize..][..len].to_vec();
    Block {
        mac: part(0, mac),
        key: part(2 * mac, key),
        iv: part(2 * (mac + key), iv),
    }
}

/// The PRF before TLS 1.2: P_MD5 with the first half of the secret, XOR P_SHA1 with the second.
fn old_prf(secret: &[u8], seed: &[u8], len: usize) -> Vec<u8> {
    let half = secret.len().div_ceil(2);
    let (first, second) = (&secret[..half], &secret[secret.len() - half..]);
    let mut out = p_hash(|parts| sign_md5(first, parts), seed, len);
    let sha1 = hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY;
    let other = p_hash(|parts| sign(sha1, second, parts), seed, len);
    for (byte, other) in out.iter_mut().zip(other) {
        *byte ^= other;
    }
    out
}

/// P_hash over a seed that starts with its label. `sign` is the HMAC of two concatenated parts.
fn p_hash(sign: impl Fn([&[u8]; 2]) -> Vec<u8>, seed: &[u8], len: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut a = sign([seed, &[]]);
    while out.len() < len {
        out.extend(sign([&a, seed]));
        a = sign([&a, &[]]);
    }
    out.truncate(len);
    out
}

fn sign(algorithm: hmac::Algorithm, secret: &[u8], parts: [&[u8]; 2]) -> Vec<u8> {
    let key = hmac::Key::new(algorithm, secret);
    hmac::sign(&key, &parts.concat()).as_ref().to_vec()
}

/// HMAC with MD5, which the other library lacks.
fn sign_md5(secret: &[u8], parts: [&[u8]; 2]) -> Vec<u8> {
    let Ok(mut mac) = <::hmac::Hmac<md5::Md5> as Mac>::new_from_slice(secret) else {
        // HMAC accepts keys of any length
        return Vec::new();
    };
    parts.into_iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

/// HKDF-Expand-Label with an empty context; `len` is at most 255.
pub(crate) fn expand_label(secret: &hkdf::Prk, label: &str, len: usize) -> Vec<u8> {
    const PREFIX: &[u8] = b"tls13 ";
    let head = [0, len as u8, (PREFIX.len() + label.len()) as u8];
    let info = [&head, PREFIX, label.as_bytes(), &[0]];
    let mut out = vec![0; len];
    let expanded = secret
        .expand(&info, Len(len))
        .and_then(|okm| okm.fill(&mut out));
    // only lengths that no label has here are refused
    debug_assert!(expanded.is_ok());
    out
}

/// The nonce of a record or packet: the IV, XOR its number (RFC 8446 section 5.3, RFC 9001 section
/// 5.3).
pub(crate) fn nonce(iv: [u8; 12], number: u64) -> [u8; 12] {
    let mut nonce = iv;
    for (byte, number) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
        *byte ^= number;
    }
    nonce
}

struct Len(usize);

impl hkdf::KeyType for Len {
    fn len(&self) -> usize {
        self.0
    }
}
