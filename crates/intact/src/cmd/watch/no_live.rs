//! The live view of a build without the feature `live`, and of systems without Unix terminals:
//! there is none, and starting it is an error.

use crate::cmd::missing_feature;
use anyhow::bail;
use intact_ledger::{Event, Sink};
use intact_traffic::ObservedFacts;
use intact_watch::Terminal;
use std::convert::Infallible;
use std::sync::Arc;

/// No view.
pub(crate) struct LiveView(Infallible);

impl LiveView {
    /// Fails: this build has no view.
    pub(crate) fn start(_subject: &str) -> anyhow::Result<LiveView> {
        bail!(missing_feature::NO_LIVE_VIEW)
    }

    /// The terminal that the program is to have.
    pub(crate) fn terminal(&self) -> Arc<Terminal> {
        match self.0 {}
    }

    /// Takes events and facts.
    pub(crate) fn reporter(&self) -> Reporter {
        match self.0 {}
    }

    /// Gives the terminal back.
    pub(crate) fn finish(self) {
        match self.0 {}
    }
}

/// Takes events and facts.
pub(crate) struct Reporter(Infallible);

impl Reporter {
    /// Updates the rates and the facts.
    pub(crate) fn tick(&mut self, _facts: impl FnOnce() -> ObservedFacts) {
        match self.0 {}
    }
}

impl Sink for Reporter {
    fn record(&mut self, _event: Event<'_>) {
        match self.0 {}
    }
}
