//! What is said of a model in words, on every kind of page.

use intact_model::{Fit, Forecast};
use intact_units::number::{count, signed_percent, time, whole_percent};

/// What a prediction leaves out.
pub(crate) const LIMITS: [&str; 2] = [
    "Counted: round trips, lookups, handshakes, slow start of answers beyond 14.6 kB, the work that the file names. Means only: no queues, no loss, no jitter, no bandwidth.",
    "\"As TCP does it\" is what a measured link shows (docs/model.md); \"in series\" counts the last packet of each handshake as a trip of its own.",
];

/// The one sentence.
pub(crate) fn verdict(forecast: &Forecast) -> String {
    let three = forecast.chosen();
    let (now, kept, new) = (
        three.configured.total_ms,
        three.reused.total_ms,
        three.new.total_ms,
    );
    if now - kept > now * 1e-3 {
        let share = whole_percent(1.0 - kept / now);
        format!(
            "One request takes {}; with every connection reused {}: {share} of the time is setup of connections",
            time(now),
            time(kept)
        )
    } else if new - now > new * 1e-3 {
        let share = whole_percent(1.0 - now / new);
        format!(
            "One request takes {} as its connections are reused; with new ones it would take {}: reuse saves {share}",
            time(now),
            time(new)
        )
    } else {
        format!(
            "One request takes {}, with new connections or without",
            time(now)
        )
    }
}

/// How far a chain that was worked out from a ledger agrees with what was measured there.
pub(crate) fn fitted(forecast: &Forecast, fit: &Fit) -> Vec<String> {
    let predicted = forecast.tcp.configured.total_ms;
    let calls: u64 = fit.chain.calls.iter().map(|call| call.times).sum();
    let mut told = vec![format!(
        "\"One request\" is all {} requests of the ledger, one after the other: {} were measured, {} are predicted ({})",
        count(calls),
        time(fit.measured_ms),
        time(predicted),
        signed_percent(predicted / fit.measured_ms - 1.0)
    )];
    told.extend(fit.left_out.iter().map(|why| format!("left out: {why}")));
    told.extend(
        fit.caveats
            .iter()
            .map(|one| format!("caveat: {}", one.message)),
    );
    told
}
