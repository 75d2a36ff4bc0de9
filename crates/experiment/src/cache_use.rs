//! The use that a client makes of a response that it has stored (RFC 9111). Must not know how one
//! is stored.

use intact_ledger::kinds;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

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

/// A word that is no use of a cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheUseError {
    /// Nothing would be sent.
    #[error(
        "a fresh response needs no request, so there is nothing to measure; revalidate names the max-age of the server"
    )]
    Fresh,
    /// It has no meaning.
    #[error("{0:?} is not off or revalidate")]
    Unknown(String),
}

impl FromStr for CacheUse {
    type Err = CacheUseError;

    fn from_str(word: &str) -> Result<CacheUse, CacheUseError> {
        match word {
            "off" => Ok(CacheUse::Off),
            "revalidate" => Ok(CacheUse::Revalidate),
            "fresh" => Err(CacheUseError::Fresh),
            other => Err(CacheUseError::Unknown(other.to_owned())),
        }
    }
}
