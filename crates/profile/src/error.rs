//! Why sampling failed.

use std::io;

/// Why sampling failed.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Permission denied: `sysctl kernel.perf_event_paranoid` (2 is enough), or a container's
    /// seccomp profile.
    #[error(
        "the system does not allow sampling ({error}): kernel.perf_event_paranoid is {}. Set it to 2 or less, or run as root. In a container, allow perf_event_open in the seccomp profile",
        .paranoid.as_deref().unwrap_or("unknown")
    )]
    Refused {
        /// The error of the kernel.
        error: io::Error,
        /// Value of `kernel.perf_event_paranoid`.
        paranoid: Option<String>,
    },
    /// No process has this id.
    #[error("there is no process {0}: `pgrep NAME` finds its number")]
    NoProcess(u32),
    /// A step of the setup failed.
    #[error("sampling: {0}: {1}")]
    Setup(&'static str, io::Error),
    /// The system is not supported.
    #[error("sampling needs Linux on x86-64 or aarch64")]
    Unsupported,
    /// The feature `sampling` is off.
    #[error(
        "this intact was built without its sampler: build it with `--features profile`, a default"
    )]
    LeftOut,
}
