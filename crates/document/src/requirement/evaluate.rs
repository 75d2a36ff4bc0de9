//! Holds a requirement against what was measured, subject by subject, in words for a terminal line
//! or for JUnit.

use intact_units::number::count;
use intact_units::plural::counted;
use std::fmt;

use super::{Measured, Metric, Requirement, Selector};
use crate::unobserved::Unobserved;

/// Something that was measured by itself: a variant of `bench`, a destination of `watch`, the run
/// as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// What a person calls it.
    pub name: String,
    /// What selectors find it by: (key, value), such as ("keepalive", "on").
    pub labels: Vec<(&'static str, String)>,
}

/// A document as the source of metrics.
pub trait MetricSource {
    /// All subjects, in the order in which they are reported.
    fn subjects(&self) -> Vec<Subject>;

    /// How many of the first subjects a requirement without selectors is about; all where there is
    /// no such number.
    fn default_subjects(&self) -> Option<usize> {
        None
    }

    /// What was measured of a subject (its index in [`Self::subjects`]), or the bounds where a part
    /// was not observed: nanoseconds, shares of 1, per second, bytes or plain numbers, as
    /// [`super::Dimension`] says.
    fn value(&self, subject: usize, metric: &Metric) -> Result<Measured, NoData>;

    /// What is missing from what was measured. A gate that needs all of it stays closed with its
    /// reason.
    fn unobserved(&self) -> Unobserved;

    /// Why only bounds are known of a subject, where that has a reason.
    fn undecided(&self, _subject: usize) -> Option<String> {
        self.unobserved().reason()
    }
}

/// Why a metric has no value for a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoData {
    /// Nothing happened that it could have been measured on, such as a handshake on a plain
    /// connection.
    #[error("there was nothing to measure")]
    NothingHappened,
    /// There was no traffic at all, so nothing was judged.
    #[error("no request and no connection was observed")]
    NoTraffic,
    /// Too little happened to say it.
    #[error("{} measured, at least {} needed", counted(*had, "sample"), count(*needed))]
    TooFew {
        /// Samples there were.
        had: u64,
        /// Samples there must be.
        needed: u64,
    },
    /// It cannot be seen from where this was measured.
    #[error("it cannot be seen here: {0}")]
    CannotSee(
        /// Why, such as "the stream is encrypted".
        &'static str,
    ),
    /// Nothing worked, so that no figure describes successful work. The figure may be known.
    #[error("{0}")]
    NotJudged(
        /// Why, such as "no connection could be opened".
        &'static str,
    ),
    /// It was not measured in this run, though it could have been.
    #[error("it was not measured; {0}")]
    NotMeasured(
        /// The way to have it measured, such as "add --server-pid".
        &'static str,
    ),
    /// It is a comparison with this subject.
    #[error("the others are compared with it")]
    Baseline,
}

impl NoData {
    /// The one reason of every document for a metric that it never has.
    pub const NOT_IN_DOCUMENT: NoData = NoData::CannotSee("this command does not measure it");
}

/// The result of a requirement.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    requirement: Requirement,
    held: Vec<RequirementResult>,
    /// What the subjects offer for the first selector that none of them has.
    unmatched: Option<(Selector, Vec<String>)>,
}

/// A requirement checked against one subject; prints as one line without a break.
#[derive(Debug, Clone, PartialEq)]
pub struct RequirementResult {
    subject: String,
    outcome: Outcome,
    words: String,
}

/// The result of a requirement for one subject.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// Measured, in base units, and met.
    Met(Measured),
    /// Measured, in base units, and not met.
    Missed(Measured),
    /// Only bounds are known, and they do not decide it. So it is not met.
    Undecided(Measured),
    /// Not measured, and so not met.
    NoData(NoData),
    /// Left out: the variant fixes the metric by what it is (selector, value), and no selector
    /// names the variant.
    FixedBy(&'static str, &'static str),
    /// Left out: the metric compares the others with this subject, and no selector names it.
    Baseline,
}

impl Outcome {
    fn is_left_out(self) -> bool {
        matches!(self, Outcome::FixedBy(..) | Outcome::Baseline)
    }
}

impl Requirement {
    /// Holds it against `facts`: every subject that the selectors find, without selectors all of
    /// them (or those that the facts call for).
    pub fn evaluate(&self, facts: &dyn MetricSource) -> Verdict {
        let subjects = facts.subjects();
        let checked = match (self.selectors.is_empty(), facts.default_subjects()) {
            (true, Some(first)) => first,
            _ => subjects.len(),
        };
        let found = |subject: &Subject| self.selectors.iter().all(|selector| subject.has(selector));
        let held = (0..)
            .zip(subjects.iter().take(checked))
            .filter(|(_, subject)| found(subject))
            .map(|(index, subject)| {
                let outcome = self.outcome(facts, index, subject);
                let missing = facts.undecided(index);
                RequirementResult {
                    subject: one_line(&subject.name),
                    outcome,
                    words: one_line(&self.words(outcome, missing.as_deref())),
                }
            })
            .collect();
        let unmatched = self
            .selectors
            .iter()
            .find(|selector| !subjects.iter().any(|subject| subject.has(selector)))
            .map(|selector| (selector.clone(), offered(&subjects, selector.key())));
        Verdict {
            requirement: self.clone(),
            held,
            unmatched,
        }
    }

    fn outcome(&self, facts: &dyn MetricSource, index: usize, subject: &Subject) -> Outcome {
        let fixed = self
            .entry
            .fixed_by
            .iter()
            .find(|(key, value)| subject.is(key, value));
        if let (Some(&(key, value)), true) = (fixed, self.selectors.is_empty()) {
            return Outcome::FixedBy(key, value);
        }
        match facts.value(index, &self.metric) {
            Ok(measured) if measured.low().is_nan() => Outcome::NoData(NoData::NothingHappened),
            Ok(measured) => match measured.meets(self.op, self.value.base()) {
                Some(true) => Outcome::Met(measured),
                Some(false) => Outcome::Missed(measured),
                None => Outcome::Undecided(measured),
            },
            Err(NoData::Baseline) if self.selectors.is_empty() => Outcome::Baseline,
            Err(reason) => Outcome::NoData(reason),
        }
    }

    /// What was found, without the subject.
    fn words(&self, outcome: Outcome, missing: Option<&str>) -> String {
        let Self { op, value, .. } = self;
        let metric = self.metric_name();
        match outcome {
            Outcome::Met(measured) => format!("{metric} is {}", self.shown(measured)),
            Outcome::Missed(measured) => {
                format!(
                    "{metric} is {}, required {op} {value}",
                    self.shown(measured)
                )
            }
            Outcome::Undecided(measured) => {
                let shown = self.shown(measured);
                let unknown = if measured.high() == f64::INFINITY {
                    "the measurement ended before the limit was reached"
                } else {
                    "only this range is known"
                };
                let reason = missing.unwrap_or(unknown);
                format!("{metric} is {shown}, which does not decide {op} {value} ({reason})")
            }
            Outcome::NoData(NoData::NotJudged(reason)) => {
                format!("{metric} is not judged, because {reason}")
            }
            Outcome::NoData(reason) => {
                format!("{metric} has no value ({reason})")
            }
            Outcome::FixedBy(key, wanted) => format!("{metric} left out, {key}={wanted} fixes it"),
            Outcome::Baseline => format!("{metric} left out, {}", NoData::Baseline),
        }
    }

    /// The measured value, or its bounds, next to the value of the requirement.
    fn shown(&self, measured: Measured) -> String {
        let shown = |value| self.entry.dimension.shown(value, self.value.base());
        match (measured.low(), measured.high()) {
            (low, _) if measured.is_exact() => shown(low),
            (low, f64::INFINITY) => format!("at least {}", shown(low)),
            (low, high) => format!("between {} and {}", shown(low), shown(high)),
        }
    }
}

/// A text without control characters: a name may come from a server or a file, and a line stays a
/// line.
fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

impl Subject {
    fn has(&self, selector: &Selector) -> bool {
        self.is(selector.key(), selector.value())
    }

    fn is(&self, key: &str, value: &str) -> bool {
        self.labels
            .iter()
            .any(|(own, label)| *own == key && label.eq_ignore_ascii_case(value))
    }
}

/// The values that subjects have for a key, each once, at most eight.
fn offered(subjects: &[Subject], key: &str) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for (own, value) in subjects.iter().flat_map(|subject| &subject.labels) {
        if *own == key && values.len() < 8 && !value.is_empty() && !values.contains(value) {
            values.push(value.clone());
        }
    }
    values
}

impl Verdict {
    /// Whether the requirement is met: measured on one subject at least, and missed or unmeasured
    /// on none.
    pub fn passed(&self) -> bool {
        let met = |held: &RequirementResult| matches!(held.outcome, Outcome::Met(_));
        let left_out = |held: &RequirementResult| held.outcome.is_left_out();
        self.held.iter().any(met) && self.held.iter().all(|held| met(held) || left_out(held))
    }

    /// The requirement itself.
    pub fn requirement(&self) -> &Requirement {
        &self.requirement
    }

    /// The results, subject by subject; empty when no subject was found.
    pub fn held(&self) -> &[RequirementResult] {
        &self.held
    }

    /// Why it was checked against no subject, when it was.
    pub fn nothing_held(&self) -> Option<String> {
        if let ([], Some((selector, offered))) = (self.held.as_slice(), &self.unmatched) {
            return Some(if offered.is_empty() {
                format!("nothing here has a `{}` to select by", selector.key())
            } else {
                format!(
                    "nothing here has {selector}; there is {}={}",
                    selector.key(),
                    offered.join(", ")
                )
            });
        }
        if self.held.is_empty() {
            let all_at_once = "nothing here fits all selectors at once; drop one";
            let nothing = "nothing was measured that has this metric";
            return Some(
                if self.requirement.selectors.is_empty() {
                    nothing
                } else {
                    all_at_once
                }
                .to_owned(),
            );
        }
        let left_out = self.held.iter().all(|held| held.outcome.is_left_out());
        left_out.then(|| {
            "every variant fixes this metric; to check one anyway, name it with a selector"
                .to_owned()
        })
    }
}

impl RequirementResult {
    /// The subject that it was checked against, without control characters.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// What was found, without the subject.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// The outcome.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }
}

impl fmt::Display for RequirementResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.words)
    }
}

/// One line per subject, or why there is none.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}",
            if self.passed() { "met" } else { "NOT met" },
            self.requirement
        )?;
        for held in &self.held {
            write!(f, "\n  {held}")?;
        }
        self.nothing_held()
            .map_or(Ok(()), |why| write!(f, "\n  {why}"))
    }
}
