//! The use that a client makes of a response that it has stored (RFC 9111). Must not know how one
//! is stored.

use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What a client with a stored response sends for the same URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CacheUse {
    /// The request as it is.
    Off,
    /// The entity tag of the stored response in `If-None-Match` (RFC 9111 section 4.3.1).
    Revalidate,
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

impl CacheUse {
    /// The word on the command line and in axes.
    pub fn as_str(self) -> &'static str {
        match self {
            CacheUse::Off => "off",
            CacheUse::Revalidate => "revalidate",
        }
    }
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
