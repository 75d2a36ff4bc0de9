//! Why an expression is no requirement, shown with a caret under the fault.

use intact_ledger::Failure;
use intact_units::suggest;
use std::fmt;
use std::ops::Range;

use super::catalogue::{FIGURES, OTHER_NAMES, SELECTORS};
use super::{Dimension, DocumentKind};

/// What is wrong with an expression, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct ParseError {
    expression: String,
    span: Range<usize>,
    kind: ParseErrorKind,
}

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ParseErrorKind {
    /// There is no metric of this name.
    #[error("unknown metric `{name}`; {}", metric_suggestion(name, nearest.as_deref()))]
    UnknownMetric {
        /// What was written.
        name: String,
        /// The known name that is nearest to it, if one is near.
        nearest: Option<String>,
    },
    /// There is no selector of this key.
    #[error("unknown selector `{key}`{}", did_you_mean(nearest.as_deref()))]
    UnknownSelector {
        /// What was written.
        key: String,
        /// The known key that is nearest to it, if one is near.
        nearest: Option<String>,
    },
    /// A selector has no such value.
    #[error("unknown {key} `{value}`{}", did_you_mean_or(nearest.as_deref(), known))]
    UnknownValue {
        /// The selector.
        key: String,
        /// What was written.
        value: String,
        /// The known value that is nearest to it, if one is near.
        nearest: Option<&'static str>,
        /// All values.
        known: &'static [&'static str],
    },
    /// A selector is not `key=value`.
    #[error(
        "a selector is written key=value, such as keepalive=on; quote a value with a comma or a quote in it"
    )]
    NotASelector,
    /// The metric is missing.
    #[error("a metric is missing here, such as p99")]
    NoMetric,
    /// The operator is missing or is none.
    #[error("an operator belongs here: <, <=, >, >=, == or !=")]
    NotAnOperator,
    /// The number is missing or is none.
    #[error("a number belongs here: {}", dimension.accepted())]
    NotANumber {
        /// What the metric is measured in.
        dimension: Dimension,
    },
    /// The unit is unknown or belongs to another kind of metric.
    #[error("`{unit}` does not fit {metric}, which takes {}", dimension.accepted())]
    WrongUnit {
        /// What was written.
        unit: String,
        /// The metric.
        metric: String,
        /// What the metric is measured in.
        dimension: Dimension,
    },
    /// A time or an amount of data was given without a unit.
    #[error("{metric} takes {}", dimension.accepted())]
    NoUnit {
        /// The metric.
        metric: String,
        /// What the metric is measured in.
        dimension: Dimension,
    },
    /// A share above 1, most likely a percentage without its sign.
    #[error("a share is at most 1; for a percentage write {0}%")]
    ShareAboveOne(
        /// The number that was written.
        f64,
    ),
    /// A part of 1 is required of a count.
    #[error(
        "`{metric}` is a count; for a share write `{share} {op} {number}`, or a percentage: `{metric} {op} {}%`",
        (number * 1e4).round() / 100.0
    )]
    ShareOfCount {
        /// The count.
        metric: String,
        /// The metric of its share.
        share: &'static str,
        /// The operator that was written.
        op: String,
        /// The number that was written.
        number: f64,
    },
    /// The document has no rule of this id.
    #[error("`intact {}` has no rule `{id}`{}", document.command(), did_you_mean(nearest.as_deref()))]
    UnknownRule {
        /// What was written.
        id: String,
        /// The document that was asked.
        document: DocumentKind,
        /// The rule of the document that is nearest to it, if one is near.
        nearest: Option<String>,
    },
    /// The metric or selector exists, but not where this is asked.
    #[error("`{name}` is not known to `intact {}`; it is to {}", document.command(), commands(elsewhere))]
    NotInDocument {
        /// The metric or selector.
        name: String,
        /// The document that was asked.
        document: DocumentKind,
        /// The documents that have it.
        elsewhere: Vec<DocumentKind>,
    },
}

impl ParseError {
    pub(super) fn new(expression: &str, span: Range<usize>, kind: ParseErrorKind) -> Self {
        Self {
            expression: expression.to_owned(),
            span,
            kind,
        }
    }

    /// What is wrong.
    pub fn kind(&self) -> &ParseErrorKind {
        &self.kind
    }

    /// Where: bytes of the expression, empty when something is missing there.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }
}

impl std::error::Error for ParseError {}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // a tab or an escape sequence would move the caret, or the terminal
        let shown: String = self
            .expression
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let before = self.expression[..self.span.start].chars().count();
        let under = self.expression[self.span.clone()].chars().count().max(1);
        write!(
            f,
            "{}\n  {shown}\n  {}{}",
            self.kind,
            " ".repeat(before),
            "^".repeat(under)
        )
    }
}

fn metric_suggestion(name: &str, nearest: Option<&str>) -> String {
    let is_selector = SELECTORS.iter().any(|entry| entry.key == name);
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == name);
    match (is_selector, other, nearest) {
        (true, Some((_, metric)), _) => {
            format!("did you mean `{metric}`, or the selector `{name}=VALUE: METRIC ...`?")
        }
        (true, None, _) => format!("it is a selector: write `{name}=VALUE: METRIC ...`"),
        (false, _, Some(metric)) => format!("did you mean `{metric}`?"),
        (false, _, None) => "`--require help` lists all metrics".to_owned(),
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

fn did_you_mean_or(nearest: Option<&str>, known: &[&str]) -> String {
    match nearest {
        Some(_) => did_you_mean(nearest),
        None => format!("; there is {}", known.join(", ")),
    }
}

fn commands(documents: &[DocumentKind]) -> String {
    documents
        .iter()
        .map(|d| d.command())
        .collect::<Vec<_>>()
        .join(", ")
}

pub(super) fn unknown_metric(name: &str) -> ParseErrorKind {
    let nearest = match name.split_once('.') {
        Some(("failed", kind)) => suggest::nearest(kind, Failure::ALL.iter().map(|kind| kind.id()))
            .map(|kind| format!("failed.{kind}")),
        _ => nearest_metric(name).map(str::to_owned),
    };
    ParseErrorKind::UnknownMetric {
        name: shortened(name),
        nearest,
    }
}

pub(super) fn unknown_rule(id: &str, document: DocumentKind, rules: &[&str]) -> ParseErrorKind {
    ParseErrorKind::UnknownRule {
        id: shortened(id),
        document,
        nearest: suggest::nearest(id, rules.iter().copied()).map(str::to_owned),
    }
}

/// The metric that was meant: by another name that it has elsewhere, or by a slip of the finger.
fn nearest_metric(name: &str) -> Option<&'static str> {
    let others = OTHER_NAMES.iter().map(|(other, _)| *other);
    let known = FIGURES.iter().map(|entry| entry.name);
    let meant = suggest::nearest(name, known.chain(others))?;
    let renamed = OTHER_NAMES.iter().find(|(other, _)| *other == meant);
    Some(renamed.map_or(meant, |(_, metric)| *metric))
}

pub(super) fn unknown_selector(key: &str) -> ParseErrorKind {
    let nearest = suggest::nearest(key, SELECTORS.iter().map(|entry| entry.key));
    ParseErrorKind::UnknownSelector {
        key: shortened(key),
        nearest: nearest.map(str::to_owned),
    }
}

pub(super) fn unknown_value(
    key: &str,
    value: &str,
    known: &'static [&'static str],
) -> ParseErrorKind {
    ParseErrorKind::UnknownValue {
        key: key.to_owned(),
        value: shortened(value),
        nearest: suggest::nearest(value, known.iter().copied()),
        known,
    }
}

fn shortened(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(40).collect()
}
