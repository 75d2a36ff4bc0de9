//! A step of making a link that failed, inside the processes that make it.

use super::message::Refusal;
use crate::step::Step;
use std::io;

/// Which step, and how.
pub(super) struct Failed(pub(super) Step, pub(super) io::Error);

impl From<Failed> for Refusal {
    fn from(Failed(step, error): Failed) -> Refusal {
        Refusal {
            step,
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

/// Names the step that an error belongs to.
pub(super) trait During<T> {
    fn during(self, step: Step) -> Result<T, Failed>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, step: Step) -> Result<T, Failed> {
        self.map_err(|error| Failed(step, error.into()))
    }
}
