//! `intact bench --scenario`: simulated clients, as a definition in JavaScript or TOML describes
//! them.

use super::measurement::Measurement;
use super::{Args, bench_config};
use crate::cmd::builtin::Ready;
use crate::cmd::json;
use crate::console;
use crate::exit::{self, Failed};
use anyhow::{Context, anyhow};
use intact_bench::{Arrival, Scenario, ScenarioSize};
use intact_client::Clock;
use intact_experiment::Arrivals;
use intact_experiments::scenario::ScenarioFacts;
use intact_findings::{Document, Parts};
use intact_ledger::input_file;
use intact_scenario::{LARGEST_FILE, Language, Plan};
use intact_units::Quantity::{Share, Time};
use intact_units::duration;
use intact_units::plural::counted;
use std::process::ExitCode;
use std::time::Duration;

/// How long the definition may be evaluated.
const LIMIT: Duration = Duration::from_secs(5);
/// The target of a plan that is only printed and names none.
const NOWHERE: &str = "http://127.0.0.1/";

/// Prints the plan, and sends nothing.
pub(super) fn print_plan(args: &Args) -> Result<ExitCode, Failed> {
    let (file, plan) = read(args)?;
    let scenario = scenario(args, &file, plan.clone(), None, Some(NOWHERE))?;
    if args.output.is_json() {
        json::print(&plan.to_json().context("--json")?);
    } else {
        console::print_written(&format!(
            "{}{}",
            summary(&plan, scenario.size()),
            plan.to_toml()
        ));
    }
    Ok(ExitCode::from(exit::FINE))
}

/// Runs the clients.
pub(super) fn measure(args: &Args, measurement: &mut Measurement<'_>) -> Result<Document, Failed> {
    let (file, plan) = read(args)?;
    if args.url.is_none() && plan.named_target().is_none() {
        measurement.start_server()?;
    }
    let scenario = scenario(args, &file, plan, measurement.ready(), None)?;
    console::note(&format!("sending {}", words(scenario.size())));
    let head = measurement.head(|head| scenario.describe(head));
    let mut recording = measurement.record(head, scenario.gauge())?;
    let mut tally = scenario
        .run(Clock::start(), &mut recording)
        .map_err(super::usage_or_own)?;
    let recorded = recording.finish(&mut tally, measurement.caveats()?);
    let facts = ScenarioFacts::new(&recorded.run, &tally, &recorded.first);
    Ok(Document::new(
        recorded.run,
        Parts::Scenario(Box::new(facts)),
    ))
}

/// The name of the definition's file, and its plan.
fn read(args: &Args) -> Result<(String, Plan), Failed> {
    let path = args.scenario.scenario.as_deref();
    let path = path.ok_or_else(|| Failed::usage(anyhow!("--scenario names no file")))?;
    let file = path.display().to_string();
    let language = Language::of(path).ok_or_else(|| {
        Failed::usage(anyhow!(
            "--scenario {file}: the name has to end with .js (JavaScript) or .toml"
        ))
    })?;
    let text = input_file::read_text(path, LARGEST_FILE)
        .with_context(|| format!("--scenario {file}"))
        .map_err(Failed::usage)?;
    let plan = intact_scenario::compile(&file, language, &text, LIMIT).map_err(Failed::usage)?;
    Ok((file, plan))
}

/// The scenario of these options. `ready`: the built-in server. `otherwise`: the target where
/// nothing names one.
fn scenario(
    args: &Args,
    file: &str,
    plan: Plan,
    ready: Option<&Ready>,
    otherwise: Option<&str>,
) -> Result<Scenario, Failed> {
    let usage = |words: String| Failed::usage(anyhow!(words));
    let named = plan.named_target();
    let url = match (&args.url, named) {
        (Some(url), Some((target, line))) => {
            return Err(usage(format!(
                "{file}:{line}: the target is {target}, so {url} has no effect; lead its connections elsewhere with --connect-to HOST:PORT:HOST2:PORT2"
            )));
        }
        (None, Some((target, line))) if args.link.is_some() => {
            return Err(usage(format!(
                "{file}:{line}: the target is {target}, and --link is for our own server; put both on a link: intact link SPEC -- intact bench --scenario {file} --connect-to HOST:PORT:server.test:80"
            )));
        }
        (None, Some((target, _))) => target.to_owned(),
        (Some(url), None) => url.clone(),
        (None, None) => {
            let url = ready.map(Ready::url).or(otherwise.map(str::to_owned));
            url.ok_or_else(|| usage("name a URL: the scenario has no target".to_owned()))?
        }
    };
    for (option, count) in [
        ("-c", args.axes.concurrency.len()),
        ("--http", args.axes.http.len()),
        ("--dns", args.axes.dns.len()),
    ] {
        if count > 1 {
            return Err(usage(format!("{option}: a scenario takes one value")));
        }
    }
    // without a scheme it is plain, as in the URLs of other options
    let whole = match url.contains("://") {
        true => url,
        false => format!("http://{url}"),
    };
    let config = bench_config(args, whole, ready)?;
    let arrival = Arrival {
        spacing: args.open_loop.arrivals.unwrap_or(Arrivals::Poisson),
        clients: args.requests,
        time: args.time,
        at_once: args.axes.concurrency.first().copied(),
    };
    let is_ours = ready.is_some();
    Scenario::new(config, plan, file, arrival, is_ours).map_err(Failed::usage)
}

/// What a scenario sends, where it is known in advance.
fn words(size: ScenarioSize) -> String {
    let all = |number: f64, noun: &str| counted(number.round() as u64, noun);
    let requests = size.requests;
    let requests = requests.map(|requests| format!("about {}", all(requests, "request")));
    let clients = size.clients.map(|clients| all(clients, "client"));
    let mut words = match (requests, clients) {
        (Some(requests), Some(clients)) => format!("{requests} of {clients}"),
        (None, Some(clients)) => format!("the requests of {clients}"),
        _ => "requests".to_owned(),
    };
    if let Some(time) = size.time {
        words += &format!(" that arrive within {}", duration::write(time));
    }
    words += &format!(
        ", at most {} at once",
        counted(size.at_once.into(), "client")
    );
    if let Some(rate) = size.opening_per_s {
        words += &format!(", {rate} new connections a second at most");
    }
    words
}

/// What a person wants to know of a plan before the plan itself, as comments of TOML.
fn summary(plan: &Plan, size: ScenarioSize) -> String {
    let mut lines = vec![words(size)];
    for session in &plan.sessions {
        let requests = match session.requests() {
            Some(requests) => counted(requests, "request"),
            None => "requests without an end".to_owned(),
        };
        let waits = session.mean_wait().map(|wait| wait.as_secs_f64() * 1e3);
        let waits = waits.filter(|ms| *ms > 0.0);
        let waits = waits.map_or_else(String::new, |ms| {
            format!(", and waits {} on average", Time(ms))
        });
        let share = Share(plan.share(session));
        lines.push(format!(
            "{:?}: {share} of the clients; each sends {requests}{waits}",
            session.name
        ));
    }
    let notes = plan.notes.iter();
    lines.extend(notes.map(|note| format!("line {}: {}", note.line, note.words)));
    lines
        .iter()
        .map(|line| format!("# {line}\n"))
        .collect::<String>()
        + "\n"
}
