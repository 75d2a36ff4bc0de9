//! The results of requirements below a page: the reasons of an exit code. Must not decide.
//!
//! On a terminal they are wrapped, equal ones share a line, those that failed come first, and the
//! page leaves room for them. Elsewhere (a log of a CI) they are whole: one line each.

use super::{Length, Output, TerminalOptions, lines};
use crate::painted::{ALARM, FAINT, PLAIN};
use intact_document::grouping::grouped;
use intact_document::requirement::{Outcome, RequirementResult, Verdict};
use intact_units::foreign_text::escape;

/// Results of one requirement on a terminal; more are counted.
const RESULTS: usize = 4;
/// Subjects with the same result that are named.
const SUBJECTS: usize = 4;
/// Lines of a page at least, however many results follow.
const PAGE: usize = 20;

/// A line for each requirement, with its results below.
pub fn requirements(verdicts: &[Verdict], options: TerminalOptions) -> String {
    let mut out = Output::new(options);
    for verdict in verdicts {
        let printed = verdict.to_string();
        let (first, results) = printed.split_once('\n').unwrap_or((&printed, ""));
        let style = if verdict.passed() { PLAIN } else { ALARM };
        out.hanging(style, &escape(first), "");
        if options.height.is_none() {
            for line in results.lines() {
                out.hanging(PLAIN, &escape(line.trim_start()), "  ");
            }
            continue;
        }
        out.grouped(verdict.results());
        if let Some(reason) = verdict.nothing_checked() {
            out.hanging(PLAIN, &escape(&reason), "  ");
        }
    }
    out.text
}

impl Output {
    /// Results with the same words on one line, the first lines.
    fn grouped(&mut self, results: &[RequirementResult]) {
        let mut results: Vec<&RequirementResult> = results.iter().collect();
        results.sort_by_key(|one| match one.outcome() {
            Outcome::Met(_) => 1,
            Outcome::FixedBy(..) | Outcome::Baseline => 2,
            _ => 0,
        });
        let results = results.into_iter();
        let groups = grouped(results.map(|one| (one.words(), one.subject())));
        for (words, subjects) in groups.iter().take(RESULTS) {
            let named = subjects.len().min(SUBJECTS);
            let more = match subjects.len() - named {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let line = format!("{}{more}: {words}", subjects[..named].join(", "));
            self.hanging(PLAIN, &escape(&line), "  ");
        }
        let left = groups.iter().skip(RESULTS);
        let left: usize = left.map(|(_, subjects)| subjects.len()).sum();
        if left > 0 {
            self.hanging(FAINT, &format!("and {left} more (--junit has all)"), "  ");
        }
    }
}

impl TerminalOptions {
    /// The same with fewer lines for a page, on a terminal: the results of these requirements
    /// follow it.
    pub(super) fn before(self, verdicts: &[Verdict]) -> TerminalOptions {
        let Length::Lines(most) = self.length else {
            return self;
        };
        if self.height.is_none() {
            return self;
        }
        let left = most.saturating_sub(lines(&requirements(verdicts, self)));
        TerminalOptions {
            length: Length::Lines(left.max(PAGE.min(most))),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_facts::MadeFacts;
    use intact_document::Subject;

    /// Variants, of which the last two miss `connections <= 1`, the others meet it.
    fn made(variants: usize) -> MadeFacts {
        let subject = |nth| {
            let mut subject = Subject::new(format!("variant {nth}"));
            let is_missed = nth + 2 >= variants;
            subject
                .readings
                .set("connections", if is_missed { 9 } else { 1 });
            subject
        };
        MadeFacts {
            subjects: (0..variants).map(subject).collect(),
            ..MadeFacts::default()
        }
    }

    fn printed(variants: usize, height: Option<usize>) -> String {
        let requirement: intact_document::requirement::Requirement =
            "connections <= 1".parse().unwrap();
        let options = TerminalOptions {
            height,
            ..TerminalOptions::plain(80)
        };
        requirements(&[requirement.evaluate(&made(variants))], options)
    }

    #[test]
    fn a_terminal_shows_equal_results_together_and_those_that_failed_first() {
        let text = printed(9, Some(40));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "NOT met: connections <= 1",
                "  variant 7, variant 8: connections is 9, required <= 1",
                "  variant 0, variant 1, variant 2, variant 3 and 3 more: connections is 1",
            ],
            "{text}"
        );
    }

    #[test]
    fn a_log_has_all_results_in_their_order() {
        let text = printed(9, None);
        assert_eq!(text.lines().count(), 10, "{text}");
        assert!(text.lines().nth(1).unwrap().starts_with("  variant 0: "));
    }
}
