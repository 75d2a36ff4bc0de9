//! The record layer (RFC 8446 section 5.1): the bytes of one direction to records, for any split.
//!
//! A record that is complete in the input is borrowed from it. Nothing is decrypted.

use super::error::Error;
use crate::ParseStep;

/// The content type in a record's header. In TLS 1.3 all encrypted records have `ApplicationData`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ContentType {
    /// Keys change (TLS 1.2), or no effect (TLS 1.3, for middleboxes).
    ChangeCipherSpec = 20,
    /// An alert.
    Alert = 21,
    /// Handshake messages.
    Handshake = 22,
    /// Application data, or anything in TLS 1.3.
    ApplicationData = 23,
    /// Heartbeat (RFC 6520).
    Heartbeat = 24,
}

impl ContentType {
    pub(super) fn parse(byte: u8) -> Option<Self> {
        Some(match byte {
            20 => Self::ChangeCipherSpec,
            21 => Self::Alert,
            22 => Self::Handshake,
            23 => Self::ApplicationData,
            24 => Self::Heartbeat,
            _ => return None,
        })
    }
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The content type in the header.
    pub content: ContentType,
    /// The five bytes of the header, which authenticated encryption covers.
    pub header: [u8; 5],
    /// The bytes after the header, encrypted or not.
    pub payload: &'a [u8],
}

/// The longest payload of a record: 2^14 bytes and the expansion of TLS 1.2 (RFC 5246 section
/// 6.2.3).
const MAX_PAYLOAD: usize = 16_384 + 2_048;
const HEADER_LEN: usize = 5;

/// Reads the records that one side sends.
#[derive(Debug, Default)]
pub struct RecordReader {
    /// The start of an incomplete record.
    held: Vec<u8>,
    /// The last record that arrived in pieces; its event borrows it.
    whole: Vec<u8>,
    failed: Option<Error>,
}

impl RecordReader {
    /// Whether no record is incomplete.
    pub(super) fn is_between_records(&self) -> bool {
        self.held.is_empty() && self.failed.is_none()
    }

    /// Consumes part of the input and returns its event. Call again with the rest until it returns
    /// no event.
    pub fn read<'a>(&'a mut self, input: &'a [u8]) -> Result<ParseStep<Record<'a>>, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let held = self.held.len();
        let there = held + input.len();
        let mut header = [0; HEADER_LEN];
        for (to, from) in header.iter_mut().zip(self.held.iter().chain(input)) {
            *to = *from;
        }
        let (content, total) = match parse_header(header, there) {
            Ok(Some((content, len))) if there >= HEADER_LEN + len => (content, HEADER_LEN + len),
            Ok(_) => {
                self.held.extend_from_slice(input);
                return Ok(ParseStep {
                    consumed: input.len(),
                    event: None,
                });
            }
            Err(error) => {
                self.failed = Some(error);
                return Err(error);
            }
        };
        let consumed = total - held;
        let record = if held == 0 {
            &input[..total]
        } else {
            self.held.extend_from_slice(&input[..consumed]);
            std::mem::swap(&mut self.held, &mut self.whole);
            self.held.clear();
            &self.whole
        };
        Ok(ParseStep {
            consumed,
            event: Some(Record {
                content,
                header,
                payload: &record[HEADER_LEN..],
            }),
        })
    }
}

/// Refuses a header as soon as its first bytes are invalid; `None` while it is incomplete.
fn parse_header(
    header: [u8; HEADER_LEN],
    there: usize,
) -> Result<Option<(ContentType, usize)>, Error> {
    if there == 0 {
        return Ok(None);
    }
    let content = ContentType::parse(header[0]).ok_or(Error::NotTls(header[0]))?;
    if there > 1 && header[1] != 3 {
        return Err(Error::NotTls(header[1]));
    }
    if there < HEADER_LEN {
        return Ok(None);
    }
    let len = u16::from_be_bytes([header[3], header[4]]);
    if usize::from(len) > MAX_PAYLOAD {
        return Err(Error::RecordTooLong(len));
    }
    Ok(Some((content, usize::from(len))))
}
