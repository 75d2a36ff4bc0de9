//! Joins handshake messages over records (RFC 8446 section 4): a message may span records, and a
//! record may hold many.

use super::error::Error;

/// Handshake types (RFC 8446 section 4, RFC 5246 section 7.4).
pub(super) mod kind {
    pub(crate) const CLIENT_HELLO: u8 = 1;
    pub(crate) const SERVER_HELLO: u8 = 2;
    pub(crate) const NEW_SESSION_TICKET: u8 = 4;
    pub(crate) const ENCRYPTED_EXTENSIONS: u8 = 8;
    pub(crate) const CERTIFICATE: u8 = 11;
    pub(crate) const SERVER_KEY_EXCHANGE: u8 = 12;
    pub(crate) const SERVER_HELLO_DONE: u8 = 14;
    pub(crate) const FINISHED: u8 = 20;
    pub(crate) const KEY_UPDATE: u8 = 24;
}

/// Limit of a message in bytes. Certificate chains are the longest messages, and real ones are much
/// shorter.
const MAX_MESSAGE: u32 = 256 * 1024;

/// The bytes of incomplete messages.
#[derive(Debug, Default)]
pub(super) struct Messages {
    held: Vec<u8>,
}

impl Messages {
    /// Passes every complete message to `visit`, as type and body.
    pub(super) fn read(
        &mut self,
        payload: &[u8],
        mut visit: impl FnMut(u8, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.held.extend_from_slice(payload);
        let mut at = 0;
        while let Some(&[kind, a, b, c]) = self.held[at..].first_chunk() {
            let length = u32::from_be_bytes([0, a, b, c]);
            if length > MAX_MESSAGE {
                return Err(Error::MessageTooLong {
                    length,
                    limit: MAX_MESSAGE,
                });
            }
            let Some(body) = self.held[at + 4..].get(..length as usize) else {
                break;
            };
            visit(kind, body)?;
            at += 4 + length as usize;
        }
        self.held.drain(..at);
        Ok(())
    }

    /// Whether no message is incomplete.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_span_records_and_share_them() {
        let bytes = [1, 0, 0, 2, b'a', b'b', 2, 0, 0, 0, 3, 0, 0, 1, b'c'];
        for split in 0..bytes.len() {
            let mut messages = Messages::default();
            let mut seen = Vec::new();
            for piece in [&bytes[..split], &bytes[split..]] {
                messages
                    .read(piece, |kind, body| {
                        seen.push((kind, body.to_vec()));
                        Ok(())
                    })
                    .unwrap();
            }
            assert_eq!(seen, [(1, b"ab".to_vec()), (2, vec![]), (3, b"c".to_vec())]);
            assert!(messages.is_empty());
        }
    }
}
