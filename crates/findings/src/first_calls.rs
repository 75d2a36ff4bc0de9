//! Two tiers of the first calls, and the cause of their difference: from the phases of the exchanges and from what the client's kernel
//! sent again. Where neither shows one, that is the statement. Must not know who recorded the calls.

use crate::figures::NANOS_PER_MS;
use crate::stats::{Explained, PhaseSeries, Tiers, explaining_phase, tiers};
use intact_ledger::{Exchange, Phase, Reuse};
use intact_units::number::{time, whole_percent};
use serde::Serialize;
use std::ops::Range;

/// The share of slow calls with a retransmission from which that is the cause. A lost response does not always show at the client.
const RETRANSMITTED: f64 = 0.25;
/// Linux repeats a SYN after a second; in milliseconds.
const LOST_SYN_MS: f64 = 900.0;
/// Linux delays an acknowledgement for 40 ms (`TCP_DELACK_MIN`); in milliseconds.
const DELAYED_ACK_MS: Range<f64> = 37.0..50.0;
/// Handshakes that show how much the path alone varies.
const LEAST_HANDSHAKES: usize = 3;
/// The share of the difference that they must vary by to explain it.
const JITTER: f64 = 0.5;

/// Why some of the first calls take longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Another phase.
    OtherPhase,
    /// No cause was seen.
    NotSeen,
}

/// Two tiers of the first calls.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FirstCallTiers {
    pub(crate) cause: TierCause,
    /// How many calls take how long, and why.
    pub(crate) sentence: String,
    /// Means of the fast and of the slow tier, in milliseconds.
    pub(crate) means_ms: [f64; 2],
}

impl FirstCallTiers {
    /// The tiers of the complete calls that are no warm-up; `None` where there are no two. The handshakes of all calls show the path.
    pub(crate) fn of(calls: &[&Exchange]) -> Option<FirstCallTiers> {
        let is_steady = |call: &&&Exchange| !call.warmup && call.outcome.is_ok();
        let steady: Vec<&Exchange> = calls.iter().filter(is_steady).copied().collect();
        let times: Vec<f64> = steady.iter().map(|call| ms(call.latency())).collect();
        let found = tiers(&times)?;
        let means_ms = [found.fast.mean, found.slow.mean];
        let (cause, reason) = cause(calls, &steady, &found);
        let sentence = format!(
            "{} of the first {} calls take {}, {} take {}: {reason}",
            found.fast.calls,
            times.len(),
            time(means_ms[0]),
            found.slow.calls,
            time(means_ms[1])
        );
        Some(FirstCallTiers {
            cause,
            sentence,
            means_ms,
        })
    }
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / NANOS_PER_MS
}

/// The cause, and the evidence in words.
fn cause(calls: &[&Exchange], steady: &[&Exchange], found: &Tiers) -> (TierCause, String) {
    let mut with_tier = steady.iter().zip(&found.is_slow);
    if with_tier.all(|(call, &slow)| (call.reuse == Some(Reuse::Fresh)) == slow) {
        let words = "the slow ones opened a connection".to_owned();
        return (TierCause::NewConnection, words);
    }
    let slow = steady.iter().zip(&found.is_slow).filter(|(_, slow)| **slow);
    let repeated = slow.filter(|(call, _)| call.retransmissions.is_some_and(|count| count > 0));
    let repeated = repeated.count();
    if repeated as f64 >= RETRANSMITTED * found.slow.calls as f64 {
        let of = found.slow.calls;
        let words = format!(
            "retransmission: in {repeated} of the {of} slow ones the client's kernel sent segments again"
        );
        return (TierCause::Retransmission, words);
    }
    let series = phases(steady);
    let named = Phase::ALL.iter().zip(&series);
    let named = named.map(|(phase, times)| PhaseSeries {
        name: phase.id(),
        times,
    });
    let explained = explaining_phase(found, &named.collect::<Vec<_>>());
    let difference = found.slow.mean - found.fast.mean;
    if let Some(range) = jitter(calls, difference, explained) {
        let words = format!(
            "jitter: the TCP handshakes, in which no server program takes part, vary by {} too",
            time(range)
        );
        return (TierCause::Jitter, words);
    }
    explained.map_or_else(
        || {
            let words = "no cause was seen: no phase makes the difference, and no retransmission was counted";
            (TierCause::NotSeen, words.to_owned())
        },
        of_phase,
    )
}

/// By how much handshakes vary, where that explains a difference in the wait or in the handshakes themselves.
fn jitter(calls: &[&Exchange], difference: f64, explained: Option<Explained<'_>>) -> Option<f64> {
    let fits = match explained {
        None => true,
        Some(one) => matches!(one.phase, "wait" | "connect") && !is_lost_syn(one),
    };
    handshake_range(calls).filter(|range| fits && *range >= JITTER * difference)
}

/// A handshake that is a second late lost its SYN; that is no jitter.
fn is_lost_syn(one: Explained<'_>) -> bool {
    one.phase == "connect" && one.by >= LOST_SYN_MS
}

/// The cause that a phase shows.
fn of_phase(one: Explained<'_>) -> (TierCause, String) {
    let share = whole_percent(one.share.min(1.0));
    let place = format!("{share} of the difference is {}", phase_words(one.phase));
    let is_delayed_ack = DELAYED_ACK_MS.contains(&one.by);
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
        "wait" => (TierCause::ServerWait, format!("server wait: {place}")),
        "connect" if is_lost_syn(one) => {
            let words = format!("retransmission: {place}, as after a lost SYN");
            (TierCause::Retransmission, words)
        }
        _ => (TierCause::OtherPhase, place),
    }
}

/// The time of each call in each phase, in the order of [`Phase::ALL`].
fn phases(calls: &[&Exchange]) -> Vec<Vec<Option<f64>>> {
    let of = |call: &&Exchange, phase| call.spans.of(phase).map(|span| ms(span.nanos()));
    let each = Phase::ALL.iter();
    each.map(|&phase| calls.iter().map(|call| of(call, phase)).collect())
        .collect()
}

/// By how much the TCP handshakes of the calls vary, in milliseconds. The shortest and the longest 5 % are left out, and those
/// that lost a SYN.
fn handshake_range(calls: &[&Exchange]) -> Option<f64> {
    let spans = calls.iter().filter_map(|call| call.spans.connect);
    let times = spans.map(|span| ms(span.nanos()));
    let mut times: Vec<f64> = times.filter(|time| *time < LOST_SYN_MS).collect();
    times.sort_by(f64::total_cmp);
    let aside = times.len() / 20;
    let ends = (times.get(aside)?, times.get(times.len() - 1 - aside)?);
    (times.len() >= LEAST_HANDSHAKES).then_some(ends.1 - ends.0)
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
        _ => "waiting for a connection",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::{Nanos, Span};

    /// 30 reused calls of 5 ms; every third is changed.
    fn calls(change: impl Fn(&mut Exchange, u64)) -> Vec<Exchange> {
        let call = |nth: u64| {
            let mut one = Exchange::new(nth, Nanos(0));
            one.reuse = Some(Reuse::Reused);
            let phases = [(Phase::Wait, 4_000 + nth * 10), (Phase::Receive, 1_000)];
            phases
                .iter()
                .for_each(|&(phase, us)| lengthen(&mut one, phase, us));
            if nth.is_multiple_of(3) {
                change(&mut one, nth);
            }
            one
        };
        (0..30).map(call).collect()
    }

    /// Adds microseconds to a phase.
    fn lengthen(one: &mut Exchange, phase: Phase, us: u64) {
        let more = us * 1_000;
        let of = |span: &mut Option<Span>| {
            let nanos = span.map_or(0, |span| span.nanos());
            *span = Some(Span::new(Nanos(0), Nanos(nanos + more)));
        };
        match phase {
            Phase::Connect => of(&mut one.spans.connect),
            Phase::Wait => of(&mut one.spans.wait),
            Phase::HeadersToBody => of(&mut one.spans.headers_to_body),
            _ => of(&mut one.spans.receive),
        }
        one.end = Nanos(one.end.0 + more);
    }

    fn found(calls: &[Exchange]) -> (TierCause, String) {
        let calls: Vec<&Exchange> = calls.iter().collect();
        let found = FirstCallTiers::of(&calls).unwrap();
        (found.cause, found.sentence)
    }

    #[test]
    fn a_slow_tier_is_blamed_on_what_the_calls_show() {
        for (phase, ms, cause) in [
            (Phase::Wait, 25, TierCause::ServerWait),
            (Phase::Wait, 41, TierCause::DelayedAck),
            (Phase::HeadersToBody, 41, TierCause::DelayedAck),
            (Phase::HeadersToBody, 20, TierCause::HeadersToBody),
            (Phase::Connect, 1_003, TierCause::Retransmission),
            (Phase::Receive, 20, TierCause::OtherPhase),
        ] {
            let calls = calls(|one, _| lengthen(one, phase, ms * 1_000));
            let (seen, sentence) = found(&calls);
            assert_eq!(seen, cause, "{phase:?} {ms}: {sentence}");
            assert!(
                sentence.starts_with("20 of the first 30 calls take 5."),
                "{sentence}"
            );
        }
    }

    #[test]
    fn retransmissions_name_the_cause_although_the_wait_makes_the_difference() {
        let calls = calls(|one, nth| {
            lengthen(one, Phase::Wait, 205_000);
            one.retransmissions = Some(u32::from(nth.is_multiple_of(2)));
        });
        let (cause, sentence) = found(&calls);
        assert_eq!(cause, TierCause::Retransmission);
        assert!(sentence.contains("in 5 of the 10 slow ones"), "{sentence}");
    }

    #[test]
    fn a_path_that_delays_handshakes_as_much_is_jitter() {
        let mut calls = calls(|one, _| lengthen(one, Phase::Wait, 20_000));
        for nth in 0..6 {
            let mut warmup = Exchange::new(100 + nth, Nanos(0));
            warmup.warmup = true;
            lengthen(&mut warmup, Phase::Connect, 2_000 + 8_000 * (nth % 3));
            calls.push(warmup);
        }
        let (cause, sentence) = found(&calls);
        assert_eq!(cause, TierCause::Jitter, "{sentence}");
        // handshakes that hardly vary leave the server as the cause
        calls.iter_mut().filter(|one| one.warmup).for_each(|one| {
            one.spans.connect = Some(Span::new(Nanos(0), Nanos(2_000_000)));
        });
        assert_eq!(found(&calls).0, TierCause::ServerWait);
    }

    #[test]
    fn a_difference_that_no_phase_makes_has_no_cause_that_was_seen() {
        let calls = calls(|one, _| {
            lengthen(one, Phase::Wait, 10_000);
            lengthen(one, Phase::Receive, 10_000);
        });
        let (cause, sentence) = found(&calls);
        assert_eq!(cause, TierCause::NotSeen);
        assert!(sentence.contains("no cause was seen"), "{sentence}");
    }
}
