//! Decrypts the records of one direction with one set of keys, and counts them.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use aws_lc_rs::cipher::{AES_128, AES_256, DecryptingKey, DecryptionContext, UnboundCipherKey};
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;

use super::ccm::Ccm;
use super::schedule::{Block, expand_label, expand_master, nonce};
use super::suite::{Bulk, Hash, Suite};
use crate::Side;
use crate::tls::{ClientHello, ServerHello};

/// The keys of one direction, and the number of the next record.
pub(super) struct RecordDecryptor {
    cipher: Cipher,
    sequence: u64,
}

enum Cipher {
    /// TLS 1.2 AES-GCM (RFC 5288) and AES-CCM (RFC 6655): the record has eight bytes of the nonce.
    ExplicitNonce {
        key: AeadKey,
        salt: [u8; 4],
    },
    /// TLS 1.2 ChaCha20 (RFC 7905): the nonce is IV xor sequence.
    ImplicitNonce {
        key: AeadKey,
        iv: [u8; 12],
    },
    /// TLS 1.3: the same, with the record's header as additional data.
    Tls13 {
        key: AeadKey,
        iv: [u8; 12],
    },
    Cbc(Box<Cbc>),
}

enum AeadKey {
    Native(LessSafeKey),
    Ccm(Box<Ccm>),
}

/// CBC up to TLS 1.2 (RFC 5246 section 6.2.3.2), with the MAC inside the encryption or (RFC 7366)
/// outside.
struct Cbc {
    key: DecryptingKey,
    mac: hmac::Key,
    mac_len: usize,
    encrypt_then_mac: bool,
    /// In TLS 1.0 the last block of a record is the IV of the next one (RFC 2246 section 6.2.3.2).
    /// Later versions send the IV with the record.
    chained_iv: Option<[u8; BLOCK_LEN]>,
}

/// The inputs of the key derivation up to TLS 1.2, in addition to the master secret.
pub(super) struct Handshake12 {
    suite: Suite,
    version: u16,
    client_random: [u8; 32],
    server_random: [u8; 32],
    encrypt_then_mac: bool,
}

impl Handshake12 {
    pub(super) fn of(suite: Suite, client: &ClientHello, server: &ServerHello) -> Self {
        Self {
            suite,
            version: server.version(),
            client_random: client.random,
            server_random: server.random,
            encrypt_then_mac: server.encrypt_then_mac,
        }
    }

    /// The keys of one direction; `None` if the material does not fit the suite.
    pub(super) fn opener(&self, master: &[u8], side: Side) -> Option<RecordDecryptor> {
        let randoms = (&self.server_random, &self.client_random);
        let block = expand_master(self.suite, self.version, master, randoms, side);
        RecordDecryptor::tls12(self.suite, &block, self.encrypt_then_mac)
    }
}

const TAG_LEN: usize = 16;
/// The content type of application data.
const APPLICATION_DATA: u8 = 23;
const BLOCK_LEN: usize = 16;

impl RecordDecryptor {
    /// The keys up to TLS 1.2; `None` if the material does not fit the suite, which only a wrong
    /// key log can cause.
    fn tls12(suite: Suite, block: &Block, encrypt_then_mac: bool) -> Option<Self> {
        let cipher = match suite.bulk {
            Bulk::Gcm(_) | Bulk::Ccm(..) => Cipher::ExplicitNonce {
                key: AeadKey::new(suite.bulk, &block.key)?,
                salt: block.iv.as_slice().try_into().ok()?,
            },
            Bulk::ChaCha20Poly1305 => Cipher::ImplicitNonce {
                key: AeadKey::new(suite.bulk, &block.key)?,
                iv: block.iv.as_slice().try_into().ok()?,
            },
            Bulk::Cbc(len, hash) => {
                let key =
                    UnboundCipherKey::new(if len == 16 { &AES_128 } else { &AES_256 }, &block.key)
                        .ok()?;
                Cipher::Cbc(Box::new(Cbc {
                    key: DecryptingKey::cbc(key).ok()?,
                    mac: hmac::Key::new(hash.hmac(), &block.mac),
                    mac_len: hash.len(),
                    encrypt_then_mac,
                    chained_iv: block.iv.as_slice().try_into().ok(),
                }))
            }
        };
        Some(Self {
            cipher,
            sequence: 0,
        })
    }

    /// The keys of a traffic secret (RFC 8446 section 7.3).
    pub(super) fn tls13(suite: Suite, secret: &[u8]) -> Option<Self> {
        let key_len = match suite.bulk {
            Bulk::Gcm(len) | Bulk::Ccm(len, _) => len,
            Bulk::ChaCha20Poly1305 => 32,
            Bulk::Cbc(..) => return None,
        };
        let secret = suite.hash.secret(secret);
        let key = AeadKey::new(suite.bulk, &expand_label(&secret, "key", key_len))?;
        let iv = expand_label(&secret, "iv", 12).try_into().ok()?;
        Some(Self {
            cipher: Cipher::Tls13 { key, iv },
            sequence: 0,
        })
    }

    /// Decrypts the next record into `out`. Returns the inner content type and the length; `None`,
    /// without counting the record, if these keys do not decrypt it.
    pub(super) fn open(
        &mut self,
        header: [u8; 5],
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<(u8, usize)> {
        out.clear();
        let content = header[0];
        let sequence = self.sequence;
        let opened = match &mut self.cipher {
            Cipher::ExplicitNonce { key, salt } => {
                let (explicit, sealed) = payload.split_first_chunk::<8>()?;
                let mut nonce = [0; 12];
                nonce[..4].copy_from_slice(salt);
                nonce[4..].copy_from_slice(explicit);
                out.extend_from_slice(sealed);
                let aad = additional(sequence, header, sealed.len().checked_sub(key.tag_len())?);
                (content, key.open(nonce, &aad, out)?)
            }
            Cipher::ImplicitNonce { key, iv } => {
                out.extend_from_slice(payload);
                let aad = additional(sequence, header, payload.len().checked_sub(key.tag_len())?);
                (content, key.open(nonce(*iv, sequence), &aad, out)?)
            }
            Cipher::Tls13 { key, iv } => {
                out.extend_from_slice(payload);
                let len = key.open(nonce(*iv, sequence), &header, out)?;
                // the last byte that is not padding is the real content type (RFC 8446 section 5.2)
                let last = out[..len].iter().rposition(|&byte| byte != 0)?;
                (out[last], last)
            }
            Cipher::Cbc(cbc) => (
                content,
                cbc.open(|len| additional(sequence, header, len), payload, out)?,
            ),
        };
        self.sequence += 1;
        Some(opened)
    }
}

impl RecordDecryptor {
    /// The next record with this application data (RFC 8446 section 5.2), not counted; `None`
    /// except in TLS 1.3, and with AES-CCM.
    pub(super) fn seal(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let Cipher::Tls13 {
            key: AeadKey::Native(key),
            iv,
        } = &self.cipher
        else {
            return None;
        };
        let mut sealed = bytes.to_vec();
        sealed.push(APPLICATION_DATA);
        let len = u16::try_from(sealed.len() + TAG_LEN).ok()?.to_be_bytes();
        let header = [APPLICATION_DATA, 3, 3, len[0], len[1]];
        let nonce = Nonce::assume_unique_for_key(nonce(*iv, self.sequence));
        key.seal_in_place_append_tag(nonce, Aad::from(header), &mut sealed)
            .ok()?;
        Some([&header[..], &sealed].concat())
    }
}

/// The data that TLS 1.2 authenticates in addition to the content: sequence, type, version, length.
fn additional(sequence: u64, header: [u8; 5], len: usize) -> [u8; 13] {
    let mut aad = [0; 13];
    aad[..8].copy_from_slice(&sequence.to_be_bytes());
    aad[8..11].copy_from_slice(&header[..3]);
    aad[11..].copy_from_slice(&(len as u16).to_be_bytes());
    aad
}

impl AeadKey {
    fn new(bulk: Bulk, key: &[u8]) -> Option<Self> {
        let algorithm = match bulk {
            Bulk::Gcm(16) => &AES_128_GCM,
            Bulk::Gcm(_) => &AES_256_GCM,
            Bulk::ChaCha20Poly1305 => &CHACHA20_POLY1305,
            Bulk::Ccm(_, tag_len) => {
                return Ccm::new(key, tag_len).map(|ccm| Self::Ccm(Box::new(ccm)));
            }
            Bulk::Cbc(..) => return None,
        };
        let key = UnboundKey::new(algorithm, key).ok()?;
        Some(Self::Native(LessSafeKey::new(key)))
    }

    fn tag_len(&self) -> usize {
        match self {
            Self::Native(_) => TAG_LEN,
            Self::Ccm(ccm) => ccm.tag_len(),
        }
    }

    /// Decrypts content with its tag in place, and returns its length; `None` if the tag does not
    /// match.
    fn open(&self, nonce: [u8; 12], aad: &[u8], sealed: &mut [u8]) -> Option<usize> {
        match self {
            Self::Native(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let plain = key.open_in_place(nonce, Aad::from(aad), sealed);
                plain.ok().map(|plain| plain.len())
            }
            Self::Ccm(ccm) => ccm.open(nonce, aad, sealed),
        }
    }
}

impl Cbc {
    /// Decrypts into `out` and returns the length. `additional` returns the authenticated data for
    /// content of that length.
    fn open(
        &mut self,
        additional: impl Fn(usize) -> [u8; 13],
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let sealed = if self.encrypt_then_mac {
            let (sealed, tag) = payload.split_at(payload.len().checked_sub(self.mac_len)?);
            self.verify(&additional, sealed, tag)?;
            sealed
        } else {
            payload
        };
        let (iv, blocks) = match self.chained_iv {
            Some(iv) => (iv, sealed),
            None => {
                let (iv, blocks) = sealed.split_first_chunk::<BLOCK_LEN>()?;
                (*iv, blocks)
            }
        };
        if blocks.is_empty() || !blocks.len().is_multiple_of(BLOCK_LEN) {
            return None;
        }
        out.extend_from_slice(blocks);
        self.key
            .decrypt(out, DecryptionContext::Iv128(FixedLength::from(iv)))
            .ok()?;
        // n bytes of padding, each n, and n itself; not in constant time, because no peer waits for
        // a result
        let padding = usize::from(*out.last()?) + 1;
        let unpadded = out.len().checked_sub(padding)?;
        if out[unpadded..]
            .iter()
            .any(|&byte| usize::from(byte) + 1 != padding)
        {
            return None;
        }
        let mut len = unpadded;
        if !self.encrypt_then_mac {
            len = unpadded.checked_sub(self.mac_len)?;
            self.verify(&additional, &out[..len], &out[len..unpadded])?;
        }
        if let Some(iv) = &mut self.chained_iv {
            *iv = *blocks.last_chunk()?;
        }
        Some(len)
    }

    fn verify(
        &self,
        additional: impl Fn(usize) -> [u8; 13],
        content: &[u8],
        tag: &[u8],
    ) -> Option<()> {
        let mut context = hmac::Context::with_key(&self.mac);
        context.update(&additional(content.len()));
        context.update(content);
        (context.sign().as_ref() == tag).then_some(())
    }
}

/// The secret after a KeyUpdate (RFC 8446 section 7.2).
pub(super) fn next_secret(hash: Hash, secret: &[u8]) -> Vec<u8> {
    expand_label(&hash.secret(secret), "traffic upd", hash.len())
}
