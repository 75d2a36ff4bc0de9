//! Populations of latencies in a variant: fresh and reused, the modes of the histogram, the tiers of the first calls. Must not compare
//! variants.

use super::variant::Mode;
use crate::figures::NANOS_PER_MS;
use crate::population::buckets_ms;
use crate::stats::{Bin, Modes, PhaseSeries, explaining_phase, humps_of_bins, tiers};
use intact_ledger::{Cell, Exchange, Phase, Reuse};
use intact_units::number::{time, whole_percent};

/// Fresh and reused where both occur; else the two humps that the histogram shows, if it shows two.
pub(super) fn modes(all: &Cell) -> Vec<Mode> {
    let of = |reuse: Reuse| {
        all.merged(|key| !key.warmup && key.outcome.is_ok() && key.reuse == Some(reuse))
    };
    match (of(Reuse::Fresh), of(Reuse::Reused)) {
        (Some(fresh), Some(reused)) => {
            let total = (fresh.count() + reused.count()) as f64;
            [("fresh", fresh), ("reused", reused)]
                .into_iter()
                .map(|(name, group)| Mode {
                    name,
                    share: group.count() as f64 / total,
                    mean_ms: group.latency.mean().unwrap_or(0.0) / NANOS_PER_MS,
                })
                .collect()
        }
        (Some(group), None) | (None, Some(group)) => {
            let bins: Vec<Bin> = buckets_ms(&group.latency)
                .into_iter()
                .map(|(low, high, count)| Bin { low, high, count })
                .collect();
            match humps_of_bins(&bins, 1) {
                Modes::Two { parts, .. } => [("fast", parts.fast), ("slow", parts.slow)]
                    .into_iter()
                    .map(|(name, hump)| Mode {
                        name,
                        share: hump.share,
                        mean_ms: hump.mean,
                    })
                    .collect(),
                Modes::One(_) => Vec::new(),
            }
        }
        (None, None) => Vec::new(),
    }
}

/// Two tiers of the first calls: the phase that makes the difference in words, and the mean of each.
pub(super) fn two_tiers(calls: &[&Exchange]) -> Option<(String, [f64; 2])> {
    let steady: Vec<&&Exchange> = calls
        .iter()
        .filter(|call| !call.warmup && call.outcome.is_ok())
        .collect();
    let times: Vec<f64> = steady
        .iter()
        .map(|call| call.latency() as f64 / NANOS_PER_MS)
        .collect();
    let found = tiers(&times)?;
    let means = [found.fast.mean, found.slow.mean];
    let told = |words: String| Some((words, means));
    let head = format!(
        "{} of the first {} calls take {}, {} take {}",
        found.fast.calls,
        times.len(),
        time(found.fast.mean),
        found.slow.calls,
        time(found.slow.mean)
    );
    let slow_is_fresh = steady
        .iter()
        .zip(&found.is_slow)
        .all(|(call, &slow)| (call.reuse == Some(Reuse::Fresh)) == slow);
    if slow_is_fresh {
        return told(format!("{head}: the slow ones opened a connection"));
    }
    let series: Vec<Vec<Option<f64>>> = Phase::ALL
        .iter()
        .map(|&phase| {
            steady
                .iter()
                .map(|call| {
                    call.spans
                        .of(phase)
                        .map(|span| span.nanos() as f64 / NANOS_PER_MS)
                })
                .collect()
        })
        .collect();
    let named: Vec<PhaseSeries<'_>> = Phase::ALL
        .iter()
        .zip(&series)
        .map(|(phase, times)| PhaseSeries {
            name: phase.id(),
            times,
        })
        .collect();
    let Some(cause) = explaining_phase(&found, &named) else {
        return told(format!("{head}: no single phase explains it"));
    };
    // Linux acknowledges after 40 ms when it delays (TCP_DELACK_MIN)
    let delayed_ack = cause.phase == "wait" && (38.0..50.0).contains(&cause.by);
    let meaning = match cause.phase {
        "wait" if delayed_ack => {
            "the wait for the answer; about 40 ms is a delayed ACK against Nagle's algorithm"
        }
        "wait" => "the wait for the answer",
        "headers_to_body" => "the gap between head and body of the answer",
        "connect" => "the TCP handshake (a whole second more is a lost SYN)",
        "ssl" => "the TLS handshake",
        "dns" => "the lookup",
        "send" => "sending the request",
        "receive" => "receiving the answer",
        _ => "waiting for a connection",
    };
    told(format!(
        "{head}: {} of the difference is {meaning}",
        whole_percent(cause.share)
    ))
}
