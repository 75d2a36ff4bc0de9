//! What was read of each input of an audit: facts that stand beside those of the connections.

use schemars::JsonSchema;
use serde::Serialize;

/// What was read of one input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InputFacts {
    /// The file's name.
    pub name: String,
    /// What it was taken for.
    pub format: String,
    /// What it consists of, in the plural.
    pub unit: String,
    /// How many of them were read.
    pub read: u64,
    /// How many of them said nothing that could be used.
    pub skipped: u64,
    /// Bytes, after decompression.
    pub bytes: u64,
    /// By what evidence connections were told apart, in words; absent where the format leaves no choice.
    pub evidence: Option<String>,
    /// Lines for a server's configuration that make its log tell more, ready to paste.
    pub advice: Vec<String>,
}
