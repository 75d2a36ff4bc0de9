//! `intact bench --service CMD`: the person's own service, started under `watch` in each round,
//! benched at its door, ended. Both sides are reported. Several services are variants, in a
//! balanced random order.

use super::args::{Args, time};
use super::measurement::Measurement;
use super::watched_service::{ServiceJob, WatchedService};
use super::{bench_config, usage_or_own};
use crate::cmd::recording::Recording;
use crate::cmd::run_header;
use crate::console;
use crate::exit::{Failed, refuse};
use crate::interrupt::Interrupt;
use anyhow::{Context, anyhow};
use intact_bench::{Bench, BenchObserver, Length, Place, Position};
use intact_client::{Clock, ServerUrl};
use intact_experiment::order;
use intact_experiments::bench::{NOT_OBSERVED, OutgoingRound, SERVICE_ENDED};
use intact_findings::Document;
use intact_ledger::store::Outgoing;
use intact_ledger::{Caveat, Row, Tally, Variant, redact};
use intact_units::foreign_text::escape;
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time of each service over all rounds, unless `-z` says otherwise.
const TIME: Duration = Duration::from_secs(20);
/// Rounds, unless `--rounds` says otherwise: enough for an interval.
const ROUNDS: u32 = 10;
/// Connections at once, unless `-c` says otherwise.
const CONNECTIONS: u32 = 16;
/// The load before each round, so that a service is warm.
const WARM_UP: Duration = Duration::from_millis(500);

/// The person's own services.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Service (your own, under `intact watch`)")]
pub(crate) struct ServiceOptions {
    /// Start this service in each round, bench the URL, end it, and report both sides; a second
    /// one is compared with the first [default -c: 16, -z: 20s, --rounds: 10]
    #[arg(long, value_name = "CMD", requires = "url", conflicts_with_all = ["scenario", "find_max", "overload", "ramp", "link", "baseline", "requests", "server_pid", "live", "flamegraph", "like"])]
    service: Vec<String>,
    /// Add a round trip to each connection that a service opens, from its SYN on
    #[arg(long, value_name = "TIME", value_parser = time, requires = "service")]
    service_rtt: Option<Duration>,
}

impl ServiceOptions {
    /// Whether a service is started.
    pub(in crate::cmd) fn is_any(&self) -> bool {
        !self.service.is_empty()
    }
}

/// Benches the services.
pub(super) fn measure(args: &Args, measurement: &Measurement<'_>) -> Result<Document, Failed> {
    let services = &args.service.service;
    let url = args.url.clone().unwrap_or_default();
    let address = address(&url)?;
    let rounds = args.rounds.unwrap_or(ROUNDS).max(1);
    let each = args.time.unwrap_or(TIME) / rounds;
    if args.request.grpc.asks_server() {
        refuse!(
            "--grpc-json: the services do not run yet, so that none can be asked for its types; name them with --descriptors FILE"
        );
    }
    let arguments = arguments(args, each);
    let bench_config = bench_config(&arguments, url, None)?;
    if !bench_config.is_local().map_err(Failed::usage)? {
        refuse!(
            "--service runs on this machine: the URL has to be its address here, such as http://127.0.0.1:3000/"
        );
    }
    let bench = Bench::new(bench_config.clone()).map_err(usage_or_own)?;
    let [variant] = bench.variants() else {
        refuse!(
            "--service takes one value of each axis (-c, --keepalive, --rate and the others): its variants are the services"
        );
    };
    let variant = variant.clone();
    let head = measurement.head(|head| {
        bench.describe(head);
        head.variants = variants(&variant, services);
        head.varied = vec!["service".to_owned()];
    });
    let recording = measurement.record(head.clone(), bench.gauge())?;
    let mut run = ServiceRounds {
        args,
        address,
        bench_config,
        clock: Clock::start(),
        recording,
        tally: Tally::new(),
        services: services.len(),
        names: head.variants.iter().map(|one| one.name.clone()).collect(),
        outgoing: Vec::new(),
        ledgers: Ledgers::of(args.ledger.as_deref())?,
        interrupt: measurement.interrupt.clone(),
        turns: (0, rounds * services.len() as u32),
    };
    let seed = head.seed.unwrap_or_default();
    run.all(rounds, seed)?;
    let ServiceRounds {
        recording,
        mut tally,
        outgoing,
        ..
    } = run;
    let recorded = recording.finish(&mut tally, Vec::new());
    super::document(recorded, &tally, |facts| facts.add_services(&outgoing))
}

/// Where the service listens.
fn address(url: &str) -> Result<SocketAddr, Failed> {
    let parsed = ServerUrl::parse(url).map_err(Failed::usage)?;
    let mut addresses = (parsed.host.as_str(), parsed.port)
        .to_socket_addrs()
        .with_context(|| format!("--service: {}", parsed.host))
        .map_err(Failed::usage)?;
    let first = addresses.next();
    first.ok_or_else(|| Failed::usage(anyhow!("--service: {} has no address", parsed.host)))
}

/// The arguments of the bench of one round.
fn arguments(args: &Args, each: Duration) -> Args {
    let mut args = args.clone();
    args.time = Some(each);
    args.rounds = Some(1);
    if args.axes.concurrency.is_empty() {
        args.axes.concurrency = vec![CONNECTIONS];
    }
    // both values are the default, which compares; here the services are compared
    if args.axes.keepalive == [true, false] {
        args.axes.keepalive = vec![true];
    }
    args
}

/// A variant for each service; one that is named twice has a number.
fn variants(base: &Variant, services: &[String]) -> Vec<Variant> {
    let mut variants: Vec<Variant> = Vec::new();
    for line in services {
        let shown = redact::line(&line.split_whitespace().collect::<Vec<_>>().join(" "));
        let same = variants
            .iter()
            .filter(|one| one.axes.get("service") == Some(&shown));
        let name = match same.count() {
            0 => shown.clone(),
            nth => format!("{shown} ({})", nth + 1),
        };
        let mut axes = base.axes.clone();
        axes.insert("service".to_owned(), shown);
        variants.push(Variant { name, axes });
    }
    variants
}

/// The folder for the ledgers of the services: that of the run's ledger, so that one record has
/// both sides; else one that ends with this value.
struct Ledgers {
    folder: PathBuf,
    are_kept: bool,
}

impl Ledgers {
    fn of(ledger: Option<&Path>) -> anyhow::Result<Ledgers> {
        if let Some(ledger) = ledger {
            return Ok(Ledgers {
                folder: ledger.to_owned(),
                are_kept: true,
            });
        }
        let name = format!("intact-{:032x}", run_header::id());
        let folder = std::env::temp_dir().join(name);
        let made = intact_ledger::private_file::create_folder(&folder);
        made.with_context(|| format!("cannot make the folder {}", folder.display()))?;
        Ok(Ledgers {
            folder,
            are_kept: false,
        })
    }
}

impl Drop for Ledgers {
    fn drop(&mut self) {
        if !self.are_kept {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// The rounds of all services.
struct ServiceRounds<'a> {
    args: &'a Args,
    address: SocketAddr,
    bench_config: intact_bench::Config,
    clock: Clock,
    recording: Recording,
    tally: Tally,
    services: usize,
    /// What the variants are called.
    names: Vec<String>,
    /// What they sent and opened, round by round.
    outgoing: Vec<OutgoingRound>,
    ledgers: Ledgers,
    interrupt: Interrupt,
    turns: (u32, u32),
}

impl ServiceRounds<'_> {
    fn all(&mut self, rounds: u32, seed: u64) -> Result<(), Failed> {
        let orders = order::balanced(self.services, rounds as usize, seed);
        for (nth, order) in (1u32..).zip(orders) {
            for service in order {
                if self.interrupt.signal().is_some() {
                    let words = format!("the run was interrupted in round {nth} of {rounds}");
                    self.tally.caveats.push(Caveat::new("interrupted", words));
                    self.recording.round_over(&self.tally);
                    return Ok(());
                }
                self.one(service, nth, rounds)?;
                self.turns.0 += 1;
            }
        }
        Ok(())
    }

    /// One service in one round.
    fn one(&mut self, service: usize, round: u32, rounds: u32) -> Result<(), Failed> {
        let options = &self.args.service;
        let line = &options.service[service];
        self.recording
            .describe(&format!("round {round} of {rounds}, {}", escape(line)));
        let outgoing = Outgoing {
            variant: service as u32,
            round,
        };
        let job = ServiceJob {
            command: line.clone(),
            round_trip: options.service_rtt.unwrap_or_default(),
            ledger: outgoing.folder(&self.ledgers.folder),
        };
        let mut running = WatchedService::start(job, self.address)?;
        let warm = intact_bench::Config {
            length: Length::Time(WARM_UP),
            ..self.bench_config.clone()
        };
        self.load(warm, &outgoing, false)?;
        let tally = self.load(self.bench_config.clone(), &outgoing, true)?;
        self.tally.merge(&tally);
        let id = match running.has_ended() {
            true => SERVICE_ENDED,
            false => NOT_OBSERVED,
        };
        match running.end() {
            Ok(traffic) => self.outgoing.push(OutgoingRound {
                ledger: self.ledgers.are_kept.then(|| outgoing.name()),
                place: outgoing,
                traffic,
            }),
            Err(error) => {
                console::note(&format!("intact: {error:#}"));
                let words = format!("round {round}: {error:#}");
                self.tally.caveats.push(Caveat::new(id, words));
            }
        }
        self.recording.round_over(&self.tally);
        Ok(())
    }

    /// The load of one round. The load before it is in no record.
    fn load(
        &mut self,
        config: intact_bench::Config,
        place: &Outgoing,
        is_recorded: bool,
    ) -> Result<Tally, Failed> {
        let place = Place {
            variant: place.variant,
            name: self.names[place.variant as usize].clone(),
            round: place.round,
            turn: self.turns.0,
        };
        let mut observer = RoundObserver {
            recording: &mut self.recording,
            turns: self.turns,
            is_recorded,
        };
        let bench = Bench::new(config).map_err(usage_or_own)?.placed(&place);
        bench.run(self.clock, &mut observer).map_err(usage_or_own)
    }
}

/// Hands on the rows of one round.
struct RoundObserver<'a> {
    recording: &'a mut Recording,
    turns: (u32, u32),
    is_recorded: bool,
}

impl BenchObserver for RoundObserver<'_> {
    fn rows(&mut self, rows: &[Row]) {
        if self.is_recorded {
            self.recording.rows(rows);
        }
    }

    fn warn(&mut self, words: &str) {
        self.recording.warn(words);
    }

    fn tick(&mut self, position: Position) {
        let turns = self.turns;
        self.recording.tick(Position { turns, ..position });
    }
}
