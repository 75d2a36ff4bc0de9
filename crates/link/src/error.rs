//! Why there is no link, with the remedy.

use crate::step::LinkStep;
use std::io;

/// Why there is no link, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The system forbids it.
    #[error("cannot create a link here: {step}: {source}{}", .remedy.as_ref().map_or(String::new(), |way| format!("\n{way}")))]
    Forbidden {
        /// What was forbidden.
        step: LinkStep,
        /// What the kernel said.
        source: io::Error,
        /// What would allow it, where it is known.
        remedy: Option<String>,
    },
    /// The system forbids that programs get another name server.
    #[error("programs cannot get another name server here: {step}: {error}{}", .remedy.as_ref().map_or(String::new(), |way| format!("\n{way}")))]
    Resolver {
        /// What was forbidden.
        step: LinkStep,
        /// What the kernel said.
        error: io::Error,
        /// What would allow it, where it is known.
        remedy: Option<String>,
    },
    /// Another system than Linux.
    #[error("links need Linux; in a container: docker run --privileged")]
    Platform,
    /// The helper process could not be started.
    #[error("cannot start the process that keeps a link: {0}")]
    Helper(io::Error),
    /// The link's own processes ended before their time.
    #[error(
        "the link's own processes have ended (killed, or out of memory?): results of commands on this link are not reliable"
    )]
    Ended,
}
