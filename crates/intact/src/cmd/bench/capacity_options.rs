//! The options of `intact bench --find-max` and `--overload`, and what they mean together.

use super::args::{Args, rate, time};
use crate::exit::Failed;
use anyhow::anyhow;
use intact_experiment::{Arrivals, RequestRate, WhenBusy};
use intact_experiments::capacity::Conditions;
use intact_ledger::{CapacityTerms, Nanos, OverloadTerms, SearchTerms};
use intact_units::{duration, number};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The highest rate that is tried unless `--max-rate` names one.
const MOST: f64 = 50_000.0;
/// The rate of the first step.
const START: f64 = 100.0;
/// The ratio of neighbouring rates.
const RATIO: f64 = 1.05;
/// The longest that a step gets because its percentile needs more requests, unless `--step` is
/// longer.
const LONGEST_STEP: Duration = Duration::from_secs(15);
/// The rate after an overload, as a share of what the server can carry.
const SHARE: f64 = 0.8;
/// The least length of a window in which the recovery is judged.
const WINDOW: Duration = Duration::from_secs(1);
/// Connections at once, unless `-c` says otherwise.
const CONNECTIONS: u32 = 64;
/// The longest that a search takes for each variant, unless `-z` says otherwise.
const LIMIT: Duration = Duration::from_secs(180);

/// The search for the highest rate, and the recovery from more.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Capacity (open loop; -z and -n limit the search of each variant)")]
pub(crate) struct CapacityOptions {
    /// Find the highest rate that meets conditions, by bisection, with fresh runs and an interval:
    /// 'p99 < 100ms, failed < 0.1 %' [default -c: 64, -z: 3m]
    #[arg(long, value_name = "EXPR,..", group = "schedule", conflicts_with = "rate", conflicts_with_all = NOT_IN_STEPS)]
    find_max: Option<String>,
    /// The highest rate to try [default: 50000/s]
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "find_max")]
    max_rate: Option<RequestRate>,
    /// Time of a step; longer, up to 15s, where a percentile needs more requests
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "3s")]
    step: Duration,
    /// Send this multiple of the maximum found, or of --rate, then 80 %: how long until the
    /// conditions hold again?
    #[arg(long, value_name = "FACTORx", value_parser = factor, conflicts_with_all = NOT_IN_STEPS)]
    overload: Option<f64>,
    /// How long the overload lasts
    #[arg(long = "for", value_name = "TIME", value_parser = time, default_value = "20s")]
    lasts: Duration,
    /// How long 80 % follow the overload until the traffic stops
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "30s")]
    recover_within: Duration,
    /// The conditions that have to hold again [default: those of --find-max]
    #[arg(
        long,
        value_name = "EXPR,..",
        requires = "overload",
        conflicts_with = "find_max"
    )]
    holds: Option<String>,
}

/// What has no meaning while the steps of a search or an overload choose the rate.
const NOT_IN_STEPS: [&str; 7] = [
    "ramp",
    "scenario",
    "rounds",
    "baseline",
    "like",
    "flamegraph",
    "live",
];

impl CapacityOptions {
    /// Whether a capacity or a recovery is looked for.
    pub(in crate::cmd) fn is_any(&self) -> bool {
        self.find_max.is_some() || self.overload.is_some()
    }
}

/// How the options of a capacity are meant.
pub(super) struct CapacityPlan {
    /// For the header of the ledger.
    pub(super) terms: CapacityTerms,
    /// The conditions.
    pub(super) conditions: Conditions,
    /// Requests of a step that decide the conditions.
    needed: f64,
    /// The time of a step.
    step: Duration,
    /// The length of a window in which the recovery is judged.
    pub(super) window: Duration,
    /// The longest that the search of a variant takes.
    pub(super) limit: Duration,
    /// The most requests that a variant gets.
    pub(super) most: u64,
}

impl CapacityPlan {
    /// Reads the options of a command; an error names what does not go together.
    pub(super) fn new(args: &Args) -> Result<CapacityPlan, Failed> {
        let options = &args.capacity;
        let usage = |words: String| Failed::usage(anyhow!(words));
        let (option, text) = match (&options.find_max, &options.holds) {
            (Some(text), _) => ("--find-max", text),
            (None, Some(text)) => ("--holds", text),
            (None, None) => {
                return Err(usage(
                    "--overload: name what has to hold again: --find-max 'p99 < 100ms' finds the maximum first, --rate RATE --holds 'p99 < 100ms' names it".to_owned(),
                ));
            }
        };
        let conditions =
            Conditions::read(text).map_err(|error| usage(format!("{option}: {error}")))?;
        if options.step.is_zero() {
            return Err(usage("--step: a step takes time; write 3s".to_owned()));
        }
        let named = match args.open_loop.rate.as_slice() {
            [] => None,
            [one] => Some(one.mean()),
            _ => return Err(usage("--overload takes one --rate".to_owned())),
        };
        if options.find_max.is_none() && named.is_none() {
            return Err(usage(
                "--overload is a multiple of a rate: add --rate 500/s, or find it with --find-max"
                    .to_owned(),
            ));
        }
        let most = options.max_rate.map_or(MOST, RequestRate::mean);
        let longest = options.step.max(LONGEST_STEP).as_secs_f64();
        let arrivals = args.open_loop.arrivals.unwrap_or_default();
        let needed = requests_due(&conditions, arrivals);
        let least = (needed / longest).max(1.0);
        if options.find_max.is_some() && least > most {
            return Err(usage(format!(
                "--find-max: {conditions} needs {needed:.0} requests in a step, more than --max-rate sends in {longest} s; raise --max-rate or --step"
            )));
        }
        let search = options.find_max.is_some().then(|| SearchTerms {
            start: START.clamp(least, most),
            least,
            most,
            ratio: RATIO,
        });
        let overload = options.overload.map(|factor| OverloadTerms {
            factor,
            rate: named,
            share: SHARE,
            lasts: nanos(options.lasts),
            follows: nanos(options.recover_within),
        });
        let lower = named.unwrap_or(least) * SHARE;
        let plan = CapacityPlan {
            terms: CapacityTerms {
                conditions: conditions.expressions(),
                search,
                overload,
            },
            window: match named {
                Some(_) => WINDOW.max(Duration::from_secs_f64((needed / lower).min(longest))),
                None => WINDOW,
            },
            conditions,
            needed,
            step: options.step,
            limit: args.time.unwrap_or(LIMIT),
            most: args.requests.unwrap_or(u64::MAX),
        };
        plan.check_first_step().map_err(usage)?;
        Ok(plan)
    }

    /// A search in whose limits no step fits would find nothing.
    fn check_first_step(&self) -> Result<(), String> {
        let Some(search) = self.terms.search else {
            return Ok(());
        };
        let (length, requests) = self.size_of_step(search.start);
        if length > self.limit {
            return Err(format!(
                "-z {}: the first step of --find-max takes {}; a search takes minutes (3m by default)",
                duration::write(self.limit),
                number::time(length.as_secs_f64() * 1e3)
            ));
        }
        if requests > self.most {
            return Err(format!(
                "-n {}: the first step of --find-max sends up to {requests} requests",
                self.most
            ));
        }
        Ok(())
    }

    /// The time of a step at this rate, and the most requests in it.
    pub(super) fn size_of_step(&self, rate: f64) -> (Duration, u64) {
        let length = self.step_at(rate);
        (length, (rate * length.as_secs_f64() * 1.2) as u64)
    }

    /// The time of a step at this rate: long enough to decide the conditions.
    pub(super) fn step_at(&self, rate: f64) -> Duration {
        let longest = self.step.max(LONGEST_STEP).as_secs_f64();
        let needed = Duration::from_secs_f64((self.needed / rate).min(longest));
        self.step.max(needed)
    }

    /// The time of a window at this rate.
    pub(super) fn window_at(&self, rate: f64) -> Duration {
        let needed = self.needed / rate;
        let needed = Duration::from_secs_f64(needed.min(LONGEST_STEP.as_secs_f64()));
        self.window.max(needed)
    }

    /// The arguments of a bench whose steps are chosen as it runs.
    pub(super) fn arguments(&self, args: &Args) -> Args {
        let mut args = args.clone();
        args.requests = None;
        args.time = Some(self.step);
        args.rounds = Some(1);
        let start = self.terms.search.map(|terms| terms.start);
        let start = start.or(self.terms.overload.and_then(|terms| terms.rate));
        // each step sets its own rate; this one only makes it an open loop
        args.open_loop.rate = vec![RequestRate::constant(start.unwrap_or(START))];
        if args.axes.concurrency.is_empty() {
            args.axes.concurrency = vec![CONNECTIONS];
        }
        // opening all connections at once would be a burst at the start of each step
        if args.axes.keepalive.contains(&true) {
            let when_busy = args.open_loop.when_busy;
            args.open_loop.when_busy = Some(when_busy.unwrap_or(WhenBusy::Open));
        }
        args
    }

    /// Refuses to search at a server elsewhere for which the user set no limit.
    pub(super) fn check_polite(&self, args: &Args, is_local: bool) -> Result<(), Failed> {
        let is_bounded = args.requests.is_some()
            || args.time.is_some()
            || args.capacity.max_rate.is_some()
            || self.terms.search.is_none();
        if is_local || is_bounded {
            return Ok(());
        }
        Err(Failed::usage(anyhow!(
            "--find-max loads a server that is not this machine until it is too slow: say how much it may get, with -z TIME, -n REQUESTS or --max-rate RATE"
        )))
    }
}

/// Requests that have to be due in a step for the conditions to have a value. The number of Poisson
/// arrivals varies by its square root: four of them are added.
fn requests_due(conditions: &Conditions, arrivals: Arrivals) -> f64 {
    let least = conditions.least_requests() as f64 * 1.02;
    match arrivals {
        Arrivals::Constant => least,
        Arrivals::Poisson => least + 4.0 * least.sqrt(),
    }
}

fn nanos(time: Duration) -> Nanos {
    Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// `1.2x`.
fn factor(word: &str) -> Result<f64, String> {
    let digits = word.strip_suffix(['x', '×']).unwrap_or(word);
    let factor = digits.parse().ok();
    factor
        .filter(|factor: &f64| factor.is_finite() && (1.0..=100.0).contains(factor))
        .ok_or_else(|| "an overload is written 1.2x: from 1x to 100x".to_owned())
}
