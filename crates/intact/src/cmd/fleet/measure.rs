//! What a worker does for a message: a bench of one variant in one round, or a check.

mod bench;
mod check;

use crate::cmd::run_header::of_words;
use crate::interrupt::Interrupt;
use intact_fleet::{FailureAction, Kind, Measure, MeasureError, Measured, Message, RowFiles};
use intact_ledger::{Producer, Run, Vantage};

/// Measures as a message's target says.
pub(super) struct Measurer {
    pub(super) interrupt: Interrupt,
}

impl Measure for Measurer {
    fn measure(
        &mut self,
        message: &Message,
        rows: &mut RowFiles,
    ) -> Result<Measured, MeasureError> {
        match message.job.target.measure {
            Kind::Bench => bench::measure(message, rows, &self.interrupt),
            Kind::Check => check::measure(message, rows, &self.interrupt),
        }
    }
}

/// The head of a message's ledger.
fn head(message: &Message) -> Run {
    let words = std::slice::from_ref(&message.id);
    of_words(
        Producer::Fleet,
        Vantage::Client,
        jiff::Timestamp::now(),
        words,
    )
}

/// Another delivery would fail in the same way.
fn pointless(error: &dyn std::fmt::Display) -> MeasureError {
    MeasureError {
        words: error.to_string(),
        then: FailureAction::GivenUp,
    }
}

/// What went wrong is the worker's and may not be the next one's.
fn again(error: &dyn std::fmt::Display) -> MeasureError {
    MeasureError {
        words: error.to_string(),
        then: FailureAction::Again,
    }
}

/// The worker has to end: the message is as if it had not been taken.
fn unless_interrupted(interrupt: &Interrupt) -> Result<(), MeasureError> {
    match interrupt.signal() {
        None => Ok(()),
        Some(_) => Err(MeasureError {
            words: "interrupted".to_owned(),
            then: FailureAction::Untouched,
        }),
    }
}
