//! The words of `intact lambda`.

use crate::cmd::conclusion::Output;
use crate::cmd::fault_options::FaultOptions;
use crate::cmd::gates::Gates;
use crate::cmd::options;
use crate::cmd::places::PlaceOptions;
use clap::ArgAction;
use intact_link::Spec;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What do cold starts, warm calls and the freeze in between do to my function?
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Invocations of each variant, over all rounds
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Invoking")]
    pub(super) invocations: u64,
    /// What each invocation is given: JSON, or a file with it
    #[arg(
        long,
        value_name = "JSON|FILE",
        conflicts_with = "event_shape",
        help_heading = "Invoking"
    )]
    pub(super) event: Option<String>,
    /// An event that is built in
    #[arg(long, value_enum, help_heading = "Invoking")]
    pub(super) event_shape: Option<EventShape>,
    /// How long the function rests, frozen, before an invocation; several are taken in turn
    #[arg(long, value_name = "TIME,..", value_delimiter = ',', default_value = "0s", value_parser = crate::cmd::bench::time, help_heading = "Invoking")]
    pub(super) idle: Vec<Duration>,
    /// What is frozen between invocations [default: machine on a link, else processes]
    #[arg(long, value_enum, help_heading = "Invoking")]
    pub(super) freeze: Option<Freeze>,
    /// How processes are stopped [default: cgroup where a control group may be made, else signals]
    #[arg(long, value_enum, help_heading = "Invoking")]
    pub(super) freeze_with: Option<FreezerKind>,
    /// Idle times pass this many times faster than they say. Only where neither side gives up
    /// connections by a timer of its own: the run is marked
    #[arg(long, value_name = "FACTOR", value_parser = factor, help_heading = "Invoking")]
    pub(super) time_scale: Option<f64>,
    /// Environments at once; that number of invocations begin together
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256), help_heading = "Invoking")]
    pub(super) concurrency: u64,
    /// The share of one processor that each environment gets, or the memory (512MB) that buys it
    /// on Lambda: 1769 MB are one processor
    #[arg(long, value_name = "SHARE|MEMORY", value_parser = share, help_heading = "Invoking")]
    pub(super) memory_cpu: Option<f64>,
    /// A new environment (a cold start) after this number of invocations; each round begins with
    /// one in any case
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Invoking")]
    pub(super) cold_every: Option<u64>,
    /// The function's limit
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = crate::cmd::bench::time, help_heading = "Invoking")]
    pub(super) timeout: Duration,
    /// The limit until it asks for its first event
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::cmd::bench::time, help_heading = "Invoking")]
    pub(super) init_timeout: Duration,
    /// `_HANDLER`, for runtime clients that read it: app.handler
    #[arg(long, value_name = "NAME", help_heading = "Invoking")]
    pub(super) handler: Option<OsString>,
    /// CMD serves HTTP at the port in the variable PORT, and is no runtime client. Each invocation
    /// is a request to it (GET, with an event POST)
    #[arg(long, conflicts_with = "handler", help_heading = "Invoking")]
    pub(super) http: bool,
    /// What --http asks for
    #[arg(
        long,
        value_name = "PATH",
        default_value = "/",
        requires = "http",
        help_heading = "Invoking"
    )]
    pub(super) path: String,
    /// Put the function behind an emulated link, with our own server on the other side
    /// (INTACT_URL, INTACT_TLS_URL, INTACT_CA); `intact link --help` has the words: rtt=30ms
    #[arg(long, value_name = "SPEC", help_heading = "Link")]
    pub(super) link: Option<Spec>,
    /// Run this shell command on the other side instead
    #[arg(long, value_name = "CMD", requires = "link", help_heading = "Link")]
    pub(super) server: Option<String>,
    /// The port on which --server listens, and which is waited for [default: 80 or 443]
    #[arg(long, value_name = "PORT", requires = "server", help_heading = "Link")]
    pub(super) port: Option<u16>,
    #[command(flatten)]
    pub(super) places: PlaceOptions,
    #[command(flatten)]
    pub(super) faults: FaultOptions,
    /// Variants by their environment variables, each a word: --variants 'KEEPALIVE=0' 'KEEPALIVE=1
    /// CACHE=1'; the first is what the others are compared with
    #[arg(long, value_name = "KEY=VALUE ..", num_args = 1.., help_heading = "Comparing")]
    pub(super) variants: Vec<String>,
    /// Rounds over which the invocations of each variant are spread, the variants in turn; from 8
    /// on differences have intervals [default: 1, with several variants 10, or fewer so that
    /// each has an invocation after each --idle]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Comparing")]
    pub(super) rounds: Option<u32>,
    /// Seed of the order of the variants
    #[arg(long, help_heading = "Comparing")]
    pub(super) seed: Option<u64>,
    /// Whether the function's connections are followed, by a relay as `intact watch` does it
    #[arg(long, value_parser = options::words(options::SWITCH), action = ArgAction::Set, default_value = "on", help_heading = "Invoking")]
    pub(super) watch: bool,
    /// Keep the ledger in a new folder: invocations, connections, requests
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(super) ledger: Option<PathBuf>,
    #[command(flatten)]
    pub(super) output: Output,
    /// Write a row for each invocation
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) csv: Option<PathBuf>,
    #[command(flatten)]
    pub(super) gates: Gates,
    /// The runtime client, or a program that speaks the Runtime API; several after a -- each are
    /// variants
    #[arg(required_unless_present = "require", last = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub(super) enum Freeze {
    /// The processes are stopped, and the link drops everything: no process responds for the
    /// function. Needs --link
    Machine,
    /// The processes are stopped; the kernel goes on and takes a server's FIN
    Processes,
    /// Nothing
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub(super) enum FreezerKind {
    /// SIGSTOP to one process after the other
    Signals,
    /// A control group, all at once
    Cgroup,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum, Serialize, Deserialize)]
pub(super) enum EventShape {
    /// A GET of an API Gateway HTTP API, format 2.0
    Apigw,
    /// One message of a queue
    Sqs,
}

const EXAMPLES: &str = "Examples:
  intact lambda --handler app.handler -- python3 -m awslambdaric app.handler
  intact lambda -n 100 --idle 0s,30s --handler index.handler \\
    -- npx aws-lambda-ric index.handler
  intact lambda --http --idle 0s,30s -- npm start
  intact lambda -n 1000 --variants 'KEEPALIVE=0' 'KEEPALIVE=1' -- ./bootstrap
  intact lambda --link rtt=30ms --idle 5s -- ./bootstrap
  intact lambda --link rtt=30ms,nat-idle=3s:silent \\
    --server 'nginx -c $PWD/n.conf' --idle 5s --timeout 10s -- ./bootstrap
  intact lambda -n 4 --idle 1s --timeout 8s --fault each -- ./bootstrap
  intact lambda --cold-every 10 --csv calls.csv -- ./before -- ./after

The function finds AWS_LAMBDA_RUNTIME_API and the other variables of Lambda. Its output goes to standard error. Between
invocations it is frozen, while the kernel receives the server's FIN. On a link no packet passes during a freeze.
With nat-idle=TIME:silent the path forgets the connections too.

Exit code: 0; 1 a requirement failed; 3 when no invocation was answered; 127 not found, 126 not runnable, 125 own failure, 4 a link is not permitted here; 128+n after signal n,
what was measured until then is reported";

/// For clap: how many times faster.
fn factor(word: &str) -> Result<f64, String> {
    let factor = word
        .parse()
        .ok()
        .filter(|factor| (1.0..=1e6).contains(factor));
    factor.ok_or_else(|| "a number from 1 on: --time-scale 10".to_owned())
}

/// For clap: a share of one processor, or the memory that buys it on Lambda.
fn share(word: &str) -> Result<f64, String> {
    const WHOLE: f64 = 1769.0;
    let number = |word: &str| word.trim().parse::<f64>().ok();
    let share = match word.strip_suffix("MB") {
        Some(memory) => number(memory).map(|memory| memory / WHOLE),
        None => number(word),
    };
    share
        .filter(|share| *share > 0.0 && *share <= 64.0)
        .ok_or_else(|| "a share of a processor (0.25) or an amount of memory (512MB)".to_owned())
}
