//! What a comparison shows of each program: every difference of wall time, CPU time and
//! connections, the largest first. Also the reasons why a difference is no improvement. Must not
//! write whole sentences.

use super::count_difference::{CountDifference, CountStatistic};
use super::variant::ProgramFacts;
use crate::time_difference::{TimeDifference, TimeStatistic};
use intact_document::error_responses::{ErrorResponses, ONLY_ERRORS};
use intact_statistics::Interval;
use intact_units::number::{mean, time, whole_percent};
use serde::Serialize;

/// Shares of failed requests that grow by less, and numbers of requests that differ by less, are
/// alike.
const ALIKE: (f64, f64) = (0.01, 0.05);

/// A figure that programs are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ComparedFigure {
    /// A time, in milliseconds.
    Time(TimeStatistic),
    /// A count.
    Count(CountStatistic),
}

/// A figure of a program against the baseline's, for one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FigureChange {
    /// Which figure.
    pub figure: ComparedFigure,
    /// Mean over the rounds, of the baseline.
    pub a: f64,
    /// The same of the program.
    pub b: f64,
    /// `(b - a) / a` with its 95 % interval: negative when `b` is less. Absent with fewer than 8
    /// rounds, or where `a` is 0.
    pub change: Option<Interval>,
    /// Whether a difference was shown; absent with fewer than 8 rounds.
    pub significant: Option<bool>,
}

/// What was shown of one program.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Outcome {
    /// The baseline.
    pub a: String,
    /// The program compared with it.
    pub b: String,
    /// Its figures: those that differ by size, the largest difference first, then the others.
    pub figures: Vec<FigureChange>,
    /// Why the programs did not do the same work; a difference is then no improvement by itself.
    pub unlike: Vec<String>,
}

pub(super) fn outcomes(
    programs: &[ProgramFacts],
    times: &[TimeDifference],
    counts: &[CountDifference],
) -> Vec<Outcome> {
    let Some((first, rest)) = programs.split_first() else {
        return Vec::new();
    };
    let complete = rest.iter().filter(|_| !first.rounds.is_empty());
    let each = complete.filter(|other| !other.rounds.is_empty());
    each.map(|other| Outcome {
        a: first.name.clone(),
        b: other.name.clone(),
        figures: figures(first, other, times, counts),
        unlike: unlike(first, other),
    })
    .collect()
}

fn figures(
    first: &ProgramFacts,
    other: &ProgramFacts,
    times: &[TimeDifference],
    counts: &[CountDifference],
) -> Vec<FigureChange> {
    let of = |statistic: TimeStatistic| {
        let mut times = times.iter();
        times.find(|one| one.b == other.name && one.statistic == statistic)
    };
    let (wall, cpu) = (of(TimeStatistic::Wall), of(TimeStatistic::Cpu));
    let is_shown = |one: &TimeDifference| one.significant == Some(true);
    // a part of the wall time, which is known without it in a stored ledger, or shown without it
    let waiting = of(TimeStatistic::Outbound)
        .filter(|one| wall.is_none_or(|wall| is_shown(one) && !is_shown(wall)));
    let times = [wall, cpu, waiting].into_iter().flatten();
    let mut all: Vec<FigureChange> = times.map(FigureChange::of_time).collect();
    let observed = [first, other].map(|one| one.counted.unobserved.has_all_connections());
    if observed == [true, true] {
        let connections = counts
            .iter()
            .find(|one| one.b == other.name && one.count == CountStatistic::Connections);
        all.extend(connections.map(FigureChange::of_count));
    }
    all.sort_by(|a, b| b.size().total_cmp(&a.size()));
    all
}

/// Whether this number of requests is fewer than the others: a program that sends fewer is faster
/// for that reason.
pub(crate) fn is_fewer(ours: f64, theirs: f64) -> bool {
    ours < (1.0 - ALIKE.1) * theirs
}

/// Why the two did not do the same work.
fn unlike(first: &ProgramFacts, other: &ProgramFacts) -> Vec<String> {
    let (a, b) = (&first.name, &other.name);
    let mut reasons = Vec::new();
    for one in [first, other] {
        if let Some(reason) = one.no_success() {
            return vec![format!("{} has no success: {reason}", one.name)];
        }
    }
    let share = |one: &ProgramFacts| {
        let unsuccessful = one.unsuccessful();
        unsuccessful as f64 / one.counted.requests.total.max(1) as f64
    };
    if (share(other) - share(first)).abs() > ALIKE.0 {
        reasons.push(format!(
            "{} of {b}'s requests and {} of {a}'s failed or had an error response",
            whole_percent(share(other)),
            whole_percent(share(first))
        ));
    }
    let seen = [first, other].map(|one| one.counted.unobserved.has_all_requests());
    let [ours, theirs] = [first, other].map(|one| one.each_run(one.counted.requests.total));
    if seen == [true, true] && (theirs - ours).abs() > ALIKE.1 * ours {
        let (ours, theirs) = (mean(ours), mean(theirs));
        reasons.push(format!(
            "the number of requests is {theirs} in {b} and {ours} in {a}"
        ));
    }
    reasons
}

impl ProgramFacts {
    /// A sum over the rounds, for one run.
    pub(super) fn each_run(&self, sum: u64) -> f64 {
        sum as f64 / self.rounds.len().max(1) as f64
    }

    /// Why no figure of the program describes successful work: it sent requests, and none had a
    /// successful response.
    pub fn no_success(&self) -> Option<&'static str> {
        let errors = ErrorResponses::among(&self.counted.requests.status, None);
        let only_errors = errors.is_all();
        self.counted
            .no_response()
            .or(only_errors.then_some(ONLY_ERRORS))
    }

    /// Whether it sends fewer requests than the other program, by those that were seen.
    pub(super) fn sends_fewer(&self, other: &ProgramFacts) -> bool {
        let are_seen =
            [self, other].map(|one| one.counted.unobserved.has_all_requests()) == [true, true];
        let [ours, theirs] = [self, other].map(|one| one.each_run(one.counted.requests.total));
        are_seen && is_fewer(ours, theirs)
    }

    /// Requests that failed, and those with an error response.
    pub(super) fn unsuccessful(&self) -> u64 {
        let errors = ErrorResponses::among(&self.counted.requests.status, None);
        self.counted.requests.failures() + errors.count()
    }
}

impl Outcome {
    /// The differences that were shown, the largest first.
    pub fn shown(&self) -> impl Iterator<Item = &FigureChange> {
        let figures = self.figures.iter();
        figures.filter(|one| one.significant == Some(true))
    }

    /// The figures of which no difference was shown.
    pub fn not_shown(&self) -> impl Iterator<Item = &FigureChange> {
        let figures = self.figures.iter();
        figures.filter(|one| one.significant == Some(false))
    }

    /// Whether the differences that were shown are all less; `None` without any, where some are
    /// more, and where the work differs.
    pub fn is_less(&self) -> Option<bool> {
        let mut shown = self.shown().map(|one| one.b < one.a);
        let first = shown.next()?;
        (self.unlike.is_empty() && shown.all(|one| one == first)).then_some(first)
    }
}

impl FigureChange {
    fn of_time(one: &TimeDifference) -> FigureChange {
        FigureChange {
            figure: ComparedFigure::Time(one.statistic),
            a: one.a_ms,
            b: one.b_ms,
            change: one.saved_share.map(Interval::negated),
            significant: one.significant,
        }
    }

    fn of_count(one: &CountDifference) -> FigureChange {
        let less = one.reduction.filter(|_| one.a_mean > 0.0);
        let share = less.map(|less| less.map(|less| less / one.a_mean));
        FigureChange {
            figure: ComparedFigure::Count(one.count),
            a: one.a_mean,
            b: one.b_mean,
            change: share.map(Interval::negated),
            significant: one.significant,
        }
    }

    /// How large a difference is that was shown: half as much is as large as twice as much.
    fn size(&self) -> f64 {
        match (self.significant, self.change) {
            (Some(true), Some(change)) => (1.0 + change.value).max(0.0).ln().abs(),
            (Some(true), None) => f64::INFINITY,
            _ => -1.0,
        }
    }

    /// What a sentence calls the figure.
    pub fn name(&self) -> &'static str {
        match self.figure {
            ComparedFigure::Time(statistic) => statistic.words(),
            ComparedFigure::Count(count) => count.words(),
        }
    }

    /// A value of the figure with its unit.
    pub fn value(&self, value: f64) -> String {
        match self.figure {
            ComparedFigure::Time(_) => time(value),
            ComparedFigure::Count(_) => mean(value),
        }
    }

    /// The noun after the amount: `less wall time`, `fewer connections`, `the connections`.
    pub fn compared_name(&self) -> String {
        let word = match self.figure {
            _ if self.is_multiple() => "the",
            _ if self.b >= self.a => "more",
            ComparedFigure::Count(_) => "fewer",
            ComparedFigure::Time(_) => "less",
        };
        format!("{word} {}", self.name())
    }

    /// `44 %`, or `3.1 times` from twice as much on; absent without an interval.
    pub fn amount(&self) -> Option<String> {
        Some(amount(self.change?.value))
    }

    /// The 95 % interval of the difference: `37 to 51 %`; absent where both ends print alike.
    pub fn interval(&self) -> Option<String> {
        let Interval { low, high, .. } = self.change?;
        if amount(low) == amount(high) && low * high >= 0.0 {
            return None;
        }
        let ends = if self.is_multiple() || high >= 1.0 {
            format!("{} to {} times", mean(1.0 + low), mean(1.0 + high))
        } else if low < 0.0 && high > 0.0 {
            format!("{} less to {} more", amount(low), amount(high))
        } else if low < 0.0 {
            span(amount(high), &amount(low))
        } else {
            span(amount(low), &amount(high))
        };
        Some(ends)
    }

    /// Whether the program has twice as much, or more.
    fn is_multiple(&self) -> bool {
        self.change.is_some_and(|change| change.value >= 1.0)
    }
}

/// `37 to 51 %`: a unit that both ends have is printed once.
fn span(low: String, high: &str) -> String {
    let unit = high.split_once(' ').map_or("", |(_, unit)| unit);
    let bare = low.strip_suffix(unit).map(|low| low.trim_end().to_owned());
    format!("{} to {high}", bare.unwrap_or(low))
}

/// A change without its sign.
fn amount(change: f64) -> String {
    if change >= 1.0 {
        format!("{} times", mean(1.0 + change))
    } else {
        whole_percent(change.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(value: f64, low: f64, high: f64) -> FigureChange {
        FigureChange {
            figure: ComparedFigure::Count(CountStatistic::Connections),
            a: 1.0,
            b: 1.0 + value,
            change: Some(Interval { value, low, high }),
            significant: Some(true),
        }
    }

    fn printed(one: FigureChange) -> (String, String, Option<String>) {
        (one.amount().unwrap(), one.compared_name(), one.interval())
    }

    #[test]
    fn a_change_is_printed_without_a_negative_number() {
        let print = |amount: &str, name: &str, interval: Option<&str>| {
            let interval = interval.map(str::to_owned);
            (amount.to_owned(), name.to_owned(), interval)
        };
        assert_eq!(
            printed(change(-0.44, -0.51, -0.37)),
            print("44 %", "fewer connections", Some("37 to 51 %"))
        );
        assert_eq!(
            printed(change(0.3, -0.1, 2.0)),
            print("30 %", "more connections", Some("0.9 to 3 times"))
        );
        assert_eq!(
            printed(change(99.0, 99.0, 99.0)),
            print("100 times", "the connections", None)
        );
        assert_eq!(
            printed(change(99.0, 89.0, 109.0)),
            print("100 times", "the connections", Some("90 to 110 times"))
        );
    }

    #[test]
    fn twice_as_much_is_as_large_a_difference_as_half_as_much() {
        assert!((change(1.0, 1.0, 1.0).size() - change(-0.5, -0.5, -0.5).size()).abs() < 1e-9);
        assert!(change(-0.9, -0.9, -0.9).size() > change(1.0, 1.0, 1.0).size());
    }
}
