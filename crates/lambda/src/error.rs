//! Why a function could not be run at all. The outcome of an invocation is never an error.

use std::ffi::OsString;
use std::io;

/// Why a function could not be run.
#[derive(Debug, thiserror::Error)]
pub enum LambdaError {
    /// There is no such program: exit code 127.
    #[error("{}: not found: is it in PATH?", .0.display())]
    NotFound(OsString),
    /// It exists and cannot be run: exit code 126.
    #[error("{}: cannot be run: {source}", .program.display())]
    NotRunnable {
        /// What was to be run.
        program: OsString,
        /// What the system said.
        source: io::Error,
    },
    /// The Runtime API cannot be offered.
    #[error("the Runtime API cannot listen on 127.0.0.1: {0}")]
    Listen(io::Error),
    /// The environment cannot be frozen or thawed.
    #[error(
        "the function cannot be frozen: {0}; --freeze-with signals stops its processes one by one, --freeze off does without"
    )]
    Freezer(io::Error),
    /// It cannot be given a share of the processor.
    #[error("--memory-cpu: the function cannot be put into a control group: {0}")]
    Cpu(io::Error),
    /// Its connections cannot be followed here: exit code 4.
    #[error("{0}; --watch off runs the function without its connections being seen")]
    Refused(String),
    /// Not on this system: exit code 4.
    #[error(
        "running a function needs Linux; run it in a Linux container: docker run -it --security-opt seccomp=unconfined IMAGE intact lambda -- CMD"
    )]
    Unsupported,
    /// What follows its connections failed.
    #[error("the function's connections cannot be followed (--watch off does without): {0}")]
    Watcher(String),
    /// The freeze hook failed.
    #[error("the link around the frozen function: {0}")]
    Gate(io::Error),
}
