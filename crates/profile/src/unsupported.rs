//! Systems without sampling, and builds without the feature `sampling`.

use crate::{Profile, ProfileError, SampleTarget};
use std::io;

/// A running sampler.
pub struct Sampling(std::convert::Infallible);

impl Sampling {
    /// Returns why there is no sampler.
    pub fn start(_subjects: &[SampleTarget]) -> Result<Sampling, ProfileError> {
        Err(match cfg!(feature = "sampling") {
            true => ProfileError::Unsupported,
            false => ProfileError::LeftOut,
        })
    }

    /// Never called: there is no sampler.
    pub fn mark(&self, _part: u32) {
        match self.0 {}
    }

    /// Never called: there is no sampler.
    pub fn finish(self) -> Profile {
        match self.0 {}
    }
}

/// Returns an error of kind `Unsupported`.
pub fn flame_graph(_: &[(&str, &Profile)], _: impl io::Write) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
