//! What limits the figures of a bench, each caveat with the variants that it is about. Only what a reader can act on.

use super::saturation::{Saturation, slowdown};
use super::variant::VariantFacts;
use intact_ledger::Caveat;
use intact_units::number::{time, whole_percent};

/// The share of client delay in the latency from which it distorts the throughput.
const LATE: f64 = 0.25;
/// A warm-up request that takes this many times as long as a measured one is worth a caveat.
const SLOW_WARMUP: f64 = 2.0;
/// The least time by which it takes longer, in milliseconds.
const SLOW_WARMUP_MS: f64 = 1.0;

/// An id, whether it is true of a variant and what to add to the variant's name, and the words.
type Rule = (
    &'static str,
    fn(&VariantFacts) -> Option<String>,
    &'static str,
);

const RULES: [Rule; 6] = [
    (
        "client-saturated",
        |variant| is(variant, Saturation::Client),
        "the client used its processors to the full: requests/s is its limit (--threads)",
    ),
    (
        "server-saturated",
        |variant| is(variant, Saturation::Server),
        "the server used a processor to the full: latency is mostly waiting for it, so compare requests/s",
    ),
    (
        "queueing",
        |variant| {
            is(variant, Saturation::Queueing)?;
            Some(format!("{:.0} times", slowdown(variant)?))
        },
        "that much longer than a lone request: requests wait for each other, so compare requests/s",
    ),
    (
        "client-delay",
        |variant| {
            let share = variant.client_delay_ms.as_ref()?.share;
            (share > LATE).then(|| whole_percent(share))
        },
        "client delay as a share of the latency: requests/s would be higher, latency leaves it out (--threads, or a smaller -c)",
    ),
    (
        "slow-warm-up",
        |variant| {
            let (first, later) = (
                variant.warmup.mean_ms?,
                variant.latency_without_setup_ms.mean?,
            );
            let is_slow = first > SLOW_WARMUP * later && first - later > SLOW_WARMUP_MS;
            is_slow.then(|| format!("{} instead of {}", time(first), time(later)))
        },
        "the first request on a connection takes longer, setup not included; it is warm-up, and in no latency",
    ),
    (
        "few-requests",
        |variant| {
            let places = variant.concurrency * variant.streams * variant.rounds.len() as u64;
            (variant.requests.total < places).then(String::new)
        },
        "fewer requests in a round than places for them, so that fewer were at once than -c and --streams name: raise -n",
    ),
];

/// The caveats; `rounds` were completed by every variant.
pub(super) fn caveats(variants: &[VariantFacts], rounds: u32) -> Vec<Caveat> {
    let mut caveats: Vec<Caveat> = RULES
        .iter()
        .filter_map(|(id, applies, words)| {
            let measured = variants.iter().filter(|one| one.requests.total > 0);
            let names = measured.filter_map(|one| Some(named(one, &applies(one)?)));
            about(id, names.collect(), words)
        })
        .collect();
    let cut_short = variants
        .iter()
        .filter(|one| one.rounds.len() as u32 > rounds);
    let words = "the run was cut short, its last round has no counterpart";
    caveats.extend(about(
        "cut-short",
        cut_short.map(|one| one.name.clone()).collect(),
        words,
    ));
    caveats
}

fn is(variant: &VariantFacts, saturation: Saturation) -> Option<String> {
    (variant.saturation == Some(saturation)).then(String::new)
}

fn named(variant: &VariantFacts, value: &str) -> String {
    format!("{} {value}", variant.name).trim_end().to_owned()
}

fn about(id: &str, names: Vec<String>, words: &str) -> Option<Caveat> {
    (!names.is_empty()).then(|| Caveat::new(id, format!("{}: {words}", names.join(", "))))
}
