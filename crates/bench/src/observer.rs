//! What a bench shows to its caller while it runs, and why it could not run.

use crate::config::ConfigError;
use crate::io_backend::IoUnavailable;
use intact_ledger::{Row, Tally};
use std::time::Duration;

/// Why a bench could not be run: we could not observe.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The configuration cannot be run.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The back end that was named is not to be had.
    #[error(transparent)]
    Io(#[from] IoUnavailable),
    /// The event loop failed.
    #[error("event loop: {0}")]
    Loop(#[from] std::io::Error),
    /// An engine thread ended by a bug.
    #[error("an engine thread ended early: this is a bug of intact, please report it")]
    Thread,
}

/// Where a run is.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// The round, from 1; 0 is the preflight.
    pub round: u32,
    /// The number of rounds.
    pub rounds: u32,
    /// The variant being measured.
    pub variant: u32,
    /// Runs of a variant in a round that are over, and all of them.
    pub turns: (u32, u32),
    /// Exchanges so far.
    pub exchanges: u64,
    /// Estimated time until the end: from the rounds so far, or from the configured time.
    pub left: Option<Duration>,
}

/// Takes what a bench records, as it happens.
pub trait BenchObserver {
    /// Rows for the ledger and for exports.
    fn rows(&mut self, rows: &[Row]);
    /// The tally so far, at the end of each round.
    fn round_over(&mut self, _tally: &Tally) {}
    /// A variant begins to run in a round; 0 is the preflight.
    fn turn(&mut self, _variant: u32, _round: u32) {}
    /// The step that follows, where a run has steps instead of rounds.
    fn describe(&mut self, _step: &str) {}
    /// Something to know before the load begins.
    fn warn(&mut self, _words: &str) {}
    /// Where the run is, about ten times a second.
    fn tick(&mut self, position: Position);
}
