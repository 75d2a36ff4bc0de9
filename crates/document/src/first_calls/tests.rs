//! Tiers of made calls: each cause, and what the input does not show.

use super::*;
use intact_ledger::Nanos;

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

fn all_found(calls: &[Exchange]) -> FirstCallTiers {
    let calls: Vec<CallEvidence> = calls.iter().map(CallEvidence::of).collect();
    FirstCallTiers::of(&calls, CallNoun("the first", "calls")).unwrap()
}

/// The cause of the one slow tier, and the sentence.
fn found(calls: &[Exchange]) -> (TierCause, String) {
    let found = all_found(calls);
    assert_eq!(found.levels.len(), 2, "{}", found.sentence);
    (found.levels[1].cause.unwrap(), found.sentence)
}

#[test]
fn a_slow_tier_is_blamed_on_what_the_calls_show() {
    for (phase, ms, cause) in [
        (Phase::Wait, 25, TierCause::ServerOrPath),
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
    for nth in 0..9 {
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
fn the_acknowledgement_of_the_request_separates_server_and_path() {
    // of fast and slow calls, in milliseconds; the waits are 4 ms, and longer by `more`
    for (acknowledged, more, cause, words) in [
        ([1, 1], 25, TierCause::ServerWait, "server wait: "),
        (
            [2, 27],
            25,
            TierCause::ServerOrPath,
            "may have been delayed",
        ),
        (
            [99, 99],
            25,
            TierCause::ServerOrPath,
            "came with the response",
        ),
        ([99, 15], 25, TierCause::ServerOrPath, "server or path: "),
        (
            [2, 42],
            62,
            TierCause::ServerOrPath,
            "may have been delayed",
        ),
    ] {
        let mut calls = calls(|one, _| {
            lengthen(one, Phase::Wait, more * 1_000);
            one.acknowledged_after = Some(acknowledged[1] * 1_000_000);
        });
        for one in calls
            .iter_mut()
            .filter(|one| one.acknowledged_after.is_none())
        {
            one.acknowledged_after = Some(acknowledged[0] * 1_000_000);
        }
        let (seen, sentence) = found(&calls);
        assert_eq!(seen, cause, "{acknowledged:?}: {sentence}");
        assert!(sentence.contains(words), "{sentence}");
    }
}

#[test]
fn a_short_path_is_not_what_makes_a_call_slow() {
    let mut calls = calls(|one, _| lengthen(one, Phase::Wait, 25_000));
    lengthen(&mut calls[1], Phase::Connect, 100);
    assert_eq!(found(&calls).0, TierCause::ServerWait);
    lengthen(&mut calls[1], Phase::Connect, 1_000);
    assert_eq!(found(&calls).0, TierCause::ServerOrPath);
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

#[test]
fn each_of_three_tiers_has_its_cause() {
    let calls = calls(|one, nth| {
        if nth.is_multiple_of(2) {
            lengthen(one, Phase::HeadersToBody, 41_000);
        } else {
            lengthen(one, Phase::Wait, 205_000);
            one.retransmissions = Some(1);
        }
    });
    let found = all_found(&calls);
    let causes: Vec<Option<TierCause>> = found.levels.iter().map(|one| one.cause).collect();
    let slower = [TierCause::DelayedAck, TierCause::Retransmission].map(Some);
    assert_eq!((causes[0], &causes[1..]), (None, &slower[..]));
    assert!(
        found.sentence.contains("ms, 5 take 46") && found.sentence.contains("; 5 take 210 ms: r"),
        "{}",
        found.sentence
    );
}

#[test]
fn packets_overrule_a_time_that_looks_like_a_delayed_acknowledgement() {
    let gap = |acks: u32| {
        calls(move |one, _| {
            lengthen(one, Phase::HeadersToBody, 41_000);
            one.delayed_acks = Some(acks);
        })
    };
    assert_eq!(found(&gap(1)).0, TierCause::DelayedAck);
    assert_eq!(found(&gap(0)).0, TierCause::HeadersToBody);
    // Windows delays an acknowledgement for up to 200 ms
    let slow = calls(|one, _| {
        lengthen(one, Phase::Wait, 190_000);
        one.delayed_acks = Some(1);
    });
    assert_eq!(found(&slow).0, TierCause::DelayedAck);
}

#[test]
fn fresh_calls_are_compared_with_fresh_ones() {
    let calls = calls(|one, nth| {
        one.reuse = Some(Reuse::Fresh);
        lengthen(one, Phase::Connect, 30_000);
        if nth.is_multiple_of(2) {
            lengthen(one, Phase::Wait, 200_000);
        }
    });
    let found = all_found(&calls);
    let causes: Vec<TierCause> = found.levels.iter().filter_map(|one| one.cause).collect();
    assert_eq!(causes, [TierCause::NewConnection, TierCause::ServerWait]);
}

#[test]
fn what_the_input_does_not_show_is_named() {
    let mut calls = calls(|one, _| lengthen(one, Phase::Wait, 300_000));
    for one in &mut calls {
        one.spans = intact_ledger::Spans::default();
        one.spans.wait = Some(Span::new(one.at, one.end));
    }
    let (cause, sentence) = found(&calls);
    assert_eq!(cause, TierCause::NotSeen);
    assert!(
        sentence.ends_with(
            "the phases of these calls were not recorded, and retransmissions could not be counted"
        ),
        "{sentence}"
    );
}
