//! What was read of the inputs of an audit. Must not read them.

use serde::Serialize;

/// What was read of one input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InputFacts {
    /// The file's name.
    pub name: String,
    /// Its format.
    pub format: String,
    /// What it consists of, in the plural.
    pub unit: String,
    /// How many of them were read.
    pub read: u64,
    /// How many of them had no use.
    pub skipped: u64,
    /// Bytes, after decompression.
    pub bytes: u64,
    /// By what evidence connections were distinguished; absent where the format leaves no choice.
    pub evidence: Option<String>,
    /// Lines for a server's configuration that make its log more useful.
    pub advice: Vec<String>,
}
