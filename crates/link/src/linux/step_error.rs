//! A step of making a link that failed, inside the processes that make it.

use super::message::Refusal;
use crate::step::LinkStep;
use std::io;

/// Which step, and how.
pub(super) struct StepError(pub(super) LinkStep, pub(super) io::Error);

impl From<StepError> for Refusal {
    fn from(StepError(step, error): StepError) -> Refusal {
        Refusal {
            step,
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

/// Names the step that an error belongs to.
pub(super) trait During<T> {
    fn during(self, step: LinkStep) -> Result<T, StepError>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, step: LinkStep) -> Result<T, StepError> {
        self.map_err(|error| StepError(step, error.into()))
    }
}
