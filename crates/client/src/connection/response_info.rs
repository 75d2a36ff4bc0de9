//! The parts of a response that the ledger does not record. They are never written as they are, because they may hold secrets.

use intact_ledger::Protocol;

/// Fields that are kept per response.
const MOST_FIELDS: usize = 128;
/// Bytes that are kept of a field's value.
const LONGEST_VALUE: usize = 1024;

/// Version, persistence and fields of a response.
#[derive(Clone, Debug, Default)]
pub struct ResponseInfo {
    /// The version in the status line.
    pub response_version: Option<Protocol>,
    /// Whether the response leaves the connection open for another exchange, by its own account (RFC 9112 section 9.3).
    pub keeps: bool,
    fields: Vec<(String, String)>,
}

impl ResponseInfo {
    /// Adds a field. A field above the limit is left out, a long value is cut.
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
