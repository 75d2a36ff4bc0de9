//! Why nothing could be sampled.

use std::io;

/// Why nothing could be sampled.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The system does not let us: `sysctl kernel.perf_event_paranoid` (2 is enough), or a container's seccomp profile.
    #[error(
        "the system does not allow sampling ({error}): kernel.perf_event_paranoid is {}, 2 or less is needed (or root), and a container profile that lets perf_event_open through",
        .paranoid.as_deref().unwrap_or("unknown")
    )]
    Refused {
        /// What the kernel said.
        error: io::Error,
        /// `kernel.perf_event_paranoid`.
        paranoid: Option<String>,
    },
    /// There is no such process.
    #[error("there is no process {0}: `pgrep NAME` finds its number")]
    NoProcess(u32),
    /// Something of our own failed.
    #[error("sampling: {0}: {1}")]
    Setup(&'static str, io::Error),
    /// Not on this system.
    #[error("sampling needs Linux on x86-64 or aarch64")]
    Unsupported,
}
