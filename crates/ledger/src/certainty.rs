//! Whether a figure was seen or worked out.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How a record came to be known. What is inferred is printed with `~` and its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Seen on the wire or done by us.
    #[default]
    Exact,
    /// Worked out, for the reason given.
    Inferred(Arc<str>),
}

impl Certainty {
    /// Whether this is the default, so that writers can leave it out.
    pub fn is_exact(&self) -> bool {
        matches!(self, Certainty::Exact)
    }
}
