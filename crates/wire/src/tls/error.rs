//! Why bytes are not TLS.

/// Why a reader refused its input; final for its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No record starts with this byte: plain text on a TLS port, or a stream joined within a
    /// record.
    #[error(
        "expected the start of a TLS record, found byte 0x{0:02x}: another protocol, or a stream joined within a record"
    )]
    NotTls(u8),
    /// A record longer than 2^14 bytes and the expansion that any version allows.
    #[error("TLS record of {0} bytes")]
    RecordTooLong(u16),
    /// A handshake message is longer than the limit.
    #[error("handshake message of {length} bytes, {limit} kept at most")]
    MessageTooLong {
        /// The announced length, in bytes.
        length: u32,
        /// The limit, in bytes.
        limit: u32,
    },
    /// A hello is too short or contradicts its own lengths.
    #[error("malformed {0}")]
    Malformed(&'static str),
}
