//! Systems on which nothing can be sampled.

use crate::{Profile, ProfileError};
use std::io;

/// Whom to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SampleTarget {
    /// What this thread starts from now on.
    Children,
    /// These processes and what they start.
    Processes(Vec<u32>),
}

/// A running sampler.
pub struct Sampling(std::convert::Infallible);

impl Sampling {
    /// Tells that it cannot be done here.
    pub fn start(_subjects: &[SampleTarget]) -> Result<Sampling, ProfileError> {
        Err(ProfileError::Unsupported)
    }

    /// What was sampled.
    pub fn finish(self) -> Profile {
        match self.0 {}
    }
}

/// Draws nothing: there is no profile on this system.
pub fn flame_graph(_: &Profile, _: &str, _: impl io::Write) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
