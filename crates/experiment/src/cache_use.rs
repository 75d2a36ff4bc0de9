//! The use that a client makes of a response that it has stored (RFC 9111). Must not know how one
//! is stored.

use crate::axis::AxisValue;
use intact_ledger::kinds;
use serde::{Deserialize, Serialize};

kinds! {
    /// What a client with a stored response sends for the same URL.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum CacheUse, as_str {
        /// The request as it is.
        Off = "off",
        /// The entity tag of the stored response in `If-None-Match` (RFC 9111 section 4.3.1).
        Revalidate = "revalidate",
    }
}

impl AxisValue for CacheUse {
    const WANTED: &'static str = "off or revalidate";

    fn read(word: &str) -> Result<CacheUse, String> {
        match word {
            "off" => Ok(CacheUse::Off),
            "revalidate" => Ok(CacheUse::Revalidate),
            "fresh" => Err("a fresh response needs no request, so there is nothing to measure; revalidate names the max-age of the server".to_owned()),
            other => Err(format!("{other:?} is not off or revalidate")),
        }
    }

    fn word(&self) -> String {
        self.to_string()
    }
}
