//! What a run is checked against: `keepalive=on: p99 < 50ms`, `avoidable == 0`.
//!
//! ```text
//! requirement = [ selector *( "," selector ) ":" ] metric op value [ unit ]
//! selector    = key "=" ( bare | quoted )        bare: no comma, no quote; quoted: "..." with \" and \\
//!             | "fault" [ "." kind ]
//! op          = "<" | "<=" | ">" | ">=" | "==" | "!="
//! ```
//! The last colon outside quotes ends the selectors, so `host=[::1]:8443: connections <= 4` needs
//! no quotes. One grammar for every command. What is not known never passes. Of the ledger it knows
//! only failures and phases, and no document: each document implements [`Facts`](crate::Facts).

mod catalogue;
mod evaluate;
mod parse;
mod parse_error;

use std::fmt;
use std::str::FromStr;

pub use catalogue::{Better, DocumentKind, FIGURES, Figure, Parameter, SELECTORS, SelectorEntry};
pub use evaluate::{Outcome, RequirementResult, SIDE, Verdict, evaluate};
pub use intact_reading::Op;
pub use intact_units::{Dimension, Unit};
pub use parse_error::{ParseError, ParseErrorKind};

/// A requirement that was understood. Printing it gives an expression that reads back as the same
/// requirement.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirement {
    selectors: Vec<Selector>,
    figure: &'static Figure,
    /// The figure's name with its parameter.
    name: String,
    op: Op,
    value: Quantity,
    allow_empty: bool,
}

impl Requirement {
    /// The same, which a figure without any traffic meets where `allow_empty`.
    pub fn allowing_empty(self, allow_empty: bool) -> Requirement {
        Requirement {
            allow_empty,
            ..self
        }
    }

    /// Which subjects it is about; none means all.
    pub fn selectors(&self) -> &[Selector] {
        &self.selectors
    }

    /// The row of the table of figures.
    pub fn figure(&self) -> &'static Figure {
        self.figure
    }

    /// The figure's name with its parameter, such as `failed.refused`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the measured value must stand to [`Self::value`].
    pub fn op(&self) -> Op {
        self.op
    }

    /// What is asked for.
    pub fn value(&self) -> Quantity {
        self.value
    }

    /// Refuses a metric or selector that `document` never has, and a rule that is none of those
    /// that it has (`rules`): an error before the run is better than one after it.
    ///
    /// # Errors
    /// What the document does not have, and which documents have it.
    pub fn check_for(
        &self,
        document: DocumentKind,
        rules: impl Fn(DocumentKind) -> Vec<&'static str>,
    ) -> Result<(), ParseError> {
        parse::check_for(self, document, rules)
    }
}

impl FromStr for Requirement {
    type Err = ParseError;

    fn from_str(expression: &str) -> Result<Self, ParseError> {
        parse::parse(expression)
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, selector) in self.selectors.iter().enumerate() {
            write!(f, "{}{selector}", if at == 0 { "" } else { "," })?;
        }
        let colon = if self.selectors.is_empty() { "" } else { ": " };
        write!(f, "{colon}{} {} {}", self.name, self.op, self.value)
    }
}

/// One condition on the subjects, such as `keepalive=on`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    entry: &'static SelectorEntry,
    value: String,
}

impl Selector {
    /// What it selects by.
    pub fn key(&self) -> &'static str {
        self.entry.key
    }

    /// The value that a subject must have, compared without regard to ASCII case; empty for any of
    /// a fixed set.
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.entry.values.is_empty() {
            let dot = if self.value.is_empty() { "" } else { "." };
            return write!(f, "{}{dot}{}", self.entry.key, self.value);
        }
        if parse::is_bare(&self.value) {
            return write!(f, "{}={}", self.entry.key, self.value);
        }
        let escaped = self.value.replace('\\', "\\\\").replace('"', "\\\"");
        write!(f, "{}=\"{escaped}\"", self.entry.key)
    }
}

/// A number with its unit, as it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity {
    number: f64,
    unit: Unit,
}

impl Quantity {
    /// In base units: nanoseconds, shares of 1, per second, bytes, or a plain number.
    pub fn base(self) -> f64 {
        self.unit.base_of(self.number)
    }

    /// The unit that it was written in.
    pub fn unit(self) -> Unit {
        self.unit
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, self.unit)
    }
}
