//! Tests the recommended settings: 100 requests to a server that closes idle connections, with
//! pauses around its idle limit.
//!
//! On one machine the race lasts a fraction of a millisecond, so the pauses sweep across it.

use super::environment::Launch;
use super::measure::join;
use super::program::{Outcome, Program, ProgramStep};
use super::server::Server;
use std::path::Path;
use std::time::{Duration, Instant};

/// Programs that run side by side, and requests that each makes after its first.
const PROGRAMS: u32 = 10;
const REQUESTS: u32 = 10;
/// The pauses start `BEFORE` the server's limit and sweep over `SWEEP`. The program gets the
/// command a little later.
const BEFORE: Duration = Duration::from_millis(6);
const SWEEP: Duration = Duration::from_millis(10);

/// The outcomes of the 100 requests.
#[derive(Default)]
pub(crate) struct Survived {
    /// Requests that got a response.
    pub(crate) answered: usize,
    /// The errors that the programs got.
    pub(crate) errors: Vec<String>,
    /// Connections that the server saw, one for each program at least.
    pub(crate) connections: u64,
}

/// Runs them; half are POSTs, which clients do not repeat.
pub(crate) fn survive(
    intact: &Path,
    launch: &Launch,
    server_idle: Duration,
) -> anyhow::Result<Survived> {
    let limit = format!("{}ms", server_idle.as_millis());
    let server = Server::start(intact, &["--idle-timeout", &limit])?;
    let url = server.plain() + "/bytes/100";
    let outcomes: Vec<anyhow::Result<Vec<Outcome>>> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..PROGRAMS)
            .map(|nth| {
                let url = &url;
                scope.spawn(move || one(launch, url, server_idle, nth))
            })
            .collect();
        running.into_iter().map(join).collect()
    });
    let mut survived = Survived::default();
    for outcome in outcomes {
        for outcome in outcome? {
            match outcome {
                Outcome::Status(_) => survived.answered += 1,
                Outcome::Error(error) => survived.errors.push(error),
            }
        }
    }
    let total = u64::from(PROGRAMS * (REQUESTS + 1));
    survived.connections = server
        .end()?
        .count("/bytes/100", total, survived.errors.len() as u64)?
        .connections;
    Ok(survived)
}

fn one(
    launch: &Launch,
    url: &str,
    server_idle: Duration,
    nth: u32,
) -> anyhow::Result<Vec<Outcome>> {
    let mut program = Program::start(launch.command()?)?;
    program.run(&ProgramStep::get(url))?;
    let mut outcomes = Vec::new();
    for at in 0..REQUESTS {
        let answered = Instant::now();
        let share = f64::from(at * PROGRAMS + nth) / f64::from(PROGRAMS * REQUESTS);
        let pause = server_idle.saturating_sub(BEFORE) + SWEEP.mul_f64(share);
        std::thread::sleep(pause.saturating_sub(answered.elapsed()));
        let step = if at % 2 == 0 {
            ProgramStep::post(url)
        } else {
            ProgramStep::get(url)
        };
        let outcome = program.run(&step)?;
        outcomes.extend(outcome);
    }
    program.end()?;
    Ok(outcomes)
}
