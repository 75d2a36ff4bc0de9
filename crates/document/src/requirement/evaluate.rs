//! Checks a requirement against the readings of a document, subject by subject, in words for a
//! terminal line or for JUnit.

use super::{Requirement, Selector};
use crate::facts::{Facts, Subject};
use intact_reading::{Op, Reading, Why};
use std::cmp::Ordering;
use std::fmt;

/// The label of a subject that is one of two sides, each of which has figures of its own.
pub const SIDE: &str = "side";

/// The result of a requirement.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    requirement: Requirement,
    results: Vec<RequirementResult>,
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
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Met by every value that the reading allows.
    Met(Reading),
    /// Met by none.
    Missed(Reading),
    /// Met by some of the values, so that it is not decided, and so not met.
    Undecided(Reading),
    /// Nothing is known, and so it is not met.
    Unknown(Reading),
    /// Nothing worked that the reading could describe, and so it is not met.
    Unjudged(Reading),
    /// Left out: the variant fixes the figure by what it is (selector, value), and no selector
    /// names the variant.
    FixedBy(&'static str, &'static str),
    /// Left out: there was no traffic, which `--allow-empty` accepts.
    Empty,
    /// Left out: the figure compares the others with this subject, and no selector names it.
    Baseline,
    /// Left out: the figure is one of the other side, and no selector names this one.
    OtherSide,
}

impl Outcome {
    fn is_left_out(&self) -> bool {
        matches!(
            self,
            Outcome::FixedBy(..) | Outcome::Baseline | Outcome::Empty | Outcome::OtherSide
        )
    }
}

/// Checks all of them against `facts`, whose subjects are made once.
pub fn evaluate(requirements: &[Requirement], facts: &dyn Facts) -> Vec<Verdict> {
    if requirements.is_empty() {
        return Vec::new();
    }
    let (subjects, default) = (facts.subjects(), facts.default_subjects());
    let requirements = requirements.iter();
    requirements
        .map(|one| one.check(&subjects, default))
        .collect()
}

impl Requirement {
    /// Checks it against `facts`: every subject that the selectors find, without selectors all of
    /// them (or those that the facts call for).
    pub fn evaluate(&self, facts: &dyn Facts) -> Verdict {
        self.check(&facts.subjects(), facts.default_subjects())
    }

    fn check(&self, subjects: &[Subject], default: Option<usize>) -> Verdict {
        let checked = match (self.selectors.is_empty(), default) {
            (true, Some(first)) => first,
            _ => subjects.len(),
        };
        let found = |subject: &&Subject| self.selectors.iter().all(|one| subject.has(one));
        let results = subjects.iter().take(checked).filter(found).map(|subject| {
            let outcome = self.outcome(subject);
            RequirementResult {
                subject: one_line(&subject.name),
                words: one_line(&self.words(&outcome, subject.unjudged.as_ref())),
                outcome,
            }
        });
        let results = results.collect();
        let unmatched = self
            .selectors
            .iter()
            .find(|selector| !subjects.iter().any(|subject| subject.has(selector)))
            .map(|selector| (selector.clone(), offered(subjects, selector.key())));
        Verdict {
            requirement: self.clone(),
            results,
            unmatched,
        }
    }

    fn outcome(&self, subject: &Subject) -> Outcome {
        let is_unscoped = self.selectors.is_empty();
        let mut fixed = self.figure.fixed_by.iter();
        let fixed = fixed.find(|(key, value)| subject.is(key, value));
        if let (Some(&(key, value)), true) = (fixed, is_unscoped) {
            return Outcome::FixedBy(key, value);
        }
        let reading = subject.readings.get(&self.name);
        let names_side = self.selectors.iter().any(|one| one.key() == SIDE);
        let is_of_other = reading.why() == Some(&Why::NOT_IN_DOCUMENT);
        if is_of_other && !names_side && subject.labels.iter().any(|(key, _)| *key == SIDE) {
            return Outcome::OtherSide;
        }
        let is_accepted = |why: &Why| self.allow_empty && *why == Why::NoTraffic;
        if subject
            .unjudged
            .as_ref()
            .is_some_and(|why| !is_accepted(why))
        {
            return Outcome::Unjudged(reading);
        }
        if reading.is_unknown() {
            return match reading.why() {
                Some(why) if is_accepted(why) => Outcome::Empty,
                Some(Why::Baseline) if is_unscoped => Outcome::Baseline,
                _ => Outcome::Unknown(reading),
            };
        }
        match reading.meets(self.op, self.value.base()) {
            Some(true) => Outcome::Met(reading),
            Some(false) => Outcome::Missed(reading),
            None => Outcome::Undecided(reading),
        }
    }

    /// What was found, without the subject.
    fn words(&self, outcome: &Outcome, unjudged: Option<&Why>) -> String {
        let Self {
            op, value, name, ..
        } = self;
        match outcome {
            Outcome::Met(reading) => format!("{name} is {}", self.shown(reading)),
            Outcome::Missed(reading) | Outcome::Undecided(reading)
                if reading.why() == Some(&Why::Interval) =>
            {
                format!(
                    "{name} is {}{}",
                    self.shown(reading),
                    self.deciding_end(reading)
                )
            }
            Outcome::Missed(reading) => {
                format!("{name} is {}, required {op} {value}", self.shown(reading))
            }
            Outcome::Undecided(reading) => {
                let why = reading.why().map_or_else(String::new, ToString::to_string);
                let shown = self.shown(reading);
                format!("{name} is {shown}, which does not decide {op} {value} ({why})")
            }
            Outcome::Unknown(reading) => format!("{name} is {}", self.stated(reading)),
            Outcome::Unjudged(reading) => {
                let stated = match reading.is_unknown() && reading.why() == unjudged {
                    true => "unknown".to_owned(),
                    false => self.stated(reading),
                };
                let why = unjudged.map_or_else(String::new, ToString::to_string);
                format!("{name} is {stated}, not judged: {why}")
            }
            Outcome::FixedBy(key, wanted) => format!("{name} left out, {key}={wanted} fixes it"),
            Outcome::Empty => format!("{name} left out, {}", Why::NoTraffic),
            Outcome::Baseline => format!("{name} left out, {}", Why::Baseline),
            Outcome::OtherSide => format!("{name} left out, it is a figure of the other side"),
        }
    }

    /// The end of an interval that keeps the requirement from being met.
    fn deciding_end(&self, reading: &Reading) -> String {
        let (end, bound) = match self.op {
            Op::Above | Op::AtLeast => ("lower", reading.low()),
            Op::Below | Op::AtMost => ("upper", reading.high()),
            Op::Equal | Op::Unequal => return format!(", required {} {}", self.op, self.value),
        };
        let stands = match bound.total_cmp(&self.value.base()) {
            Ordering::Less => "below",
            Ordering::Equal => "at",
            Ordering::Greater => "above",
        };
        let value = self.value.base();
        let value = self.figure.dimension.shown(value, value);
        format!("; the {end} end is {stands} {value}")
    }

    /// The reading, with its reason where nothing is known.
    fn stated(&self, reading: &Reading) -> String {
        match (reading.is_unknown(), reading.estimate(), reading.why()) {
            (true, None, Some(why)) => format!("unknown ({why})"),
            (true, Some(_), Some(why)) => {
                format!("unknown, {} is inferred ({why})", self.shown(reading))
            }
            _ => self.shown(reading),
        }
    }

    /// The reading next to the value of the requirement.
    fn shown(&self, reading: &Reading) -> String {
        reading.shown(|value| self.figure.dimension.shown(value, self.value.base()))
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
        let met = |one: &RequirementResult| matches!(one.outcome, Outcome::Met(_) | Outcome::Empty);
        let left_out = |one: &RequirementResult| one.outcome.is_left_out();
        self.results.iter().any(met) && self.results.iter().all(|one| met(one) || left_out(one))
    }

    /// The requirement itself.
    pub fn requirement(&self) -> &Requirement {
        &self.requirement
    }

    /// The results, subject by subject; empty when no subject was found.
    pub fn results(&self) -> &[RequirementResult] {
        &self.results
    }

    /// Why it was checked against no subject, when it was.
    pub fn nothing_checked(&self) -> Option<String> {
        if let ([], Some((selector, offered))) = (self.results.as_slice(), &self.unmatched) {
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
        if self.results.is_empty() {
            let all_at_once = "nothing here fits all selectors at once; drop one";
            let nothing = "nothing was measured that has this figure";
            return Some(
                if self.requirement.selectors.is_empty() {
                    nothing
                } else {
                    all_at_once
                }
                .to_owned(),
            );
        }
        let left_out = self.results.iter().all(|one| one.outcome.is_left_out());
        (left_out && !self.passed()).then(|| {
            "every variant fixes this figure; to check one anyway, name it with a selector"
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
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
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
        for result in &self.results {
            write!(f, "\n  {result}")?;
        }
        self.nothing_checked()
            .map_or(Ok(()), |why| write!(f, "\n  {why}"))
    }
}
