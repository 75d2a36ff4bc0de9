//! Quantities: durations, sizes, rates, shares and counts, parsed and formatted in one place.
//!
//! [`duration`], [`size`], [`share`], [`rate`] and [`bit_rate`] read options, plans and link specs.
//! [`number`], [`plural`] and [`date`] format the figures of pages and messages, so a sentence and
//! its table show the same digits. [`foreign_text`] escapes text from outside. [`suggest`] finds
//! the known name that a misspelt one is nearest to. Must not know a document, a command or a
//! ledger.

pub mod bit_rate;
pub mod date;
mod dimension;
pub mod duration;
pub mod foreign_text;
pub mod number;
pub mod plural;
mod quantity;
pub mod rate;
pub mod share;
pub mod size;
pub mod suggest;

pub use dimension::{Dimension, Unit};
pub use quantity::Quantity;

/// Parses digits with at most one point: no sign, no exponent, no infinity.
fn plain_number(digits: &str) -> Option<f64> {
    let is_plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if is_plain { digits.parse().ok() } else { None }
}
