//! How a bench was measured, in words and facts.

use crate::page::environment::environment;
use crate::page::{Method, when};
use intact_findings::bench::BenchFacts;
use intact_ledger::Run;
use intact_units::number::count;

/// How it was measured.
pub(super) fn method(run: &Run, facts: &BenchFacts) -> Method {
    let several = facts.variants.len() > 1;
    let mut paragraphs = Vec::new();
    if several {
        paragraphs.push(format!(
            "Every variant ran in each of {} rounds, in an order that is random, balanced and comes from the seed. Variants that differ in one setting are \
             compared round by round: what both met in the same minute cancels out. Intervals are 95 % t intervals over rounds, not over requests, because \
             requests of one round are not independent of each other.",
            facts.rounds
        ));
    }
    paragraphs.push(
        "Connections open anew in each round. With keep-alive, the first request on each connection that a round opens is warm-up: it is in the picture of the \
         first calls and not in the latencies. A connection that has to be opened later, because the server closed one, counts: that cost is the server's. \
         Latency includes the setup that a request waited for. A percentile with fewer than ten requests beyond it is left out."
            .to_owned(),
    );
    Method {
        paragraphs,
        facts: circumstances(run, facts),
    }
}

fn circumstances(run: &Run, facts: &BenchFacts) -> Vec<(&'static str, String)> {
    let mut told = vec![
        ("Command", run.argv.join(" ")),
        ("Started", when(&run.started)),
        (
            "Seed",
            run.seed.map_or_else(String::new, |seed| seed.to_string()),
        ),
    ];
    told.extend(environment(run));
    let warmup: u64 = facts
        .variants
        .iter()
        .map(|variant| variant.warmup.requests)
        .sum();
    told.push(("Warm-up and preflight requests", count(warmup)));
    if let [before, after] = facts.sockets.as_slice() {
        told.push((
            "Sockets in TIME_WAIT",
            format!(
                "{} before, {} after",
                count(before.time_wait),
                count(after.time_wait)
            ),
        ));
        if let (Some(before), Some(after)) = (before.free_ports, after.free_ports) {
            told.push((
                "Free ephemeral ports",
                format!("{} before, {} after", count(before), count(after)),
            ));
        }
    }
    told.retain(|(_, words)| !words.trim().is_empty());
    told
}
