//! Which back end the engine uses: readiness (epoll), or completions (io_uring) where Linux allows it.

use crate::config::Coalesce;
use intact_ledger::EngineIo;

/// The choice of the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoChoice {
    /// io_uring where it was measured to need less CPU time and is allowed here, else epoll.
    #[default]
    Auto,
    /// epoll, or the poll of another system.
    Epoll,
    /// io_uring, or an error.
    Uring,
}

/// io_uring was named, and is not to be had.
#[derive(Debug, thiserror::Error)]
#[error("--io uring: {reason}; use --io auto or --io epoll")]
pub struct IoUnavailable {
    reason: String,
}

/// A back end of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IoBackend {
    /// `mio`.
    Readiness,
    /// io_uring.
    #[cfg(target_os = "linux")]
    Uring,
}

impl IoBackend {
    /// The back end of a choice, and its record for the run. Without responses in batches both back ends need the same CPU
    /// time (docs/internals/engine.md), and epoll has been in use for longer.
    pub(crate) fn choose(
        choice: IoChoice,
        coalesce: Coalesce,
    ) -> Result<(IoBackend, EngineIo), IoUnavailable> {
        let readiness = |reason: Option<String>| {
            let backend = READINESS.to_owned();
            Ok((IoBackend::Readiness, EngineIo { backend, reason }))
        };
        match choice {
            IoChoice::Epoll => return readiness(None),
            IoChoice::Auto if coalesce != Coalesce::Always => {
                return readiness(Some(NO_GAIN.to_owned()));
            }
            IoChoice::Auto | IoChoice::Uring => {}
        }
        match (uring(), choice) {
            (Ok(uring), _) => {
                let backend = "io_uring".to_owned();
                let record = EngineIo {
                    backend,
                    reason: None,
                };
                Ok((uring, record))
            }
            (Err(reason), IoChoice::Uring) => Err(IoUnavailable { reason }),
            (Err(reason), _) => readiness(Some(reason)),
        }
    }
}

/// Why `auto` does not use io_uring.
const NO_GAIN: &str = "io_uring needs less CPU time only with --coalesce on";

/// The name of the readiness of this system.
const READINESS: &str = if cfg!(target_os = "linux") {
    "epoll"
} else if cfg!(unix) {
    "kqueue"
} else {
    "poll"
};

/// io_uring, or why there is none here.
#[cfg(target_os = "linux")]
fn uring() -> Result<IoBackend, String> {
    match intact_sys::uring::Ring::check() {
        Ok(()) => Ok(IoBackend::Uring),
        Err(reason) => Err(reason.to_string()),
    }
}

/// Only Linux has it.
#[cfg(not(target_os = "linux"))]
fn uring() -> Result<IoBackend, String> {
    Err("only Linux has io_uring".to_owned())
}
