//! Did a change do what it is for? One sentence for a pull request: what is gone, what is saved, and
//! what the change brought. Must not answer yes where something was not observed, or where the
//! rounds do not decide.

use super::count_difference::{CountDifference, CountStatistic};
use super::finding_change::{FindingChange, FindingState};
use super::outcome::Outcome;
use super::variant::{ProgramFacts, RoundFigures};
use crate::time_difference::{TimeDifference, TimeStatistic};
use intact_document::finding::Severity;
use intact_document::{Claim, ClaimKind};
use intact_ledger::kinds;
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
/// With fewer rounds nothing is decided.
const LEAST_ROUNDS: usize = 2;
/// Findings of these rules are no risk to weigh: something is lost, repeated or kept for ever.
const GRAVE: [&str; 9] = [
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
    /// Why the two cannot be compared.
    #[serde(skip)]
    pub(super) incomparable: Option<String>,
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

/// The answers for each program that is compared with the first.
pub(super) fn answers(
    programs: &[ProgramFacts],
    outcomes: &[Outcome],
    times: &[TimeDifference],
    counts: &[CountDifference],
    changes: &[FindingChange],
) -> Vec<Answer> {
    let Some((first, rest)) = programs.split_first() else {
        return Vec::new();
    };
    let answer = |other: &ProgramFacts| {
        let outcome = outcomes.iter().find(|one| one.b == other.name)?;
        let evidence = Evidence {
            a: first,
            b: other,
            outcome,
            times: times.iter().filter(|one| one.b == other.name).collect(),
            counts: counts.iter().filter(|one| one.b == other.name).collect(),
            changes: changes.iter().filter(|one| one.b == other.name).collect(),
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
        let is_compared = verdict != Verdict::NotShown || rounds_needed.is_some();
        if is_compared {
            parts.extend(self.waiting());
            if brought.is_empty() {
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
            incomparable: self.incomparable().filter(|_| harms.grave.is_empty()),
        }
    }

    /// The verdict, what it rests on, and the rounds that would decide.
    fn judged(&self, harms: &Harms) -> (Verdict, Vec<String>, Option<u32>) {
        let gains = self.gains();
        if !harms.grave.is_empty() {
            let parts = [&harms.grave[..], &harms.weighed, &gains].concat();
            return (Verdict::No, parts, None);
        }
        if let Some(reason) = self.incomparable() {
            return (Verdict::NotShown, vec![reason], None);
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
        let stays = self.stays();
        if gains.is_empty() {
            return self.without_gain(harms, stays);
        }
        let parts = [&gains[..], &stays, &harms.weighed].concat();
        match stays.is_empty() && harms.weighed.is_empty() {
            true => (Verdict::Yes, parts, None),
            false => (Verdict::Partly, parts, None),
        }
    }

    fn without_gain(
        &self,
        harms: &Harms,
        stays: Vec<String>,
    ) -> (Verdict, Vec<String>, Option<u32>) {
        let parts = [&stays[..], &harms.weighed].concat();
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
        if let Some(one) =
            avoidable.filter(|_| self.shift(CountStatistic::Avoidable) == Shift::Less)
        {
            let (gone, all) = (mean(one.a_mean - one.b_mean), mean(one.a_mean));
            gains.push(format!("{gone} of {all} avoidable connections are gone"));
        }
        let (before, after) = (unsuccessful(self.a), unsuccessful(self.b));
        if before.share() - after.share() > FAILS {
            gains.push(format!(
                "failed requests {} → {}",
                before.words(),
                after.words()
            ));
        }
        let gone = self.changes.iter().filter(|one| {
            one.fate == FindingState::Gone
                && one.finding.severity > Severity::Info
                && !one.finding.is_of_openings
        });
        let gone = rules(gone);
        if !gone.is_empty() {
            gains.push(format!("gone: {}", gone.join(", ")));
        }
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
    fn stays(&self) -> Vec<String> {
        let mut stays = Vec::new();
        let avoidable = self.count(CountStatistic::Avoidable);
        let shift = self.shift(CountStatistic::Avoidable);
        let causes = self.changes.iter().filter(|one| {
            let is_there = one.b_rounds as usize * 2 > self.b.rounds.len();
            is_there && one.finding.is_of_openings && one.finding.severity > Severity::Info
        });
        let causes = rules(causes);
        let by = match &causes[..] {
            [] => String::new(),
            causes => format!(" ({})", causes.join(", ")),
        };
        match avoidable {
            Some(one) if shift == Shift::Equal && one.a_mean > 0.0 => {
                let all = mean(one.a_mean);
                stays.push(format!(
                    "{all} of {all} avoidable connections are still opened{by}"
                ));
            }
            Some(one) if shift == Shift::Less && one.b_mean > 0.0 => {
                let is_much = one.b_mean > one.a_mean / 2.0;
                if is_much || !causes.is_empty() {
                    stays.push(format!("{} are still opened{by}", mean(one.b_mean)));
                }
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
            stays.push(format!("{} stays", unchanged.join(", ")));
        }
        stays
    }

    /// What the change brought.
    fn harms(&self) -> Harms {
        let mut harms = Harms::default();
        let (before, after) = (unsuccessful(self.a), unsuccessful(self.b));
        let fails_more = after.share() - before.share() > FAILS;
        if fails_more {
            let words = format!("failed requests {} → {}", before.words(), after.words());
            harms.grave.push(words);
        }
        let avoidable = self.count(CountStatistic::Avoidable);
        let opens_more = self.shift(CountStatistic::Avoidable) == Shift::More;
        if let Some(one) = avoidable.filter(|_| opens_more) {
            let (a, b) = (mean(one.a_mean), mean(one.b_mean));
            harms.grave.push(format!("avoidable connections {a} → {b}"));
        }
        let new = self.changes.iter().filter(|one| {
            let is_new = one.a_rounds == 0 && one.finding.severity > Severity::Info;
            // another cause of connections that were avoidable before brought none
            is_new && (!one.has_other_cause || opens_more)
        });
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

    /// Why the two cannot be compared.
    fn incomparable(&self) -> Option<String> {
        for one in [self.a, self.b] {
            if let Some(reason) = one.no_success() {
                return Some(format!("{} has no success: {reason}", one.name));
            }
            if one.counted.is_empty() {
                return Some(format!("{} sends no request", one.name));
            }
            if let Some(reason) = one.counted.unobserved.hides_findings() {
                return Some(format!("{}: {reason}", one.name));
            }
        }
        let (before, after) = (unsuccessful(self.a), unsuccessful(self.b));
        // requests that no longer fail are a gain, and no other work
        if !self.outcome.unlike.is_empty() && before.share() - after.share() <= FAILS {
            let reasons = self.outcome.unlike.join("; ");
            return Some(format!("the programs did not do the same work: {reasons}"));
        }
        let not_tested = self.changes.iter();
        let mut not_tested = not_tested.filter(|one| one.fate == FindingState::NotTested);
        let reason = not_tested.find_map(|one| one.not_tested.as_ref())?;
        Some(reason.clone())
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
