//! Did a change do what it is for? One sentence for a pull request: what is gone, what is saved,
//! and what the change brought. Must not answer yes where something was not observed, or where the
//! rounds do not decide.

use super::count_difference::{CountDifference, CountStatistic};
use super::fault_change::{FaultChange, FaultResult};
use super::finding_change::{FindingChange, FindingState};
use super::outcome::Outcome;
use super::variant::{ProgramFacts, RoundFigures};
use crate::time_difference::{TimeDifference, TimeStatistic};
use intact_document::finding::Severity;
use intact_document::{Claim, ClaimKind};
use intact_ledger::kinds;
use intact_servers::fault::FaultOutcome;
use intact_statistics::{Interval, MIN_ROUNDS};
use intact_units::number::{count, mean, signed_percent, time};
use intact_units::plural::counted;
use serde::Serialize;

/// Times and memory that differ by less are alike.
const MATTERS: f64 = 0.05;
/// Memory that differs by less is alike, in MB.
const FEW_MB: f64 = 4.0;
/// The share of requests that fail, and from which on a difference of it counts.
const FAILS: f64 = 0.01;
/// More rounds than these are not proposed.
const MOST_ROUNDS: f64 = 1000.0;
/// Avoidable connections that are left, as a share, up to which they do not matter.
const FEW: f64 = 0.1;
/// With fewer rounds nothing is decided.
const LEAST_ROUNDS: usize = 2;
/// Findings of these rules are no risk to weigh: something is lost, repeated or kept for ever.
const GRAVE: [&str; 10] = [
    "broken-response",
    "closed-before-response",
    "connection-shared-by-processes",
    "dead-connection-reused",
    "leaked-connections",
    "lost-in-drain",
    "pinned-to-old-address",
    "retried-request",
    "stale-reuse",
    "state-carried-over",
];

kinds! {
    json
    /// The answer to the question whether a change did what it is for.
    pub enum Verdict, words {
        /// What it removes is gone, and it brought nothing.
        Yes = "yes",
        /// A part is gone, or it brought something that is to be weighed.
        Partly = "partly",
        /// Nothing is gone, or it brought something that breaks or costs.
        No = "no",
        /// The rounds do not decide, or the programs cannot be compared.
        NotShown = "not-shown",
    }
}

/// Whether a change did what it is for.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The baseline.
    pub a: String,
    /// The program compared with it.
    pub b: String,
    /// In a word.
    pub verdict: Verdict,
    /// As a sentence.
    pub sentence: String,
    /// What the change brought: findings, failures, time, memory.
    pub brought: Vec<String>,
    /// Rounds that would decide, where these do not and that many can be estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds_needed: Option<u32>,
    /// Why the change may have brought more.
    #[serde(skip)]
    pub(super) unseen: Option<String>,
}

impl Answer {
    /// As the first claim of the verdict.
    pub(super) fn claim(&self) -> Claim {
        Claim::new(ClaimKind::Answer, 0.0, self.sentence.clone())
    }
}

/// How a count of rounds differs from the baseline's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shift {
    Less,
    More,
    Equal,
    Undecided,
}

/// Everything that the answer rests on.
struct Evidence<'a> {
    a: &'a ProgramFacts,
    b: &'a ProgramFacts,
    outcome: &'a Outcome,
    times: Vec<&'a TimeDifference>,
    counts: Vec<&'a CountDifference>,
    changes: Vec<&'a FindingChange>,
    faults: Vec<&'a FaultChange>,
}

/// What the change brought.
#[derive(Default)]
struct Harms {
    /// What breaks or costs.
    grave: Vec<String>,
    /// What is to be weighed against the gain.
    weighed: Vec<String>,
    /// What too few rounds had.
    once: Vec<String>,
}

/// What was to be removed and is still there.
#[derive(Default)]
struct Stays {
    parts: Vec<String>,
    /// Whether so much of it is left that the change did a part only.
    matters: bool,
    /// Whether something breaks as before.
    breaks: bool,
}

/// What was compared.
pub(super) struct Compared<'a> {
    pub(super) programs: &'a [ProgramFacts],
    pub(super) outcomes: &'a [Outcome],
    pub(super) times: &'a [TimeDifference],
    pub(super) counts: &'a [CountDifference],
    pub(super) changes: &'a [FindingChange],
    pub(super) faults: &'a [FaultChange],
}

/// The answers for each program that is compared with the first.
pub(super) fn answers(all: &Compared<'_>) -> Vec<Answer> {
    let Some((first, rest)) = all.programs.split_first() else {
        return Vec::new();
    };
    let answer = |other: &ProgramFacts| {
        let outcome = all.outcomes.iter().find(|one| one.b == other.name)?;
        let evidence = Evidence {
            a: first,
            b: other,
            outcome,
            times: all.times.iter().filter(|one| one.b == other.name).collect(),
            counts: all
                .counts
                .iter()
                .filter(|one| one.b == other.name)
                .collect(),
            changes: all
                .changes
                .iter()
                .filter(|one| one.b == other.name)
                .collect(),
            faults: all
                .faults
                .iter()
                .filter(|one| one.b == other.name)
                .collect(),
        };
        Some(evidence.answer())
    };
    rest.iter().filter_map(answer).collect()
}

impl Evidence<'_> {
    fn answer(&self) -> Answer {
        let harms = self.harms();
        let brought = [&harms.grave, &harms.weighed, &harms.once];
        let brought: Vec<String> = brought.into_iter().flatten().cloned().collect();
        let (verdict, mut parts, rounds_needed) = self.judged(&harms);
        let brought_nothing = brought.is_empty();
        let is_compared = verdict != Verdict::NotShown || rounds_needed.is_some();
        if is_compared {
            parts.extend(self.waiting());
            if brought_nothing {
                parts.push("nothing new".to_owned());
            }
        }
        let begin = match verdict {
            Verdict::Yes => "Yes",
            Verdict::Partly => "Partly",
            Verdict::No => "No",
            Verdict::NotShown => "Not shown",
        };
        Answer {
            a: self.a.name.clone(),
            b: self.b.name.clone(),
            verdict,
            sentence: format!("{begin}: {}", parts.join("; ")),
            brought,
            rounds_needed,
            unseen: self.unseen().filter(|_| brought_nothing),
        }
    }

    /// The verdict, what it rests on, and the rounds that would decide.
    fn judged(&self, harms: &Harms) -> (Verdict, Vec<String>, Option<u32>) {
        let gains = self.gains();
        if !harms.grave.is_empty() {
            let parts = [&harms.grave[..], &harms.weighed, &gains].concat();
            return (Verdict::No, parts, None);
        }
        let stays = self.stays();
        if let Some(reason) = self.incomparable() {
            // what breaks in most rounds of both is there, whatever the work
            return match gains.is_empty() && stays.breaks {
                true => (Verdict::No, stays.parts, None),
                false => {
                    let parts = [&[reason], &harms.weighed[..], &harms.once].concat();
                    (Verdict::NotShown, parts, None)
                }
            };
        }
        let rounds = self.rounds();
        if rounds < LEAST_ROUNDS {
            let words = format!(
                "{} does not decide; {MIN_ROUNDS} would",
                rounds_words(rounds)
            );
            return (Verdict::NotShown, vec![words], Some(MIN_ROUNDS as u32));
        }
        if let [once, ..] = &harms.once[..] {
            let needed = 3 * rounds as u32;
            let words = format!(
                "{once}: {} do not decide; {needed} would",
                rounds_words(rounds)
            );
            return (
                Verdict::NotShown,
                [&[words], &gains[..]].concat(),
                Some(needed),
            );
        }
        if gains.is_empty() {
            return self.without_gain(harms, &stays);
        }
        let parts = [&gains[..], &stays.parts, &harms.weighed].concat();
        match stays.matters || !harms.weighed.is_empty() {
            true => (Verdict::Partly, parts, None),
            false => (Verdict::Yes, parts, None),
        }
    }

    fn without_gain(&self, harms: &Harms, stays: &Stays) -> (Verdict, Vec<String>, Option<u32>) {
        let parts = [&stays.parts[..], &harms.weighed].concat();
        let shift = self.shift(CountStatistic::Avoidable);
        if shift != Shift::Undecided && !parts.is_empty() {
            return (Verdict::No, parts, None);
        }
        let (subject, needed) = match shift {
            Shift::Undecided => {
                let avoidable = self.count(CountStatistic::Avoidable);
                let words = avoidable.map(|one| {
                    let (a, b) = (mean(one.a_mean), mean(one.b_mean));
                    format!("avoidable connections {a} → {b}")
                });
                let reduction = avoidable.and_then(|one| one.reduction);
                (words, self.rounds_needed(reduction))
            }
            _ => {
                let waiting = self.time(TimeStatistic::Outbound);
                let words = format!("{} opens no avoidable connection", self.a.name);
                (
                    Some(words),
                    self.rounds_needed(waiting.and_then(|one| one.saved_share)),
                )
            }
        };
        let rounds = self.rounds();
        let decide = format!("{} do not decide", rounds_words(rounds));
        let decide = match needed {
            Some(needed) => format!("{decide}; {needed} would"),
            None => decide,
        };
        let parts = [Some(decide), subject].into_iter().flatten();
        (Verdict::NotShown, parts.collect(), needed)
    }

    /// Rounds that both completed.
    fn rounds(&self) -> usize {
        self.a.rounds.len().min(self.b.rounds.len())
    }

    fn time(&self, statistic: TimeStatistic) -> Option<&TimeDifference> {
        let mut times = self.times.iter();
        times.find(|one| one.statistic == statistic).copied()
    }

    fn count(&self, statistic: CountStatistic) -> Option<&CountDifference> {
        let mut counts = self.counts.iter();
        counts.find(|one| one.count == statistic).copied()
    }

    /// What is gone or saved.
    fn gains(&self) -> Vec<String> {
        let mut gains = Vec::new();
        let avoidable = self.count(CountStatistic::Avoidable);
        let is_avoided = self.shift(CountStatistic::Avoidable) == Shift::Less;
        if let Some(one) = avoidable.filter(|_| is_avoided) {
            let (gone, all) = (mean(one.a_mean - one.b_mean), mean(one.a_mean));
            gains.push(format!("{gone} of {all} avoidable connections are gone"));
        }
        let (before, after) = (unsuccessful(self.a), unsuccessful(self.b));
        if after.is_less(before) {
            gains.push(format!(
                "failed requests {} → {}",
                before.words(),
                after.words()
            ));
        }
        let gone = |is_of_openings: bool| {
            let gone = self.changes.iter().filter(|one| {
                one.fate == FindingState::Gone
                    && one.finding.severity > Severity::Info
                    && one.finding.is_of_openings == is_of_openings
            });
            rules(gone)
        };
        // what the server ended was not the client's to avoid
        let (opened, causes) = (self.count(CountStatistic::Connections), gone(true));
        if let Some(one) = opened.filter(|_| !is_avoided && !causes.is_empty())
            && self.shift(CountStatistic::Connections) == Shift::Less
        {
            let (a, b) = (mean(one.a_mean), mean(one.b_mean));
            gains.push(format!(
                "connections {a} → {b}; gone: {}",
                causes.join(", ")
            ));
        }
        let gone = gone(false);
        if !gone.is_empty() {
            gains.push(format!("gone: {}", gone.join(", ")));
        }
        let better = self.under_faults(FaultResult::Better, |_| true);
        gains.extend(better.map(|kinds| format!("better under faults: {kinds}")));
        // without any other gain, less time alone is one
        if gains.is_empty()
            && let Some(waiting) = self.time(TimeStatistic::Outbound)
            && waiting.saved_share.is_some_and(|saved| saved.low > MATTERS)
        {
            gains.push("the programs wait less".to_owned());
        }
        gains
    }

    /// What was to be removed and is still there.
    fn stays(&self) -> Stays {
        let mut stays = Stays::default();
        let avoidable = self.count(CountStatistic::Avoidable);
        let shift = self.shift(CountStatistic::Avoidable);
        let causes = self.changes.iter().filter(|one| {
            let is_there = one.b_rounds as usize * 2 > self.b.rounds.len();
            is_there && one.finding.is_of_openings
        });
        let mut graver = causes.clone();
        let is_warned = graver.any(|one| one.finding.severity > Severity::Info);
        let by = match &rules(causes)[..] {
            [] => String::new(),
            causes => format!(" ({})", causes.join(", ")),
        };
        match avoidable {
            Some(one) if shift == Shift::Equal && one.a_mean > 0.0 => {
                let (all, left) = (mean(one.a_mean), mean(one.b_mean.min(one.a_mean)));
                let words = format!("{left} of {all} avoidable connections are still opened{by}");
                stays.parts.push(words);
                stays.matters = true;
            }
            Some(one) if shift == Shift::Less && one.b_mean > 0.0 => {
                let left = mean(one.b_mean);
                let verb = if left == "1" { "is" } else { "are" };
                stays.parts.push(format!("{left} {verb} still opened{by}"));
                stays.matters = is_warned || one.b_mean > FEW * one.a_mean;
            }
            _ => {}
        }
        let unchanged = self.changes.iter().filter(|one| {
            one.fate == FindingState::Unchanged
                && one.finding.severity > Severity::Info
                && GRAVE.contains(&one.finding.rule)
        });
        let unchanged = rules(unchanged);
        if !unchanged.is_empty() {
            stays.parts.push(format!("{} stays", unchanged.join(", ")));
            (stays.matters, stays.breaks) = (true, true);
        }
        stays
    }

    /// What the change brought.
    fn harms(&self) -> Harms {
        let mut harms = Harms::default();
        let (before, after) = (unsuccessful(self.a), unsuccessful(self.b));
        if before.is_less(after) {
            let words = format!("failed requests {} → {}", before.words(), after.words());
            harms.grave.push(words);
        }
        let avoidable = self.count(CountStatistic::Avoidable);
        // a program that does more may open more
        let per_request = |one: &ProgramFacts| {
            let requests = one.counted.requests.total.max(1) as f64;
            one.counted.avoidable as f64 / requests
        };
        let opens_more = self.shift(CountStatistic::Avoidable) == Shift::More
            && per_request(self.b) > (1.0 + MATTERS) * per_request(self.a);
        let is_new =
            |one: &&&FindingChange| one.a_rounds == 0 && one.finding.severity > Severity::Info;
        if let Some(one) = avoidable.filter(|_| opens_more) {
            let (a, b) = (mean(one.a_mean), mean(one.b_mean));
            let causes = self.changes.iter().filter(is_new);
            let causes = causes.filter(|one| one.finding.is_of_openings);
            let by: Vec<String> = causes.map(|one| place_of(one)).collect();
            let by = match &by[..] {
                [] => String::new(),
                causes => format!(": {}", causes.join(", ")),
            };
            harms
                .grave
                .push(format!("avoidable connections {a} → {b}{by}"));
        }
        // another cause of connections that were avoidable before brought none
        let new = self
            .changes
            .iter()
            .filter(is_new)
            .filter(|one| !(one.finding.is_of_openings && (opens_more || one.has_other_cause)));
        for one in new {
            let words = format!("new: {}", place_of(one));
            let is_grave =
                one.finding.severity == Severity::Error || GRAVE.contains(&one.finding.rule);
            match (one.fate, is_grave) {
                (FindingState::New, true) => harms.grave.push(words),
                (FindingState::New, false) => harms.weighed.push(words),
                _ => {
                    let of = count(self.b.rounds.len() as u64);
                    harms
                        .once
                        .push(format!("{words} in {} of {of} rounds", one.b_rounds));
                }
            }
        }
        // what keeps connections can lose them; what sends a request twice must not
        let is_repeated = |one: &FaultChange| one.b_outcome >= FaultOutcome::Truncated;
        let worse = self.under_faults(FaultResult::Worse, is_repeated);
        harms
            .grave
            .extend(worse.map(|kinds| format!("worse under faults: {kinds}")));
        let worse = self.under_faults(FaultResult::Worse, |one| !is_repeated(one));
        harms
            .weighed
            .extend(worse.map(|kinds| format!("worse under faults: {kinds}")));
        // what does more takes longer
        if !self.outcome.unlike.is_empty() {
            return harms;
        }
        for (statistic, name) in [
            (TimeStatistic::Outbound, "waiting"),
            (TimeStatistic::Cpu, "CPU time"),
        ] {
            let longer = self.time(statistic).and_then(|one| one.saved_share);
            if let Some(share) = longer.filter(|saved| saved.high < -MATTERS) {
                let words = format!("{name} {}", change(share));
                match statistic {
                    // the answer has it in any case
                    TimeStatistic::Outbound => harms.grave.push("the programs wait longer".into()),
                    _ => harms.weighed.push(words),
                }
            }
        }
        let memory = self.count(CountStatistic::Memory);
        if let Some((one, less)) = memory.and_then(|one| Some((one, one.reduction?)))
            && -less.high > MATTERS * one.a_mean
            && one.b_mean - one.a_mean > FEW_MB
        {
            let (a, b) = (mean(one.a_mean), mean(one.b_mean));
            harms.weighed.push(format!("memory {a} MB → {b} MB"));
        }
        harms
    }

    /// `rst failed to the caller, goaway sent twice`.
    fn under_faults(
        &self,
        result: FaultResult,
        is_meant: impl Fn(&FaultChange) -> bool,
    ) -> Option<String> {
        let ours = self.faults.iter().filter(|one| one.result == result);
        let words = ours
            .filter(|one| is_meant(one))
            .map(|one| format!("{} {}", one.kind, one.b_words));
        let words: Vec<String> = words.collect();
        match &words[..] {
            [] => None,
            [first, second, _, others @ ..] => {
                Some(format!("{first}, {second} and {} more", others.len() + 1))
            }
            few => Some(few.join(", ")),
        }
    }

    /// Why the two cannot be compared.
    fn incomparable(&self) -> Option<String> {
        let (before, after) = (unsuccessful(self.a), unsuccessful(self.b));
        // requests that no longer fail are a gain, and no other work
        let is_unlike = !self.outcome.unlike.is_empty() && !after.is_less(before);
        let unlike = is_unlike.then(|| {
            let reasons = self.outcome.unlike.join("; ");
            format!("the programs did not do the same work: {reasons}")
        });
        self.no_traffic().or(unlike).or_else(|| self.unseen())
    }

    /// Why nothing is known of one of the two.
    fn no_traffic(&self) -> Option<String> {
        let mut both = [self.a, self.b].into_iter();
        both.find_map(|one| {
            let no_success = one.no_success().map(|reason| {
                let name = &one.name;
                format!("{name} has no success: {reason}")
            });
            let is_empty = one.counted.is_empty();
            let empty = is_empty.then(|| format!("{} sends no request", one.name));
            let hidden = one.counted.unobserved.hides_findings();
            let hidden = hidden.map(|reason| format!("{}: {reason}", one.name));
            no_success.or(empty).or(hidden)
        })
    }

    /// Why the program may have findings that were not seen.
    fn unseen(&self) -> Option<String> {
        let fewer = self.b.sends_fewer(self.a);
        let fewer = fewer.then(|| format!("{} sends fewer requests", self.b.name));
        let mut not_tested = self.changes.iter();
        let not_tested = not_tested.find_map(|one| one.not_tested.clone());
        self.no_traffic().or(fewer).or(not_tested)
    }

    /// How a count differs: by every round, or by the interval.
    fn shift(&self, statistic: CountStatistic) -> Shift {
        let of = |program: &ProgramFacts| -> Vec<u64> {
            let figure = |round: &RoundFigures| match statistic {
                CountStatistic::Avoidable => round.avoidable,
                _ => round.connections,
            };
            program.rounds.iter().map(figure).collect()
        };
        let (a, b) = (of(self.a), of(self.b));
        let ends = |of: &[u64]| Some((*of.iter().min()?, *of.iter().max()?));
        let (Some((a_least, a_most)), Some((b_least, b_most))) = (ends(&a), ends(&b)) else {
            return Shift::Undecided;
        };
        let one = self.count(statistic);
        let interval = one.and_then(|one| one.reduction);
        match () {
            () if b_most < a_least => Shift::Less,
            () if b_least > a_most => Shift::More,
            () if one.is_some_and(|one| one.a_mean == one.b_mean) => Shift::Equal,
            () if interval.is_some_and(|less| less.low > 0.0) => Shift::Less,
            () if interval.is_some_and(|less| less.high < 0.0) => Shift::More,
            // most of them are certainly still there
            () if interval.zip(one).is_some_and(|(less, one)| {
                less.high < one.a_mean / 2.0 && less.low > -one.a_mean / 2.0
            }) =>
            {
                Shift::Equal
            }
            () => Shift::Undecided,
        }
    }

    /// `waiting -55 % (-61 to -48 %)`.
    fn waiting(&self) -> Option<String> {
        let one = self.time(TimeStatistic::Outbound)?;
        Some(match one.saved_share {
            None => {
                let (a, b) = (time(one.a_ms), time(one.b_ms));
                format!("waiting {a} → {b}, without an interval")
            }
            Some(saved) if one.significant == Some(true) => format!("waiting {}", change(saved)),
            Some(saved) if saved.low == saved.high => "no difference in waiting".to_owned(),
            Some(saved) => format!("no difference in waiting was shown ({})", ends(saved)),
        })
    }

    /// Rounds after which an interval of this difference would leave out zero, if the estimate
    /// stays.
    fn rounds_needed(&self, difference: Option<Interval>) -> Option<u32> {
        let rounds = self.rounds();
        if rounds < MIN_ROUNDS {
            return Some(MIN_ROUNDS as u32);
        }
        let Interval { value, low, high } = difference?;
        let needed = rounds as f64 * ((high - low) / 2.0 / value).powi(2);
        // in tens, and never those that did not decide
        let needed = (needed / 10.0).ceil().max((rounds / 10 + 1) as f64) * 10.0;
        (needed <= MOST_ROUNDS).then_some(needed as u32)
    }
}

/// Requests that failed or had an error response, of all.
#[derive(Clone, Copy)]
struct Unsuccessful {
    failed: u64,
    all: u64,
}

fn unsuccessful(program: &ProgramFacts) -> Unsuccessful {
    Unsuccessful {
        failed: program.unsuccessful(),
        all: program.counted.requests.total,
    }
}

impl Unsuccessful {
    fn share(self) -> f64 {
        self.failed as f64 / self.all.max(1) as f64
    }

    /// Whether fewer fail, also as a share: one that is sent again until it succeeds fails before.
    fn is_less(self, other: Unsuccessful) -> bool {
        self.failed < other.failed && other.share() - self.share() > FAILS
    }

    fn words(self) -> String {
        format!("{} of {}", count(self.failed), count(self.all))
    }
}

/// The rules of findings, each once.
fn rules<'a>(changes: impl Iterator<Item = &'a &'a FindingChange>) -> Vec<&'static str> {
    let mut rules: Vec<&'static str> = Vec::new();
    for change in changes {
        if !rules.contains(&change.finding.rule) {
            rules.push(change.finding.rule);
        }
    }
    rules
}

/// `retried-request at http://api.example (app.py:12 charge)`.
fn place_of(change: &FindingChange) -> String {
    let finding = &change.finding;
    let place = finding.places.first();
    let place = place.map(|place| format!(" ({} {})", place.position(), place.function));
    let place = place.unwrap_or_default();
    format!("{} at {}{place}", finding.rule, finding.subjects())
}

/// `-55 % (-61 to -48 %)` of a share that is saved.
fn change(saved: Interval) -> String {
    format!("{} ({})", signed_percent(-saved.value), ends(saved))
}

fn ends(saved: Interval) -> String {
    let (low, high) = (-saved.high, -saved.low);
    let low = signed_percent(low);
    let low = low.strip_suffix(" %").unwrap_or(&low);
    format!("{low} to {}", signed_percent(high))
}

fn rounds_words(rounds: usize) -> String {
    counted(rounds as u64, "round")
}
