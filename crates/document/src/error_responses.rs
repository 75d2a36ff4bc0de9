//! Responses with an error status that the user did not name: how many there are, and the sentences
//! about them. The same for `bench` and `check`, so that both call the same run a success. Must not
//! know what was measured.

use intact_ledger::ExpectedStatus;
use intact_units::number::{count, whole_percent};
use std::collections::BTreeMap;

/// Why there is no figure where every response was an error.
pub const ONLY_ERRORS: &str = "every response was 4xx or 5xx, which --expect can allow";
/// The share of the responses from which on errors are the headline.
const MANY: f64 = 0.1;
/// Statuses that a sentence names; the rest becomes its class.
const NAMED: usize = 3;

/// The errors among responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorResponses {
    /// Status and count, the most frequent first.
    statuses: Vec<(u16, u64)>,
    /// All responses, errors included.
    responses: u64,
    expected: Option<ExpectedStatus>,
}

impl ErrorResponses {
    /// Finds the errors in counts of complete responses by status.
    pub fn among(status: &BTreeMap<u16, u64>, expected: Option<ExpectedStatus>) -> ErrorResponses {
        let is_error = |(status, count): &(u16, u64)| {
            *count > 0 && ExpectedStatus::is_error(expected, *status)
        };
        let counts = status.iter().map(|(&status, &count)| (status, count));
        let mut statuses: Vec<(u16, u64)> = counts.filter(is_error).collect();
        statuses.sort_by_key(|&(status, count)| (std::cmp::Reverse(count), status));
        ErrorResponses {
            statuses,
            responses: status.values().sum(),
            expected,
        }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.statuses.iter().map(|(_, count)| count).sum()
    }

    /// Whether the errors are challenges (RFC 9110 section 11.3), and as many responses followed
    /// that are none.
    pub fn are_challenges(&self) -> bool {
        let is_challenge = |&(status, _): &(u16, u64)| matches!(status, 401 | 407);
        self.statuses.iter().all(is_challenge) && 2 * self.count() <= self.responses
    }

    /// Whether there were responses and every one was an error.
    pub fn is_all(&self) -> bool {
        self.responses > 0 && self.count() == self.responses
    }

    /// The statuses: `404`, `404 or 500`, `4xx or 5xx` where there are many.
    pub fn names(&self) -> String {
        let mut names: Vec<String> = self
            .statuses
            .iter()
            .map(|(one, _)| one.to_string())
            .collect();
        if names.len() > NAMED {
            names = self
                .classes()
                .iter()
                .map(|class| format!("{class}xx"))
                .collect();
        }
        match names.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, first)) => format!("{} or {last}", first.join(", ")),
            None => String::new(),
        }
    }

    /// The statuses that the user named, if any.
    pub fn expected(&self) -> Option<ExpectedStatus> {
        self.expected
    }

    /// The sentence about a run without any other response: `counts` in brackets, and what its
    /// figures `measured` then.
    pub fn only_errors(&self, counts: Option<&str>, measured: &str) -> String {
        let counts = counts.map_or_else(String::new, |counts| format!(" ({counts})"));
        format!(
            "Every response was {}{counts}: {measured}; pass --expect {} if that is intended",
            self.names(),
            self.option()
        )
    }

    /// Their share of the responses, where it is so large that the times of all are no headline.
    pub fn many(&self) -> Option<f64> {
        let share = self.count() as f64 / self.responses.max(1) as f64;
        (share >= MANY).then_some(share)
    }

    /// The sentence about a run with other responses too.
    pub fn share(&self) -> Option<String> {
        let errors = self.count();
        if errors == 0 || self.is_all() {
            return None;
        }
        let percent = whole_percent(errors as f64 / self.responses as f64);
        Some(format!(
            "{} of {} responses ({percent}) had the status {}",
            count(errors),
            count(self.responses),
            self.names()
        ))
    }

    /// [`ErrorResponses::share`] of a bench, where times are compared.
    pub fn share_of_times(&self) -> Option<String> {
        let share = self.share()?;
        Some(match self.many() {
            None => share,
            Some(_) => format!(
                "{share}, so the times are not those of the service; pass --expect {} if that is intended",
                self.option()
            ),
        })
    }

    /// The value of `--expect` that allows them.
    fn option(&self) -> String {
        match (self.statuses.as_slice(), self.classes().as_slice()) {
            ([(status, _)], _) => status.to_string(),
            (_, [class]) => format!("{class}xx"),
            _ => ExpectedStatus::Any.to_string(),
        }
    }

    fn classes(&self) -> Vec<u16> {
        let mut classes: Vec<u16> = self.statuses.iter().map(|(one, _)| one / 100).collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(counts: &[(u16, u64)], expected: Option<&str>) -> ErrorResponses {
        let expected = expected.map(|text| text.parse().unwrap());
        ErrorResponses::among(&counts.iter().copied().collect(), expected)
    }

    #[test]
    fn a_challenge_is_followed_by_a_response() {
        let are = |counts: &[(u16, u64)]| errors(counts, None).are_challenges();
        assert!(are(&[(200, 5), (401, 5)]));
        assert!(!are(&[(200, 4), (401, 5)]));
        assert!(!are(&[(200, 9), (401, 5), (500, 1)]));
    }

    #[test]
    fn only_errors_name_the_option_that_allows_them() {
        let said = |counts: &[(u16, u64)]| errors(counts, None).only_errors(Some("n"), "m");
        assert_eq!(
            said(&[(404, 9)]),
            "Every response was 404 (n): m; pass --expect 404 if that is intended"
        );
        assert_eq!(
            said(&[(404, 2), (410, 3)]),
            "Every response was 410 or 404 (n): m; pass --expect 4xx if that is intended"
        );
        assert_eq!(
            said(&[(404, 2), (500, 3), (502, 1), (503, 1)]),
            "Every response was 4xx or 5xx (n): m; pass --expect any if that is intended"
        );
    }

    #[test]
    fn a_share_is_reported_and_what_the_user_named_is_no_error() {
        assert_eq!(
            errors(&[(200, 300), (503, 100)], None)
                .share_of_times()
                .unwrap(),
            "100 of 400 responses (25 %) had the status 503, so the times are not those of the service; pass --expect 503 if that is intended"
        );
        assert!(
            errors(&[(200, 999), (503, 1)], None)
                .share()
                .unwrap()
                .contains("(0.1 %)")
        );
        assert!(
            errors(&[(200, 1), (503, 999)], None)
                .share()
                .unwrap()
                .contains("(99.9 %)")
        );
        assert_eq!(errors(&[(200, 5), (302, 5)], None).share(), None);
        assert_eq!(errors(&[(404, 5)], Some("404")).count(), 0);
        assert!(!errors(&[(404, 5)], Some("4xx")).is_all());
        assert!(errors(&[(404, 5)], None).is_all());
        assert!(!errors(&[], None).is_all(), "no response is no error page");
    }
}
