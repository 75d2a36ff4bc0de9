//! What limits the figures of a bench, each caveat with the variants that it is about. Only what a
//! reader can act on.

use super::machine::SERVER_UNKNOWN;
use super::remedies::early_data_unused;
use super::saturation::{Saturation, slowdown};
use super::variant::VariantFacts;
use intact_ledger::Caveat;
use intact_units::number::{per_second, time, whole_percent};
use intact_units::plural::counted;

/// The share of client delay in the latency from which it distorts the throughput.
const LATE: f64 = 0.25;
/// A warm-up request that takes this many times as long as a measured one is worth a caveat.
const SLOW_WARMUP: f64 = 2.0;
/// The least time by which it takes longer, in milliseconds.
const SLOW_WARMUP_MS: f64 = 1.0;

/// The share of requests that wait for a connection from which it is worth a caveat.
const QUEUED: f64 = 0.01;
/// A request that takes this many times as long as the median one may be a pause of the server.
const PAUSE: f64 = 10.0;
/// The least time by which it takes longer, in milliseconds.
const PAUSE_MS: f64 = 100.0;

/// An id, whether it is true of a variant and what to add to the variant's name, and the words.
type Rule = (
    &'static str,
    fn(&VariantFacts) -> Option<String>,
    &'static str,
);

const RULES: [Rule; 16] = [
    (
        "client-saturated",
        |variant| is(variant, Saturation::Client).filter(|_| variant.client_is_busy()),
        "these figures are the client's, not the server's: the client used its processors to the full (--threads)",
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
            Some(format!("{:.0} times as long", slowdown(variant)?))
        },
        "requests take longer than a lone one, because they wait for each other: compare requests/s",
    ),
    (
        "client-delay",
        |variant| {
            let share = variant.client_delay_ms.share.value()?;
            let at_once = variant.concurrency * variant.streams;
            (share > LATE && at_once > 1)
                .then(|| format!("client delay {} of the latency", whole_percent(share)))
        },
        "the client read responses late. Latency leaves this out, but requests/s may be higher with --threads, a smaller -c or --coalesce off",
    ),
    (
        "slow-warm-up",
        |variant| {
            let (first, later) = (
                variant.warmup.mean_ms?,
                variant.latency_without_setup_ms.mean.value()?,
            );
            let is_slow = first > SLOW_WARMUP * later && first - later > SLOW_WARMUP_MS;
            is_slow.then(|| format!("{} instead of {}", time(first), time(later)))
        },
        "the first request on a connection takes longer, even without the setup. The first one in a round is warm-up, which no latency includes",
    ),
    (
        "few-requests",
        |variant| {
            if variant.open_loop.is_some() {
                return None;
            }
            let places = variant.concurrency * variant.streams * variant.rounds.len() as u64;
            (variant.counted.requests.total < places).then(String::new)
        },
        "fewer requests in a round than places for them, so that fewer were at once than -c and --streams name: raise -n",
    ),
    (
        "client-late",
        |variant| {
            let open = variant.open_loop.as_ref()?;
            let late = &open.scheduling_error_ms;
            let late = late.p99.value().or(late.max.value())?;
            let percentiles = open.late_percentiles.join(", ");
            open.client_is_late()
                .then(|| format!("{} late at p99; {percentiles}", time(late)))
        },
        "the client itself started requests late: these percentiles are ranges, from without its lateness to with it (--threads, a lower --rate, or a less busy machine)",
    ),
    (
        "client-behind-schedule",
        |variant| {
            is(variant, Saturation::Client)?;
            behind(variant)
        },
        "fewer than fell due, and the client was the limit: these figures say nothing about how fast the server is (--threads)",
    ),
    (
        "machine-behind-schedule",
        |variant| {
            is(variant, Saturation::Machine)?;
            behind(variant)
        },
        "fewer than fell due, and this machine was the limit: client, server and other processes share its processors, so these figures say nothing about how fast the server is",
    ),
    (
        "machine-busy",
        |variant| {
            behind(variant)?;
            let is_other = variant.client_is_busy() || variant.machine_is_limit();
            let machine = variant.machine.as_ref().filter(|_| !is_other)?;
            machine.may_limit_server()
        },
        SERVER_UNKNOWN,
    ),
    (
        "behind-schedule",
        |variant| match variant.saturation {
            Some(Saturation::Client | Saturation::Machine) => None,
            _ => behind(variant),
        },
        "fewer than fell due: requests waited longer and longer, so the latency depends on the length of the run",
    ),
    (
        "connections-busy",
        |variant| {
            let share = variant.open_loop.as_ref()?.queued_share.value()?;
            (share > QUEUED).then(|| format!("{} of the requests", whole_percent(share)))
        },
        "requests were due while every connection was busy; their wait is in the latency (a larger -c shows whether the connections were the limit)",
    ),
    (
        "limit-unreached",
        |variant| variant.unreached_limit.clone(),
        "no connection got that far in a round, so the setting had no effect (raise -n or -z, or lower --rounds)",
    ),
    (
        "early-data-unused",
        |variant| {
            let is_unused = variant.early_data_share == Some(0.0);
            is_unused.then(|| early_data_unused(variant).to_owned())
        },
        "no request was early data (0-RTT) that the server accepted, so --early-data had no effect",
    ),
    (
        "streams-refused",
        |variant| Some(counted(variant.streams_allowed?.into(), "stream")),
        "the most that the server allows at once on a connection, so --streams had no effect beyond it (SETTINGS_MAX_CONCURRENT_STREAMS; nginx `http2_max_concurrent_streams`)",
    ),
    (
        "closed-loop",
        |variant| {
            let latency = &variant.latency_ms;
            let (p50, max) = (latency.p50.value()?, latency.max.value()?);
            let is_long = max > PAUSE * p50 && max - p50 > PAUSE_MS;
            (is_long && variant.open_loop.is_none()).then(|| time(max))
        },
        "the longest request. Its connection sent nothing in that time, so the percentiles lack the requests that a schedule would have sent (coordinated omission); --rate sends by a schedule",
    ),
];

/// Fewer complete requests a second than fell due.
fn behind(variant: &VariantFacts) -> Option<String> {
    let open = variant.open_loop.as_ref()?;
    let (achieved, requested) = (variant.rate_per_s.value()?, open.requested_per_s?);
    let words = || {
        format!(
            "{} of {} requests/s",
            per_second(achieved),
            per_second(requested)
        )
    };
    (!open.is_reached()).then(words)
}

/// The caveats; `rounds` were completed by every variant.
pub(super) fn caveats(variants: &[VariantFacts], rounds: u32) -> Vec<Caveat> {
    let mut caveats: Vec<Caveat> = RULES
        .iter()
        .filter_map(|(id, applies, words)| {
            let measured = variants.iter().filter(|one| one.counted.requests.total > 0);
            let names = measured.filter_map(|one| Some(named(one, &applies(one)?)));
            about(id, &names.collect::<Vec<String>>(), words)
        })
        .collect();
    let cut_short = variants
        .iter()
        .filter(|one| one.rounds.len() as u32 > rounds);
    let words = "the run was cut short, its last round has no counterpart";
    let names: Vec<String> = cut_short.map(|one| one.name.clone()).collect();
    caveats.extend(about("cut-short", &names, words));
    caveats
}

fn is(variant: &VariantFacts, saturation: Saturation) -> Option<String> {
    (variant.saturation == Some(saturation)).then(String::new)
}

fn named(variant: &VariantFacts, value: &str) -> String {
    match value {
        "" => variant.name.clone(),
        value => format!("{} ({value})", variant.name),
    }
}

fn about(id: &str, names: &[String], words: &str) -> Option<Caveat> {
    (!names.is_empty()).then(|| Caveat::new(id, format!("{}: {words}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use crate::bench::{BenchFacts, Saturation};
    use intact_experiment::{AxisValues, ConnectionSettings, TlsChoice};
    use intact_ledger::{
        Event, Exchange, Nanos, Producer, Protocol, Reuse, Round, Run, Sink, Span, Tally, Vantage,
        Variant,
    };

    const US: u64 = 1_000;

    fn axes(concurrency: u32) -> AxisValues {
        AxisValues {
            keepalive: true,
            http: Protocol::Http11,
            tls: TlsChoice::None,
            resume: false,
            early_data: None,
            dns: None,
            concurrency,
            streams: 1,
            connection: ConnectionSettings::default(),
            open_loop: None,
        }
    }

    /// One kept variant: a preflight of 1 ms, ten rounds of 40 requests; times in microseconds.
    fn facts(
        concurrency: u32,
        warmup: u64,
        measured: u64,
        delay: u64,
        round: &Round,
    ) -> BenchFacts {
        let started = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut run = Run::new(Producer::Bench, "0", Vantage::Client, started, 1, &[]);
        run.variants.push(Variant {
            name: "kept".to_owned(),
            axes: axes(concurrency).axes(),
        });
        let mut tally = Tally::new();
        let mut add = |round: u32, warmup: bool, us: u64| {
            let mut one = Exchange::new(0, Nanos(0));
            one.variant = Some(0);
            one.round = Some(round);
            one.warmup = warmup;
            one.reuse = Some(Reuse::Reused);
            one.end = Nanos(us * US);
            one.client_delay = Some(Span::new(one.end, Nanos((us + delay) * US)));
            tally.record(Event::Exchange(&one));
        };
        add(0, true, 1_000);
        for nth in 1..=10 {
            add(nth, true, warmup);
            (0..40).for_each(|_| add(nth, false, measured));
        }
        for nth in 1..=10 {
            tally.record(Event::Round(&Round {
                round: nth,
                ..round.clone()
            }));
        }
        BenchFacts::new(&run, &tally, &[]).unwrap()
    }

    fn round(client_cpu: u64, threads: u32, server_cpu: u64) -> Round {
        Round {
            client_cpu: Some(client_cpu * US),
            client_threads: Some(threads),
            server_cpu: Some(server_cpu * US),
            ..Round::new(0, 1, Span::new(Nanos(0), Nanos(100_000 * US)))
        }
    }

    fn ids(facts: &BenchFacts) -> Vec<&str> {
        facts.caveats.iter().map(|one| &*one.id).collect()
    }

    #[test]
    fn each_kind_of_saturation_is_named_and_an_idle_machine_has_none() {
        let idle = facts(10, 1_000, 1_000, 0, &round(10_000, 1, 10_000));
        assert_eq!((idle.variants[0].saturation, ids(&idle)), (None, vec![]));
        for (cpu, saturation, id) in [
            (
                round(95_000, 1, 50_000),
                Saturation::Client,
                "client-saturated",
            ),
            (
                round(50_000, 1, 97_000),
                Saturation::Server,
                "server-saturated",
            ),
        ] {
            let busy = facts(10, 1_000, 1_000, 0, &cpu);
            assert_eq!(busy.variants[0].saturation, Some(saturation));
            assert_eq!(ids(&busy), [id]);
        }
        // the same CPU time on two threads is half of what they have
        let two = facts(10, 1_000, 1_000, 0, &round(95_000, 2, 50_000));
        assert_eq!(two.variants[0].saturation, None);
        // 400 requests took 100 ms of one thread, and 950 ms of two
        let ceiling = |facts: &BenchFacts| facts.variants[0].client_ceiling_per_s.unwrap().round();
        assert_eq!((ceiling(&idle), ceiling(&two)), (4_000.0, 842.0));
    }

    #[test]
    fn requests_that_wait_for_each_other_are_flagged_without_any_processor_time() {
        let idle = round(1_000, 1, 1_000);
        let queued = facts(10, 9_000, 9_000, 0, &idle);
        assert_eq!(queued.variants[0].saturation, Some(Saturation::Queueing));
        assert!(
            queued.caveats[0]
                .message
                .starts_with("kept (9 times as long): ")
        );
        // one connection waits for no other
        assert_eq!(
            facts(1, 9_000, 9_000, 0, &idle).variants[0].saturation,
            None
        );
    }

    #[test]
    fn long_first_waits_and_client_delay_are_reported_only_where_they_matter() {
        let idle = round(1_000, 1, 1_000);
        let slow = facts(10, 5_000, 1_000, 0, &idle);
        assert_eq!(ids(&slow), ["slow-warm-up"]);
        assert!(
            slow.caveats[0]
                .message
                .starts_with("kept (5.00 ms instead of 1.00 ms): ")
        );
        assert_eq!(slow.variants[0].warmup.max_ms, Some(5.0));
        assert_eq!(ids(&facts(10, 1_000, 1_000, 300, &idle)), ["client-delay"]);
        assert!(ids(&facts(10, 1_000, 1_000, 200, &idle)).is_empty());
        assert!(
            ids(&facts(1, 1_000, 1_000, 300, &idle)).is_empty(),
            "latency is not affected"
        );
        assert_eq!(ids(&facts(50, 1_000, 1_000, 0, &idle)), ["few-requests"]);
    }
    #[test]
    fn a_closed_loop_with_a_pause_says_what_its_percentiles_leave_out() {
        let started = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut run = Run::new(Producer::Bench, "0", Vantage::Client, started, 1, &[]);
        run.variants.push(Variant {
            name: "kept".to_owned(),
            axes: axes(1).axes(),
        });
        for (pause, expected) in [(1_000, vec!["closed-loop"]), (50, vec![])] {
            let mut tally = Tally::new();
            for nth in 0..100 {
                let mut one = Exchange::new(nth, Nanos(0));
                (one.variant, one.round) = (Some(0), Some(1));
                one.end = Nanos(if nth == 50 { pause * 1_000 } else { 1_000 } * US);
                tally.record(Event::Exchange(&one));
            }
            tally.record(Event::Round(&round(1_000, 1, 1_000)));
            let facts = BenchFacts::new(&run, &tally, &[]).unwrap();
            assert_eq!(ids(&facts), expected);
        }
    }
}
