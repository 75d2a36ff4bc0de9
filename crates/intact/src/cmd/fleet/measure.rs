//! What a worker does for a message: a bench of one variant in one round, or a check.

mod bench;
mod check;

use crate::cmd::head::of_words;
use crate::interrupt::Interrupt;
use intact_fleet::{Kind, Measure, Measured, Message, RowFiles, Then, Trouble};
use intact_ledger::{Run, Vantage};

/// Measures as a message's target says.
pub(super) struct Measurer {
    pub(super) interrupt: Interrupt,
}

impl Measure for Measurer {
    fn measure(&mut self, message: &Message, rows: &mut RowFiles) -> Result<Measured, Trouble> {
        match message.recipe.target.measure {
            Kind::Bench => bench::measure(message, rows, &self.interrupt),
            Kind::Check => check::measure(message, rows, &self.interrupt),
        }
    }
}

/// The head of a message's ledger.
fn head(message: &Message) -> Run {
    let words = std::slice::from_ref(&message.id);
    of_words("fleet", Vantage::Client, jiff::Timestamp::now(), words)
}

/// Another delivery would fail in the same way.
fn pointless(error: &dyn std::fmt::Display) -> Trouble {
    Trouble {
        words: error.to_string(),
        then: Then::GivenUp,
    }
}

/// What went wrong is the worker's and may not be the next one's.
fn again(error: &dyn std::fmt::Display) -> Trouble {
    Trouble {
        words: error.to_string(),
        then: Then::Again,
    }
}

/// The worker was told to end: the message is as if it had not been taken.
fn unless_interrupted(interrupt: &Interrupt) -> Result<(), Trouble> {
    match interrupt.signal() {
        None => Ok(()),
        Some(_) => Err(Trouble {
            words: "interrupted".to_owned(),
            then: Then::Untouched,
        }),
    }
}
