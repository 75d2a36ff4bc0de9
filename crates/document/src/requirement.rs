//! What a run is checked against: `keepalive=on: p99 < 50ms`, `avoidable == 0`.
//!
//! ```text
//! requirement = [ selector *( "," selector ) ":" ] metric op value [ unit ]
//! selector    = key "=" ( bare | quoted )        bare: no comma, no quote; quoted: "..." with \" and \\
//!             | "fault" [ "." kind ]
//! op          = "<" | "<=" | ">" | ">=" | "==" | "!="
//! ```
//! The last colon outside quotes ends the selectors, so `host=[::1]:8443: connections <= 4` needs
//! no quotes. One grammar for every command. What cannot be measured never passes. Of the ledger it
//! knows only failures and phases, and no document: each document implements [`MetricSource`].

mod catalogue;
mod evaluate;
mod measured;
mod metric;
mod parse;
mod parse_error;
mod traffic_source;

use std::fmt;
use std::str::FromStr;

pub use catalogue::{
    Document, METRICS, MetricEntry, MetricKey, Parameter, SELECTORS, SelectorEntry,
};
pub use evaluate::{MetricSource, NoData, Outcome, RequirementResult, Subject, Verdict};
pub use intact_units::{Dimension, Unit};
pub use measured::Measured;
pub use metric::{
    ChainMetric, DrainMetric, FaultMetric, FindingSelector, InvocationMetric, LoadMetric, Metric,
    PhaseStatistic, Statistic, StatusSelector, TrafficMetric,
};
pub use parse_error::{ParseError, ParseErrorKind};
pub use traffic_source::TrafficSource;

/// A requirement that was understood. Printing it gives an expression that reads back as the same
/// requirement.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirement {
    selectors: Vec<Selector>,
    entry: &'static MetricEntry,
    metric: Metric,
    op: Op,
    value: Quantity,
}

impl Requirement {
    /// Which subjects it is about; none means all.
    pub fn selectors(&self) -> &[Selector] {
        &self.selectors
    }

    /// What is measured.
    pub fn metric(&self) -> &Metric {
        &self.metric
    }

    /// The row of the catalogue that names the metric.
    pub fn entry(&self) -> &'static MetricEntry {
        self.entry
    }

    /// The metric's name with its parameter, such as `failed.refused`.
    pub fn metric_name(&self) -> String {
        let parameter = self.metric.parameter().unwrap_or_default();
        [self.entry.stem(), &parameter].concat()
    }

    /// How the measured value must stand to [`Self::value`].
    pub fn op(&self) -> Op {
        self.op
    }

    /// What is asked for.
    pub fn value(&self) -> Quantity {
        self.value
    }

    /// Refuses a metric or selector that `document` never has, and a rule that is none of those that
    /// it has (`rules`): an error before the run is better than one after it.
    ///
    /// # Errors
    /// What the document does not have, and which documents have it.
    pub fn check_for(
        &self,
        document: Document,
        rules: impl Fn(Document) -> Vec<&'static str>,
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
        let name = self.metric_name();
        write!(f, "{colon}{name} {} {}", self.op, self.value)
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

/// How a measured value must stand to the one asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
}

impl Op {
    const ALL: [(Self, &'static str); 6] = [
        (Self::AtMost, "<="),
        (Self::AtLeast, ">="),
        (Self::Equal, "=="),
        (Self::Unequal, "!="),
        (Self::Below, "<"),
        (Self::Above, ">"),
    ];

    /// Whether `measured` stands so to `asked`. The two are equal when they differ by no more than
    /// a billionth of the larger, so that 999 of 1,000 meets `>= 99.9%` whatever the rounding.
    pub fn holds(self, measured: f64, asked: f64) -> bool {
        let distance = (measured - asked).abs();
        let equal = distance.is_finite() && distance <= 1e-9 * measured.abs().max(asked.abs());
        match self {
            Self::Below => measured < asked && !equal,
            Self::AtMost => measured <= asked || equal,
            Self::Above => measured > asked && !equal,
            Self::AtLeast => measured >= asked || equal,
            Self::Equal => equal,
            // NaN is not equal to anything, and still meets nothing
            Self::Unequal => !equal && !measured.is_nan(),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = Self::ALL
            .iter()
            .find(|(op, _)| op == self)
            .map_or("", |(_, sign)| sign);
        f.write_str(sign)
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
