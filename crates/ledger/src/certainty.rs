//! Whether a figure was measured or inferred.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The certainty of a record. Inferred figures are printed with `~` and the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Measured: observed on the wire, or done by `intact` itself.
    #[default]
    Exact,
    /// Inferred, for this reason.
    Inferred(Arc<str>),
}

impl Certainty {
    /// Whether this is the default, so that writers can leave it out.
    pub fn is_exact(&self) -> bool {
        matches!(self, Certainty::Exact)
    }
}
