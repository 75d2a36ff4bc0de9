//! An answer that makes its connection useless, in the ledger's kinds.

use ledger::Failure;
use std::sync::Arc;
use wire::h2::hpack;
use wire::{h2, http1};

/// Why a connection is of no more use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The kind.
    pub kind: Failure,
    /// What was wrong, for a person.
    pub words: Arc<str>,
}

impl Broken {
    /// Bytes that no standard allows.
    pub fn malformed(words: &str) -> Broken {
        Broken {
            kind: Failure::Malformed,
            words: words.into(),
        }
    }

    fn new(too_large: bool, error: &dyn std::error::Error) -> Broken {
        Broken {
            kind: if too_large {
                Failure::TooLarge
            } else {
                Failure::Malformed
            },
            words: error.to_string().into(),
        }
    }
}

impl From<http1::Error> for Broken {
    fn from(error: http1::Error) -> Broken {
        let too_large = matches!(
            error,
            http1::Error::TooLong { .. } | http1::Error::TooManyInterim { .. }
        );
        Broken::new(too_large, &error)
    }
}

impl From<h2::Error> for Broken {
    fn from(error: h2::Error) -> Broken {
        Broken::new(matches!(error, h2::Error::BlockTooLong { .. }), &error)
    }
}

impl From<hpack::Error> for Broken {
    fn from(error: hpack::Error) -> Broken {
        Broken::new(matches!(error, hpack::Error::ListTooLong { .. }), &error)
    }
}
