//! The parts of a response that the ledger does not record. They are never written unredacted,
//! because they may hold secrets.

use intact_ledger::Protocol;

/// Limit of fields per response.
const MOST_FIELDS: usize = 128;
/// Limit of a field's value in bytes.
const LONGEST_VALUE: usize = 1024;

/// Version, persistence and fields of a response.
#[derive(Clone, Debug, Default)]
pub struct ResponseInfo {
    /// The version in the status line.
    pub response_version: Option<Protocol>,
    /// The final status.
    pub status: Option<u16>,
    /// Whether the response announces that the connection stays open (RFC 9112 section 9.3).
    pub keeps: bool,
    fields: Vec<(String, String)>,
}

impl ResponseInfo {
    /// A response whose status and fields are still to come.
    pub(super) fn begun(version: Protocol, keeps: bool) -> ResponseInfo {
        ResponseInfo {
            response_version: Some(version),
            keeps,
            ..ResponseInfo::default()
        }
    }

    /// Adds a field. A field above the limit is dropped, and a long value is cut.
    pub fn note(&mut self, name: &[u8], value: &[u8]) {
        if self.fields.len() < MOST_FIELDS {
            let value = &value[..value.len().min(LONGEST_VALUE)];
            self.fields.push((
                String::from_utf8_lossy(name).to_ascii_lowercase(),
                String::from_utf8_lossy(value).into_owned(),
            ));
        }
    }

    /// The first field of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All fields of this name.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.fields
            .iter()
            .filter(move |(own, _)| own == name)
            .map(|(_, value)| &**value)
    }

    /// All fields, names in lower case.
    pub fn fields(&self) -> &[(String, String)] {
        &self.fields
    }
}
