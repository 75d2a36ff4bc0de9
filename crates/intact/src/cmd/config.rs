//! What a command is a function of. Must not read the command line, except where [`Config`] is made
//! of parsed options.

use super::run_header;
use serde::{Deserialize, Serialize};

/// All that a command depends on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Config<A> {
    /// The options.
    pub(crate) options: A,
    /// The command line, as the run records it.
    pub(crate) words: Vec<String>,
}

impl<A> From<A> for Config<A> {
    fn from(options: A) -> Config<A> {
        Config {
            options,
            words: run_header::words(),
        }
    }
}
