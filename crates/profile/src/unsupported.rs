//! Systems without sampling.

use crate::{Profile, ProfileError, SampleTarget};
use std::io;

/// A running sampler.
pub struct Sampling(std::convert::Infallible);

impl Sampling {
    /// Returns [`ProfileError::Unsupported`].
    pub fn start(_subjects: &[SampleTarget]) -> Result<Sampling, ProfileError> {
        Err(ProfileError::Unsupported)
    }

    /// Never called: there is no sampler on this system.
    pub fn mark(&self, _part: u32) {
        match self.0 {}
    }

    /// Never called: there is no sampler on this system.
    pub fn finish(self) -> Profile {
        match self.0 {}
    }
}

/// Returns an error of kind `Unsupported`.
pub fn flame_graph(_: &[(&str, &Profile)], _: impl io::Write) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
