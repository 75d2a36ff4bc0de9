//! `intact compare`: did my fix help? Programs side by side in interleaved rounds, or stored
//! ledgers.

#[cfg(target_os = "linux")]
mod commits;
#[cfg(not(target_os = "linux"))]
#[path = "compare/no_commits.rs"]
mod commits;
mod programs;
mod rounds;

use super::conclusion::{Conclusion, FileOutput};
use super::config::Config;
use super::fault_options::FaultOptions;
use super::gates::Gates;
use super::output_files::OutputFiles;
use super::places::PlaceOptions;
use super::production;
use super::resolver;
use super::run_header;
use super::watch::Keys;
use crate::exit::Failed;
use anyhow::anyhow;
use intact_document::requirement::DocumentKind;
use intact_experiments::compare::{CompareFacts, Comparison};
use intact_experiments::likeness::ConnectionBehaviour;
use intact_findings::{Document, Parts, document_of, stored};
use intact_ledger::store::Reader;
use intact_ledger::{EvidenceSet, Producer, Run, Variant};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Component, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

pub(super) use programs::distinct_names;

/// Options without effect on stored ledgers: they run programs, or keep what programs did.
const OF_PROGRAMS: [&str; 23] = [
    "fault",
    "faults",
    "commits",
    "setup",
    "places",
    "code_root",
    "rounds",
    "warm_up",
    "prepare",
    "env",
    "rtt",
    "resolver",
    "keys",
    "ignore_failure",
    "show_output",
    "cpu",
    "flamegraph",
    "seed",
    "ledger",
    "csv",
    "har",
    "prometheus",
    "otlp",
];

/// Did my fix help? Programs side by side, or stored ledgers.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Stored ledgers of `watch` or `audit` to compare; the first is the baseline
    #[arg(value_name = "DIR", conflicts_with_all = OF_PROGRAMS)]
    ledgers: Vec<PathBuf>,
    /// The ledger of production: do the load tests of the other ledgers use connections as it
    /// does?
    #[arg(long, value_name = "DIR", conflicts_with_all = OF_PROGRAMS, requires = "ledgers")]
    like: Option<PathBuf>,
    /// Two commits of this repository, run in checkouts of their own: BASE..HEAD; BASE...HEAD from
    /// their merge base on; BASE alone compares the working tree with its merge base
    #[arg(
        long,
        value_name = "BASE..HEAD",
        conflicts_with = "env",
        help_heading = "Commits"
    )]
    commits: Option<String>,
    /// A command for sh that is run once in each checkout, such as `npm ci`
    #[arg(
        long,
        value_name = "CMD",
        requires = "commits",
        help_heading = "Commits"
    )]
    setup: Option<String>,
    /// Rounds of each program; from 8 on differences have intervals
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Running")]
    rounds: u32,
    /// Rounds before those, which are not counted
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Running")]
    warm_up: u32,
    /// A command for sh that is run before each program, unwatched
    #[arg(long, value_name = "CMD", help_heading = "Running")]
    prepare: Option<String>,
    /// Run each program with each of these values of a variable, may be repeated: KEEPALIVE=0,1
    #[arg(long, value_name = "KEY=A,B", help_heading = "Running")]
    env: Vec<String>,
    /// Add a round trip to each connection, so that a laptop shows what production would
    #[arg(long, value_name = "TIME", value_parser = super::bench::time, help_heading = "Running")]
    rtt: Option<Duration>,
    /// Have the programs look names up at this name server, port 53, by a private resolv.conf; see
    /// `intact serve --dns`
    #[arg(long, value_name = "ADDRESS", value_parser = super::resolver::address, help_heading = "Running")]
    resolver: Option<IpAddr>,
    /// Where TLS keys come from; as in `watch`
    #[arg(long, value_enum, default_value_t = Keys::Auto, help_heading = "Running")]
    keys: Keys,
    /// Continue when a program fails [default: end with its exit code]
    #[arg(long, help_heading = "Running")]
    ignore_failure: bool,
    /// Let the programs print, and read standard input [default: output is discarded, input is
    /// empty]
    #[arg(long, help_heading = "Running")]
    show_output: bool,
    /// Report what share of their processor time the programs spend on sockets, TLS and lookups,
    /// by sampling
    #[arg(long, help_heading = "Running")]
    cpu: bool,
    /// Draw where the programs spend processor time, next to each other; as in `watch`. Sampling
    /// takes time itself
    #[arg(long, value_name = "FILE.svg", help_heading = "Running")]
    flamegraph: Option<PathBuf>,
    /// Seed of the order of the programs
    #[arg(long, help_heading = "Running")]
    seed: Option<u64>,
    #[command(flatten)]
    places: PlaceOptions,
    /// After the rounds, run each program once without a fault and once under each kind, and
    /// compare the cards: --fault each
    #[arg(long, help_heading = "Faults")]
    faults: bool,
    #[command(flatten)]
    fault: FaultOptions,
    #[command(flatten)]
    files: OutputFiles,
    #[command(flatten)]
    output: FileOutput,
    #[command(flatten)]
    gates: Gates,
    /// The programs, each after a -- of its own; a single word with blanks in it is given to sh
    #[arg(last = true, value_name = "CMD")]
    programs: Vec<OsString>,
}

const EXAMPLES: &str = "Examples:
  intact compare -- 'node old.js' -- 'node new.js'
  intact compare --commits main --setup 'npm ci' -- npm test
  intact compare --commits v1.2..v1.3 --setup 'make' -- ./bin/calls
  intact compare --rtt 30ms -- ./before --once -- ./after --once
  intact compare --env AWS_NODEJS_CONNECTION_REUSE_ENABLED=0,1 \\
    -- node list-tables.js
  intact compare --report pr.md --require 'avoidable == 0' \\
    --require 'saved > 0ms' -- ./a -- ./b
  intact compare --cpu --flamegraph both.svg -- 'node old.js' -- 'node new.js'
  intact compare --resolver 127.0.0.9 --env KEEPALIVE=0,1 -- node client.js
  intact watch --ledger before -- npm test
  intact watch --ledger after -- npm test
  intact compare before after
  intact watch --ledger test -- k6 run test.js
  intact compare --like production/ test/

The first program is the baseline. A requirement without a selector is about the others; `variant=NAME:` names one.
Counts are those of one run. Each run is a process of its own, watched as `intact watch` does.
With stored ledgers, options of runs and --ledger, --csv, --har, --prometheus, --otlp are refused: pass them when you record.
Exit code: 0; 1 when a requirement failed; a program's own when it fails, after the page; 127 not found, 126 not runnable,
125 own failure, 4 not permitted here, 5 a ledger cannot be read; 128+n after signal n, after the page";

/// Runs or reads, then prints the page.
pub(crate) fn run(config: &Config<Args>) -> Result<ExitCode, Failed> {
    let args = &config.options;
    let conclusion = Conclusion::begin(args.output.clone(), &args.gates, DocumentKind::Compare)?;
    let is_without = args.programs.is_empty() && args.commits.is_none();
    let (run, facts, ended) = match (args.ledgers.is_empty(), is_without) {
        (false, true) => {
            let like = args.like.iter();
            let all: Vec<PathBuf> = like.chain(&args.ledgers).cloned().collect();
            let (run, mut facts) = of_ledgers(&all, &config.words)?;
            if args.like.is_some() {
                compare_with_production(&mut facts, &run, &all)?;
            }
            (run, facts, None)
        }
        (true, false) => {
            resolver::enter(args.resolver)?;
            rounds::of_programs(config)?
        }
        (true, true) => {
            return Err(usage(
                "name programs (-- CMD_A -- CMD_B) or ledgers (DIR_A DIR_B)",
            ));
        }
        (false, false) => return Err(usage("either programs or ledgers, not both")),
    };
    let document = Document::new(run, Parts::Compare(Box::new(facts)));
    match ended {
        Some(code) => {
            conclusion.write(&document)?;
            Ok(ExitCode::from(code))
        }
        None => Ok(conclusion.finish(&document, None)?),
    }
}

/// Facts of stored ledgers, each a program with one round.
fn of_ledgers(folders: &[PathBuf], words: &[String]) -> Result<(Run, CompareFacts), Failed> {
    let [_, _, ..] = folders else {
        return Err(usage("name two ledgers at least, the baseline first"));
    };
    let mut readers = Vec::new();
    for folder in folders {
        if !folder.is_dir() {
            let remedy = "to run programs, write `intact compare -- CMD_A -- CMD_B`";
            let name = folder.display();
            let error = anyhow!("{name} is no folder with a ledger; {remedy}");
            return Err(Failed::unreadable(error));
        }
        let reader = Reader::open(folder).map_err(Failed::unreadable)?;
        let producer = &reader.run().producer;
        let remedy = match document_of(reader.run()) {
            DocumentKind::Bench => Some(
                "`intact bench --baseline DIR` compares two benches, `intact bench --like DIR` a bench with production",
            ),
            DocumentKind::Scenario => Some("`intact report DIR` shows a scenario"),
            DocumentKind::Capacity => Some("`intact report DIR` shows a capacity"),
            DocumentKind::Compare => Some("`intact report DIR` shows a comparison"),
            DocumentKind::Fault => Some("`intact report DIR` shows a card of faults"),
            _ => None,
        };
        if let Some(remedy) = remedy {
            let error = anyhow!(
                "{} was recorded by `intact {producer}`: {remedy}",
                folder.display()
            );
            return Err(Failed::unreadable(error));
        }
        readers.push(reader);
    }
    let mut run = run_header::head(Producer::Compare, readers[0].run().vantage, words);
    run.variants = named(names(folders));
    run.varied = vec!["ledger".to_owned()];
    let evidence = readers.iter().map(|reader| reader.run().evidence);
    run.add_evidence(
        evidence
            .reduce(EvidenceSet::intersection)
            .unwrap_or_default(),
    );
    let mut contest = Comparison::new(&run);
    for (index, reader) in readers.iter().enumerate() {
        let traffic = stored::traffic(reader).map_err(Failed::unreadable)?;
        contest.take(index, None, None, &traffic.facts());
    }
    Ok((run, contest.facts()))
}

/// Adds how the ledgers use connections: the first is that of production, the others of tests.
fn compare_with_production(
    facts: &mut CompareFacts,
    run: &Run,
    folders: &[PathBuf],
) -> Result<(), Failed> {
    let behaviour = |(folder, variant): (&PathBuf, &Variant)| {
        let behaviour = production::behaviour(folder, None)?;
        let name = variant.name.clone();
        Ok(ConnectionBehaviour { name, ..behaviour })
    };
    let all = folders.iter().zip(&run.variants).map(behaviour);
    let mut all = all.collect::<Result<Vec<_>, Failed>>()?.into_iter();
    if let Some(production) = all.next() {
        facts.compare_with_production(production, all.collect());
    }
    Ok(())
}

/// The shortest ends of the paths that differ and have a letter in each.
fn names(folders: &[PathBuf]) -> Vec<String> {
    let paths: Vec<Vec<String>> = folders
        .iter()
        .map(|folder| {
            let parts = folder.components();
            let part = |part: Component<'_>| part.as_os_str().to_string_lossy().into_owned();
            parts.map(part).collect()
        })
        .collect();
    let longest = paths.iter().map(Vec::len).max().unwrap_or(0);
    let ends = (1..=longest).map(|length| {
        let end = |parts: &Vec<String>| parts[parts.len().saturating_sub(length)..].join("/");
        paths.iter().map(end).collect::<Vec<String>>()
    });
    let is_clear = |names: &Vec<String>| {
        let mut distinct = names.clone();
        distinct.sort();
        distinct.dedup();
        let has_letter = |name: &String| name.chars().any(char::is_alphabetic);
        distinct.len() == names.len() && names.iter().all(has_letter)
    };
    let mut ends = ends;
    let whole = || folders.iter().map(|folder| folder.display().to_string());
    ends.find(is_clear).unwrap_or_else(|| whole().collect())
}

fn named(names: Vec<String>) -> Vec<Variant> {
    let one = |name: String| Variant {
        axes: BTreeMap::from([("ledger".to_owned(), name.clone())]),
        name,
    };
    distinct_names(names).into_iter().map(one).collect()
}

fn usage(words: &'static str) -> Failed {
    Failed::usage(anyhow!(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledgers_are_named_by_the_ends_of_their_paths_that_differ() {
        let names = |paths: [&str; 2]| names(&paths.map(PathBuf::from));
        assert_eq!(names(["x/before", "x/after"]), ["before", "after"]);
        assert_eq!(names(["a/ledger", "b/ledger"]), ["a/ledger", "b/ledger"]);
        assert_eq!(
            names(["x/a/ledger", "x/b/ledger"]),
            ["a/ledger", "b/ledger"]
        );
        assert_eq!(names(["runs/0", "runs/1"]), ["runs/0", "runs/1"]);
        assert_eq!(names(["0", "1"]), ["0", "1"]);
    }
}
