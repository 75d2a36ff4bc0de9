//! `--expect` of `bench`, `check` and `intact URL`: defined once.

use intact_ledger::ExpectedStatus;
use serde::{Deserialize, Serialize};

/// The option.
#[derive(Clone, Copy, Debug, clap::Args, Serialize, Deserialize)]
pub(crate) struct Expect {
    /// Statuses that count as ok: any, 2xx, 404 [default: any, but 4xx and 5xx alone exit 3]
    #[arg(long, value_name = "STATUS", help_heading = "Request")]
    pub(crate) expect: Option<ExpectedStatus>,
}
