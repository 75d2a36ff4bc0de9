//! Keys from secrets: the PRF of TLS 1.2 (RFC 5246 section 5) and HKDF-Expand-Label of TLS 1.3 (RFC 8446 section 7.1).

use aws_lc_rs::{hkdf, hmac};

use super::suite::{Bulk, Hash, Suite};

/// The key material of one direction in TLS 1.2.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) mac: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) iv: Vec<u8>,
}

/// The key block of TLS 1.2 (RFC 5246 section 6.3): the client's part and the server's.
pub(super) fn expand_master(
    suite: Suite,
    master: &[u8],
    client_random: &[u8; 32],
    server_random: &[u8; 32],
) -> (Block, Block) {
    let (mac, key, iv) = match suite.bulk {
        Bulk::Gcm(key) => (0, key, 4),
        Bulk::ChaCha20Poly1305 => (0, 32, 12),
        Bulk::Cbc(key, mac) => (mac.len(), key, 0),
    };
    let seed = [b"key expansion", server_random.as_slice(), client_random].concat();
    let material = prf(suite.hash, master, &seed, 2 * (mac + key + iv));
    let mut rest = material.as_slice();
    let mut take = |len: usize| {
        let (taken, after) = rest.split_at(len);
        rest = after;
        taken.to_vec()
    };
    let (client_mac, server_mac) = (take(mac), take(mac));
    let (client_key, server_key) = (take(key), take(key));
    let (client_iv, server_iv) = (take(iv), take(iv));
    (
        Block {
            mac: client_mac,
            key: client_key,
            iv: client_iv,
        },
        Block {
            mac: server_mac,
            key: server_key,
            iv: server_iv,
        },
    )
}

/// P_hash over a seed that has its label in front.
fn prf(hash: Hash, secret: &[u8], seed: &[u8], len: usize) -> Vec<u8> {
    let key = hmac::Key::new(hash.hmac(), secret);
    let mut out = Vec::new();
    let mut a = hmac::sign(&key, seed);
    while out.len() < len {
        out.extend_from_slice(hmac::sign(&key, &[a.as_ref(), seed].concat()).as_ref());
        a = hmac::sign(&key, a.as_ref());
    }
    out.truncate(len);
    out
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
    // only lengths that no label here has are refused
    debug_assert!(expanded.is_ok());
    out
}

/// The nonce of a record or packet: the IV, XOR its number (RFC 8446 section 5.3, RFC 9001 section 5.3).
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
