//! SETTINGS (RFC 9114 section 7.2.4, RFC 9204 section 5).

use super::error::Error;
use crate::quic::long_header::varint;
use crate::tls::Cursor;

/// A setting's identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Setting {
    /// QPACK_MAX_TABLE_CAPACITY: bytes of the dynamic table that the peer's encoder may use.
    QpackMaxTableCapacity = 0x1,
    /// MAX_FIELD_SECTION_SIZE: bytes of a header section that the sender accepts.
    MaxFieldSectionSize = 0x6,
    /// QPACK_BLOCKED_STREAMS: streams that may wait for the dynamic table.
    QpackBlockedStreams = 0x7,
}

/// Settings of HTTP/2 that HTTP/3 forbids (RFC 9114 section 7.2.4.1).
const FORBIDDEN: [u64; 4] = [0x2, 0x3, 0x4, 0x5];
/// Limit of the settings in one frame; far fewer have a meaning.
const MOST: usize = 64;

/// The identifiers and values of a SETTINGS frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsPayload<'a>(pub(super) &'a [u8]);

impl Iterator for SettingsPayload<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let mut rest = Cursor(self.0);
        let pair = (varint(&mut rest)?, varint(&mut rest)?);
        self.0 = rest.0;
        Some(pair)
    }
}

impl SettingsPayload<'_> {
    /// Whether the payload consists of whole pairs, none forbidden and none twice.
    pub(super) fn check(self) -> Result<(), Error> {
        let mut rest = self;
        let mut seen: Vec<u64> = Vec::new();
        for (id, _) in rest.by_ref() {
            if FORBIDDEN.contains(&id) {
                return Err(Error::Settings("a setting of HTTP/2"));
            }
            if seen.contains(&id) {
                return Err(Error::Settings("a setting twice"));
            }
            if seen.len() == MOST {
                return Err(Error::Settings("more than 64 settings"));
            }
            seen.push(id);
        }
        match rest.0 {
            [] => Ok(()),
            _ => Err(Error::Layout("SETTINGS")),
        }
    }
}
