//! Tiers of the first calls, and the cause of each: from the phases of the exchanges, and from what
//! the client's kernel or a capture shows of the packets. Where none of these shows one, that is
//! the statement. The same for `bench`, `watch` and `audit`. Must not know who recorded the calls.

use crate::figures::NANOS_PER_MS;
use intact_ledger::{Certainty, Exchange, Phase, Reuse, Span};
use intact_statistics::{Explained, PhaseSeries, Tiers, explaining_phase, tiers};
use intact_units::number::{time, whole_percent};
use serde::Serialize;
use std::ops::Range;

/// Calls that it takes: among fewer, chance makes two tiers of one level in up to 5 % of the cases.
const LEAST: usize = 20;
/// The share of slow calls with a retransmission from which that is the cause. A lost response does
/// not always show at the client.
const RETRANSMITTED: f64 = 0.25;
/// Linux repeats a SYN after a second; in milliseconds.
const LOST_SYN_MS: f64 = 900.0;
/// Linux delays an acknowledgement for 40 ms (`TCP_DELACK_MIN`); in milliseconds.
const DELAYED_ACK_MS: Range<f64> = 37.0..50.0;
/// The share of slow calls with a delayed acknowledgement in the packets from which that is the
/// cause.
const ACK_DELAYED: f64 = 0.5;
/// Handshakes that show how much the path alone varies.
const LEAST_HANDSHAKES: usize = 3;
/// The share of the difference that they must vary by to explain it.
const JITTER: f64 = 0.5;
/// The longest handshake of a short path, such as loopback, in milliseconds.
const SHORT_PATH_MS: f64 = 0.5;
/// How likely handshakes may miss a slow path by chance.
const MISSED: f64 = 0.05;
/// How long before the response an acknowledgement came alone, in milliseconds.
const ALONE_MS: f64 = 1.0;
/// The share of the difference that one of its parts explains.
const EXPLAINED: f64 = 0.6;
/// The shortest time before a segment is sent again, in milliseconds (`TCP_RTO_MIN` of Linux is 200
/// ms).
const RETRANSMISSION_MS: f64 = 100.0;

/// Why some of the first calls take longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TierCause {
    /// They opened a connection.
    NewConnection,
    /// Segments were lost and sent again.
    Retransmission,
    /// Nagle's algorithm at one end waits for a delayed acknowledgement of the other.
    DelayedAck,
    /// The delay of the path varies.
    Jitter,
    /// The server sent the body later than the header section.
    HeadersToBody,
    /// The server took longer.
    ServerWait,
    /// The server or the path took longer: nothing separates them.
    ServerOrPath,
    /// Another phase.
    OtherPhase,
    /// No cause was seen.
    NotSeen,
}

/// One tier of the first calls.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FirstCallTier {
    /// How many calls it has.
    pub calls: u64,
    /// Their mean latency, in milliseconds.
    pub mean_ms: f64,
    /// Why they take longer; absent for the fastest.
    pub cause: Option<TierCause>,
}

/// The tiers of the first calls.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FirstCallTiers {
    /// How many calls take how long, and why.
    pub sentence: String,
    /// The tiers, the fastest first.
    pub levels: Vec<FirstCallTier>,
}

/// What the first calls are: the words before and after their number.
#[derive(Clone, Copy, Debug)]
pub struct CallNoun(pub &'static str, pub &'static str);

/// What of a call shows the cause of its time.
#[derive(Clone, Debug)]
pub struct CallEvidence {
    /// Latency with setup, in milliseconds.
    ms: f64,
    /// The time of each phase in the order of [`Phase::ALL`], in milliseconds.
    phases: [Option<f64>; Phase::ALL.len()],
    /// Whether it waited for a setup.
    is_fresh: bool,
    /// Whether it was complete and no warm-up.
    is_steady: bool,
    is_inferred: bool,
    retransmissions: Option<u32>,
    delayed_acks: Option<u32>,
    /// The wait until the request was acknowledged, and after that, in milliseconds.
    waits: Option<[f64; 2]>,
}

impl CallEvidence {
    /// What a call shows.
    pub fn of(call: &Exchange) -> CallEvidence {
        // a log has one time for the whole call
        let is_whole = call.spans.wait == Some(Span::new(call.at, call.end));
        let time_of = |phase| call.spans.of(phase).map(|span| ms(span.nanos()));
        let waits = call.acknowledged_after.zip(call.spans.wait);
        CallEvidence {
            ms: ms(call.latency()),
            phases: Phase::ALL.map(|phase| time_of(phase).filter(|_| !is_whole)),
            is_fresh: call.reuse == Some(Reuse::Fresh),
            is_steady: !call.warmup && call.outcome.is_ok(),
            is_inferred: matches!(call.certainty, Certainty::Inferred(_)),
            retransmissions: call.retransmissions,
            delayed_acks: call.delayed_acks,
            waits: waits.map(|(after, wait)| {
                let until = after.min(wait.nanos());
                [ms(until), ms(wait.nanos() - until)]
            }),
        }
    }
}

impl FirstCallTiers {
    /// The tiers of the complete calls that are no warm-up; `None` where there are no two, or fewer
    /// than 20 calls. The handshakes of all calls show the path.
    pub fn of(calls: &[CallEvidence], noun: CallNoun) -> Option<FirstCallTiers> {
        let steady: Vec<&CallEvidence> = calls.iter().filter(|call| call.is_steady).collect();
        let times: Vec<f64> = steady.iter().map(|call| call.ms).collect();
        let found = tiers(&times).filter(|_| times.len() >= LEAST)?;
        let evidence = Evidence {
            handshakes: Handshakes::of(calls),
            phases: phases(&steady),
            calls: steady,
            found,
        };
        Some(evidence.conclude(noun))
    }
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / NANOS_PER_MS
}

/// The calls with their tiers.
struct Evidence<'a> {
    calls: Vec<&'a CallEvidence>,
    found: Tiers,
    /// The time of each call in each phase.
    phases: Vec<Vec<Option<f64>>>,
    handshakes: Handshakes,
}

impl<'a> Evidence<'a> {
    fn conclude(&self, CallNoun(before, after): CallNoun) -> FirstCallTiers {
        let is_inferred = self.calls.iter().any(|call| call.is_inferred);
        let about = if is_inferred { "~" } else { "" };
        let [fastest, slower @ ..] = &self.found.levels[..] else {
            unreachable!("two tiers at least");
        };
        let first = FirstCallTier {
            calls: fastest.calls as u64,
            mean_ms: fastest.mean,
            cause: None,
        };
        let mut sentence = format!(
            "{about}{} of {before} {about}{} {after} take {}",
            fastest.calls,
            self.calls.len(),
            time(fastest.mean)
        );
        let mut levels = vec![first];
        for (nth, tier) in slower.iter().enumerate() {
            let (cause, reason) = self.cause(nth + 1);
            let separator = if nth == 0 { "," } else { ";" };
            let words = format!(
                "{separator} {about}{} take {}: {reason}",
                tier.calls,
                time(tier.mean)
            );
            sentence.push_str(&words);
            levels.push(FirstCallTier {
                calls: tier.calls as u64,
                mean_ms: tier.mean,
                cause: Some(cause),
            });
        }
        FirstCallTiers { sentence, levels }
    }

    /// The calls of a tier.
    fn of_tier(&self, level: usize) -> impl Iterator<Item = &'a CallEvidence> {
        let with_level = self.calls.iter().zip(&self.found.level_of);
        with_level.filter_map(move |(call, of)| (*of == level).then_some(*call))
    }

    /// How many calls of a tier are so, if at least this share of them is.
    fn count(
        &self,
        level: usize,
        share: f64,
        is_so: impl Fn(&CallEvidence) -> bool,
    ) -> Option<usize> {
        let count = self.of_tier(level).filter(|call| is_so(call)).count();
        (count as f64 >= share * self.found.levels[level].calls as f64).then_some(count)
    }

    /// The cause of a tier, and the evidence in words.
    fn cause(&self, level: usize) -> (TierCause, String) {
        let of = self.found.levels[level].calls;
        let all_fresh = |level| self.of_tier(level).all(|call| call.is_fresh);
        let any_fresh = |level| self.of_tier(level).any(|call| call.is_fresh);
        if all_fresh(level) && !(0..level).any(any_fresh) {
            let words = "the slow ones waited for the setup of a connection".to_owned();
            return (TierCause::NewConnection, words);
        }
        let is_resent = |call: &CallEvidence| call.retransmissions.is_some_and(|count| count > 0);
        if let Some(resent) = self.count(level, RETRANSMITTED, is_resent) {
            let words = format!(
                "retransmission: in {resent} of the {of} slow ones segments were sent again"
            );
            return (TierCause::Retransmission, words);
        }
        let is_delayed = |call: &CallEvidence| call.delayed_acks.is_some_and(|count| count > 0);
        if let Some(delayed) = self.count(level, ACK_DELAYED, is_delayed) {
            let words = format!(
                "delayed ACK: in {delayed} of the {of} slow ones data was sent only after an acknowledgement that came late"
            );
            return (TierCause::DelayedAck, words);
        }
        // what a new connection costs is no difference between two that have one
        let base = (0..level).find(|&faster| all_fresh(faster) == all_fresh(level));
        let pair = [base.unwrap_or(0), level];
        let explained = self.explained(pair);
        let difference = self.found.levels[pair[1]].mean - self.found.levels[pair[0]].mean;
        if let Some(range) = jitter(self.handshakes.range, difference, explained) {
            let words = format!(
                "jitter: the TCP handshakes, in which no server program takes part, vary by {} too",
                time(range)
            );
            return (TierCause::Jitter, words);
        }
        let sees_acks = self.of_tier(level).any(|call| call.delayed_acks.is_some());
        let (cause, words) = explained.map_or_else(
            || (TierCause::NotSeen, self.why_not_seen(level)),
            |one| of_phase(one, !sees_acks),
        );
        match cause {
            TierCause::ServerWait => self.server_or_path(pair, &words),
            _ => (cause, words),
        }
    }

    /// Which of the two made the wait longer, if that can be seen. `words`: that it is longer.
    fn server_or_path(&self, pair: [usize; 2], words: &str) -> (TierCause, String) {
        let [fast, slow] = pair.map(|level| self.mean_waits(level));
        let came_alone = slow.is_some_and(|[_, after]| after >= ALONE_MS);
        if let (Some(fast), Some(slow), true) = (fast, slow, came_alone) {
            let [until, after] = [slow[0] - fast[0], slow[1] - fast[1]];
            if after >= EXPLAINED * (until + after) {
                let words = format!("server wait: {words}, after its TCP acknowledged the request");
                return (TierCause::ServerWait, words);
            }
        }
        let [fast, slow_calls] = pair.map(|level| self.found.levels[level].calls as f64);
        if self.handshakes.rule_out(slow_calls / (fast + slow_calls)) {
            return (TierCause::ServerWait, format!("server wait: {words}"));
        }
        let why = match slow {
            // a TCP may delay it for up to 500 ms (RFC 9293 section 3.8.6.3)
            Some(_) if came_alone => "the acknowledgement of the request may have been delayed",
            Some(_) => "the acknowledgement of the request came with the response",
            None => "no acknowledgement of the request was seen",
        };
        let words = format!("server or path: {words}, and {why}");
        (TierCause::ServerOrPath, words)
    }

    /// The mean waits of a tier until the acknowledgement and after it, if half of its calls have
    /// one.
    fn mean_waits(&self, level: usize) -> Option<[f64; 2]> {
        let count = self.count(level, ACK_DELAYED, |call| call.waits.is_some())? as f64;
        let waits = || self.of_tier(level).filter_map(|call| call.waits);
        let mean = |nth: usize| waits().map(|both| both[nth]).sum::<f64>() / count;
        Some([mean(0), mean(1)])
    }

    /// The phase that explains the difference of two tiers.
    fn explained(&self, pair: [usize; 2]) -> Option<Explained<'_>> {
        let named = Phase::ALL.iter().zip(&self.phases);
        let named = named.map(|(phase, times)| PhaseSeries {
            name: phase.id(),
            times,
        });
        explaining_phase(&self.found, pair, &named.collect::<Vec<_>>())
    }

    /// That no cause was seen, and what could not show one.
    fn why_not_seen(&self, level: usize) -> String {
        let has_phases = |call: &CallEvidence| {
            let mut phases = Phase::ALL.iter().zip(&call.phases);
            phases.any(|(phase, time)| !phase.is_setup() && time.is_some())
        };
        let is_counted =
            |call: &CallEvidence| call.retransmissions.is_some() || call.ms < RETRANSMISSION_MS;
        let phases = match self.of_tier(level).any(has_phases) {
            true => "no phase makes the difference",
            false => "the phases of these calls were not recorded",
        };
        let segments = match self.of_tier(level).all(is_counted) {
            true => "no retransmission was counted",
            false => "retransmissions could not be counted",
        };
        format!("no cause was seen: {phases}, and {segments}")
    }
}

/// By how much handshakes vary, where that explains a difference in the wait or in the handshakes
/// themselves.
fn jitter(
    handshakes: Option<f64>,
    difference: f64,
    explained: Option<Explained<'_>>,
) -> Option<f64> {
    let fits = match explained {
        None => true,
        Some(one) => matches!(one.phase, "wait" | "connect") && !is_lost_syn(one),
    };
    handshakes.filter(|range| fits && *range >= JITTER * difference)
}

/// A handshake that is a second late lost its SYN; that is no jitter.
fn is_lost_syn(one: Explained<'_>) -> bool {
    one.phase == "connect" && one.by >= LOST_SYN_MS
}

/// The cause that a phase shows. `infers_acks`: packets were not seen, so the time alone shows a
/// delayed acknowledgement.
fn of_phase(one: Explained<'_>, infers_acks: bool) -> (TierCause, String) {
    let share = whole_percent(one.share.min(1.0));
    let place = format!("{share} of the difference is {}", phase_words(one.phase));
    let is_delayed_ack = infers_acks && DELAYED_ACK_MS.contains(&one.by);
    match one.phase {
        "wait" | "headers_to_body" | "receive" if is_delayed_ack => {
            let longer = time(one.by);
            let words = format!(
                "delayed ACK: {place}, {longer} longer, as where Nagle's algorithm waits for an acknowledgement"
            );
            (TierCause::DelayedAck, words)
        }
        "headers_to_body" => (
            TierCause::HeadersToBody,
            format!("headers-to-body gap: {place}"),
        ),
        "wait" => (TierCause::ServerWait, place),
        "connect" if is_lost_syn(one) => {
            let words = format!("retransmission: {place}, as after a lost SYN");
            (TierCause::Retransmission, words)
        }
        _ => (TierCause::OtherPhase, place),
    }
}

/// The time of each call in each phase, in the order of [`Phase::ALL`].
fn phases(calls: &[&CallEvidence]) -> Vec<Vec<Option<f64>>> {
    let each = 0..Phase::ALL.len();
    each.map(|nth| calls.iter().map(|call| call.phases[nth]).collect())
        .collect()
}

/// The TCP handshakes of the calls, which show the path alone, but those that lost a SYN.
struct Handshakes {
    count: usize,
    /// By how much they vary, in milliseconds, without the shortest and the longest 5 %.
    range: Option<f64>,
    longest: f64,
}

impl Handshakes {
    fn of(calls: &[CallEvidence]) -> Handshakes {
        let times = calls
            .iter()
            .filter_map(|call| call.phases[Phase::Connect as usize]);
        let mut times: Vec<f64> = times.filter(|time| *time < LOST_SYN_MS).collect();
        times.sort_by(f64::total_cmp);
        let count = times.len();
        let aside = count / 20;
        Handshakes {
            count,
            range: (count >= LEAST_HANDSHAKES).then(|| times[count - 1 - aside] - times[aside]),
            longest: times.last().copied().unwrap_or(f64::INFINITY),
        }
    }

    /// Whether handshakes that hardly vary show that the path did not make this share of the calls
    /// slow: it is short, or one of them would have been slow.
    fn rule_out(&self, share: f64) -> bool {
        let missed = (1.0 - share).powi(self.count as i32);
        self.longest <= SHORT_PATH_MS || self.range.is_some() && missed <= MISSED
    }
}

fn phase_words(phase: &str) -> &'static str {
    match phase {
        "wait" => "the wait for the response",
        "headers_to_body" => "the gap between the header section and the body of the response",
        "connect" => "the TCP handshake",
        "ssl" => "the TLS handshake",
        "dns" => "the lookup",
        "send" => "sending the request",
        "receive" => "receiving the response",
        _ => "the time before the request was sent",
    }
}

#[cfg(test)]
mod tests;
