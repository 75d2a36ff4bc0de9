//! The transport parameters of a server (RFC 9000 section 18) that a report has.

use super::long_header::varint;
use crate::tls::Cursor;

/// What a server announced. A parameter that it left out has the RFC's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransportParameters {
    /// `max_idle_timeout` in milliseconds; 0: the server announces no limit.
    pub max_idle_timeout_ms: u64,
    /// `initial_max_streams_bidi`: the requests that may be open at once on a new connection.
    pub max_request_streams: u64,
    /// `retry_source_connection_id` is there: the server sent Retry before its handshake.
    pub is_retried: bool,
}

impl TransportParameters {
    /// Reads the extension's value; `None` if it is malformed.
    pub fn read(bytes: &[u8]) -> Option<TransportParameters> {
        let mut found = TransportParameters::default();
        let mut rest = Cursor(bytes);
        while !rest.is_empty() {
            let id = varint(&mut rest)?;
            let len = usize::try_from(varint(&mut rest)?).ok()?;
            let value = rest.bytes(len)?;
            match id {
                0x01 => found.max_idle_timeout_ms = number(value)?,
                0x08 => found.max_request_streams = number(value)?,
                0x10 => found.is_retried = true,
                _ => {}
            }
        }
        Some(found)
    }
}

/// A value that is one number.
fn number(value: &[u8]) -> Option<u64> {
    let mut rest = Cursor(value);
    varint(&mut rest).filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// max_idle_timeout 30,000, initial_max_streams_bidi 100, disable_active_migration, a reserved
    /// parameter.
    const SENT: [u8; 17] = [
        0x01, 4, 0x80, 0, 0x75, 0x30, 0x08, 2, 0x40, 0x64, 0x0c, 0, 0x1b, 3, 1, 2, 3,
    ];

    #[test]
    fn known_parameters_are_read_and_others_are_skipped() {
        let sent = TransportParameters {
            max_idle_timeout_ms: 30_000,
            max_request_streams: 100,
            is_retried: false,
        };
        assert_eq!(TransportParameters::read(&SENT), Some(sent));
        let retried = [&SENT[..], &[0x10, 2, 9, 9]].concat();
        let seen = TransportParameters::read(&retried).unwrap();
        assert!(seen.is_retried);
        assert_eq!(TransportParameters::read(&[]), Some(Default::default()));
    }

    #[test]
    fn a_malformed_extension_has_no_values() {
        // a length beyond the end, a number with a byte more, a number without its last byte
        for bytes in [&[0x01, 9, 1][..], &[0x01, 2, 1, 1], &[0x01, 1, 0x40]] {
            assert_eq!(TransportParameters::read(bytes), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            TransportParameters::read(&bytes);
        }
    }
}
