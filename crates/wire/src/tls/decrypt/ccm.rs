//! AES-CCM (RFC 3610) with nonces of 12 bytes, as TLS uses it (RFC 6655): decryption only.
//!
//! It need not run in constant time, because no peer waits for a result.

use aws_lc_rs::cipher::{AES_128, AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;

const BLOCK_LEN: usize = 16;
/// Bytes of a block that hold the length of the content.
const LENGTH_LEN: usize = 3;
type Block = [u8; BLOCK_LEN];

/// A key.
pub(super) struct Ccm {
    counter: EncryptingKey,
    mac: EncryptingKey,
    tag_len: usize,
}

impl Ccm {
    /// A key of 16 or 32 bytes. `tag_len` is 16, or 8 in suites whose name ends in `_8`.
    pub(super) fn new(key: &[u8], tag_len: usize) -> Option<Ccm> {
        let algorithm = if key.len() == 16 { &AES_128 } else { &AES_256 };
        let bound = || UnboundCipherKey::new(algorithm, key);
        Some(Ccm {
            counter: EncryptingKey::ctr(bound().ok()?).ok()?,
            mac: EncryptingKey::cbc(bound().ok()?).ok()?,
            tag_len,
        })
    }

    pub(super) fn tag_len(&self) -> usize {
        self.tag_len
    }

    /// Decrypts content with its tag in place, and returns its length; `None` if the tag does not
    /// match.
    pub(super) fn open(&self, nonce: [u8; 12], aad: &[u8], sealed: &mut [u8]) -> Option<usize> {
        let len = sealed.len().checked_sub(self.tag_len)?;
        // the key stream starts with the block that encrypts the tag
        let mut stream = vec![0; BLOCK_LEN + len];
        stream[BLOCK_LEN..].copy_from_slice(&sealed[..len]);
        let first = block(LENGTH_LEN as u8 - 1, nonce, 0);
        let context = EncryptionContext::Iv128(FixedLength::from(first));
        self.counter.less_safe_encrypt(&mut stream, context).ok()?;
        let (cover, plain) = stream.split_at(BLOCK_LEN);
        let mac = self.mac(nonce, aad, plain)?;
        let tag = &sealed[len..];
        let is_intact = (0..self.tag_len).all(|at| tag[at] == mac[at] ^ cover[at]);
        sealed[..len].copy_from_slice(plain);
        is_intact.then_some(len)
    }

    /// The CBC-MAC over the first block, the additional data and the content, each padded with
    /// zeros.
    fn mac(&self, nonce: [u8; 12], aad: &[u8], plain: &[u8]) -> Option<Block> {
        let flags = 0x40 | (((self.tag_len - 2) / 2) << 3) as u8 | (LENGTH_LEN as u8 - 1);
        let mut blocks = block(flags, nonce, plain.len()).to_vec();
        // the additional data of TLS has 5 or 13 bytes
        blocks.extend_from_slice(&u16::try_from(aad.len()).ok()?.to_be_bytes());
        blocks.extend_from_slice(aad);
        fill_up(&mut blocks);
        blocks.extend_from_slice(plain);
        fill_up(&mut blocks);
        let context = EncryptionContext::Iv128(FixedLength::from([0; BLOCK_LEN]));
        self.mac.less_safe_encrypt(&mut blocks, context).ok()?;
        blocks.last_chunk().copied()
    }
}

/// Flags, nonce and a number of three bytes.
fn block(flags: u8, nonce: [u8; 12], number: usize) -> Block {
    let mut block = [flags; BLOCK_LEN];
    block[1..13].copy_from_slice(&nonce);
    block[13..].copy_from_slice(&(number as u32).to_be_bytes()[1..]);
    block
}

fn fill_up(blocks: &mut Vec<u8>) {
    blocks.resize(blocks.len().next_multiple_of(BLOCK_LEN), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<char> = text.chars().collect();
        let byte = |pair: &[char]| pair.iter().collect::<String>();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(&byte(pair), 16).unwrap())
            .collect()
    }

    /// NIST SP 800-38C example 3, and output of OpenSSL with tags of 8 bytes.
    #[test]
    fn test_vectors_open() {
        let key = hex("404142434445464748494a4b4c4d4e4f");
        let nonce = hex("101112131415161718191a1b").try_into().unwrap();
        let aad = hex("000102030405060708090a0b0c0d0e0f10111213");
        let plain = hex("202122232425262728292a2b2c2d2e2f3031323334353637");
        let sealed = hex("e3b201a9f5b71a7a9b1ceaeccd97e70b6176aad9a4428aa5484392fbc1b09951");
        let ccm = Ccm::new(&key, 8).unwrap();
        let mut out = sealed.clone();
        assert_eq!(ccm.open(nonce, &aad, &mut out), Some(24));
        assert_eq!(out[..24], plain);
        for broken in [0, 31] {
            let mut out = sealed.clone();
            out[broken] ^= 1;
            assert_eq!(ccm.open(nonce, &aad, &mut out), None);
        }
        assert_eq!(ccm.open(nonce, &aad, &mut [0; 7]), None);
    }
}
