//! The scenarios: the requests of each variant, and how facts follow from the server's ledger.
//!
//! Each scenario starts a new server and a new client program, so that no pool has connections of
//! the scenario before.

use super::client_traits;
use super::environment::Launch;
use super::peer::{End, Peer, RACE, Script};
use super::program::{About, Outcome, Program, ProgramStep, SLOW, Skill, failed};
use super::server::{Server, ServerCounts};
use super::under_faults;
use anyhow::Context;
use intact_fix::{
    ClientFacts, Count, Idle, KeepAliveHeader, Load, RequestOutcome, RequestOutcomes,
};
use std::path::Path;
use std::process::Command;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

pub(super) const SMALL: &str = "/bytes/100";
const LARGE: &str = "/bytes/1000000";
const MISSING: &str = "/status/404";
const WARM: &str = "/warm/x";
const NEXT: &str = "/next/x";
const STALE: &str = "/stale/";

/// The server's idle limit, and a longer wait after which the client has certainly received the
/// FIN.
const SERVER_IDLE: &str = "300ms";
const UNTIL_DEAD: Duration = Duration::from_millis(900);
/// Pauses that search an idle limit. They avoid round numbers, which limits usually are.
const PAUSES_S: [f64; 13] = [
    1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 10.5, 15.5, 20.5, 30.5, 60.5, 90.5, 120.5,
];
/// How often bodies are left unread, where a connection was reused.
const UNREAD_REPETITIONS: usize = 5;
/// The announced idle timeout, and a longer pause that is still shorter than every client's own
/// limit.
const HINT: &str = "timeout=3";
const PAST_HINT: Duration = Duration::from_millis(3400);

/// What it takes to measure.
pub(crate) struct Bench<'a> {
    /// The `intact` binary.
    pub(crate) intact: &'a Path,
    /// The program.
    pub(crate) launch: &'a Launch,
}

/// Measures one part of the facts of one variant, except those that take long.
pub(crate) fn measure_part(bench: &Bench<'_>, part: Part) -> anyhow::Result<(About, ClientFacts)> {
    let mut facts = ClientFacts::default();
    if part == Part::Traits {
        return Ok((client_traits::measure(bench, &mut facts)?, facts));
    }
    let program = bench.start(None)?;
    let about = program.about.clone();
    program.end()?;
    if part == Part::Unread && about.can.contains(&Skill::Unread) {
        bench.unread(&mut facts).context("unread")?;
    }
    Ok((about, facts))
}

/// Measures all facts of one variant, except those of idle connections: they take long but no CPU.
pub(crate) fn measure(bench: &Bench<'_>) -> anyhow::Result<(About, ClientFacts)> {
    let mut facts = ClientFacts::default();
    let (about, plain) = bench.load("http", &mut facts).context("plain")?;
    facts.plain = plain;
    facts.tls = bench.load("https", &mut facts).context("tls")?.1;
    // the scripted peer speaks HTTP/1 only
    let is_http1 = !about.can.contains(&Skill::Http2Only);
    if is_reused(&facts) && about.can.contains(&Skill::Pause) {
        facts.stale.fin = Some(bench.dead("fin").context("dead by FIN")?);
        facts.stale.rst = Some(bench.dead("rst").context("dead by RST")?);
    }
    if is_http1 && is_reused(&facts) && about.can.contains(&Skill::Pause) {
        facts.keep_alive_header = bench.hint().context("hint")?;
        facts.stale.race_fin = Some(bench.race(End::Fin).context("race with FIN")?);
        facts.stale.race_rst = Some(bench.race(End::Rst).context("race with RST")?);
    }
    if about.can.contains(&Skill::Unread) && has_connected(&facts) {
        bench.unread(&mut facts).context("unread")?;
    }
    if is_http1 && has_connected(&facts) {
        client_traits::measure(bench, &mut facts)?;
    }
    Ok((about, facts))
}

/// A part of the facts that can be measured again on its own.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Fields, cookies, probes, lookups and lives
    Traits,
    /// What the clients do when their connections fail
    Faults,
    /// Bodies that are not read
    Unread,
}

impl Part {
    /// Takes this part over from a new measurement.
    pub(crate) fn take_over(self, known: &mut ClientFacts, measured: ClientFacts) {
        match self {
            Part::Traits => {
                known.connection_field = measured.connection_field;
                known.tcp_keepalive = measured.tcp_keepalive;
                known.cookies = measured.cookies;
                known.lookups = measured.lookups;
                known.life = measured.life;
            }
            Part::Faults => known.faults = measured.faults,
            Part::Unread => {
                known.unread_small = measured.unread_small;
                known.unread_large = measured.unread_large;
            }
        }
    }
}

/// What is looked at for long.
#[derive(Clone, Copy)]
pub(crate) struct Watching {
    pub(crate) how_long: Duration,
    /// The part that is measured again, if not all.
    pub(crate) only: Option<Part>,
    /// Whether connections fail under the client.
    pub(crate) has_faults: bool,
}

/// Measures the lifetimes of connections and names concurrently, each with a separate program.
pub(crate) fn watch(
    bench: &Bench<'_>,
    facts: &mut ClientFacts,
    watching: Watching,
) -> anyhow::Result<()> {
    if watching.only.is_none() && !has_connected(facts) {
        return Ok(());
    }
    if watching.has_faults {
        facts.faults = under_faults::measure(bench).context("faults")?;
    }
    if matches!(watching.only, Some(Part::Faults | Part::Unread)) {
        return Ok(());
    }
    let how_long = watching.how_long;
    let is_reused = is_reused(facts);
    let lookups = facts.lookups;
    let (idle, life, remembered) = std::thread::scope(|scope| {
        let idle = scope.spawn(|| match watching.only {
            Some(_) => Ok(None),
            None => bench.idle_for(how_long, is_reused).context("idle"),
        });
        let life = scope.spawn(|| bench.life(how_long).context("life"));
        let remembered = scope.spawn(|| {
            // a client that looks the name up for each connection does not cache it
            match lookups.is_some_and(|lookups| lookups.closed < 10) {
                true => bench.remembered(how_long).context("lookups"),
                false => Ok(None),
            }
        });
        (join(idle), join(life), join(remembered))
    });
    facts.idle = idle?;
    facts.life = life?;
    let remembered = remembered?;
    if let Some(lookups) = &mut facts.lookups {
        lookups.dns_cached = remembered;
    }
    Ok(())
}

/// The result of a thread, whose panic continues here.
pub(super) fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Whether the client made any request.
fn has_connected(facts: &ClientFacts) -> bool {
    (facts.plain.as_ref()).is_some_and(|load| load.sequential.connections > 0)
}

fn is_reused(facts: &ClientFacts) -> bool {
    facts
        .plain
        .as_ref()
        .is_some_and(|load| load.sequential.is_reused())
}

impl Bench<'_> {
    pub(super) fn start(&self, server: Option<&Server>) -> anyhow::Result<Program> {
        let mut command = self.launch.command()?;
        if let Some(server) = server {
            trust(&mut command, server);
        }
        Program::start(command)
    }

    /// Requests in turn and at once over one scheme, if the client speaks it. Over plain HTTP it
    /// also makes requests whose response is an error.
    fn load(&self, scheme: &str, facts: &mut ClientFacts) -> anyhow::Result<(About, Option<Load>)> {
        let server = Server::start(self.intact, &[])?;
        let mut program = self.start(Some(&server))?;
        let about = program.about.clone();
        let is_secure = scheme == "https";
        if is_secure && program.can(Skill::PlainOnly) {
            return Ok((about, None));
        }
        let base = server.base(scheme);
        let in_turn = failed(&program.run(&ProgramStep::get(&format!("{base}{SMALL}")).times(10))?);
        if program.hangs() {
            let sequential = server.end()?.count(SMALL, 10, in_turn)?;
            let load = Load {
                sequential,
                concurrent: None,
            };
            return Ok((about, Some(load)));
        }
        let mut not_found = None;
        if !is_secure && program.can(Skill::Status) {
            let missing = format!("{base}{MISSING}");
            not_found = Some(failed(&program.run(&ProgramStep::get(&missing).times(10))?));
        }
        let at_once = program.run_at_once(&base)?;
        program.end()?;
        let counts = server.end()?;
        if let Some(failed) = not_found {
            facts.not_found = Some(counts.count(MISSING, 10, failed)?);
        }
        let concurrent = at_once.map(|failed| counts.count(SLOW, 30, failed));
        let load = Load {
            sequential: counts.count(SMALL, 10, in_turn)?,
            concurrent: concurrent.transpose()?,
        };
        Ok((about, Some(load)))
    }

    fn unread(&self, facts: &mut ClientFacts) -> anyhow::Result<()> {
        let count = |path: &str| -> anyhow::Result<Count> {
            let server = Server::start(self.intact, &[])?;
            let mut program = self.start(Some(&server))?;
            let url = server.plain() + path;
            let bad = failed(&program.run(&ProgramStep::get(&url).times(10).unread())?);
            program.end()?;
            server.end()?.count(path, 10, bad)
        };
        // a body that has arrived frees its connection, if it has arrived in time
        let repeated = |path: &str| -> anyhow::Result<Count> {
            let mut all = count(path)?;
            if all.connections < all.requests && all.failed == 0 {
                for _ in 1..UNREAD_REPETITIONS {
                    all = all.repeated(&count(path)?);
                }
            }
            Ok(all)
        };
        facts.unread_small = Some(repeated(SMALL)?);
        facts.unread_large = Some(repeated(LARGE)?);
        Ok(())
    }

    fn idle_for(&self, how_long: Duration, is_reused: bool) -> anyhow::Result<Option<Idle>> {
        Ok(match self.idle(how_long)? {
            Some(Idle::DiscardedAtNextUse { .. }) if !is_reused => Some(Idle::Abandoned),
            Some(Idle::DiscardedAtNextUse { within_s }) => {
                Some(shortest(within_s, |pause| self.idle(pause))?)
            }
            other => other,
        })
    }

    fn idle(&self, pause: Duration) -> anyhow::Result<Option<Idle>> {
        let server = Server::start(self.intact, &[])?;
        let mut program = self.start(Some(&server))?;
        if !program.can(Skill::Pause) {
            return Ok(None);
        }
        let warm = server.plain() + WARM;
        let next = server.plain() + NEXT;
        program.run(&ProgramStep::get(&warm))?;
        std::thread::sleep(pause);
        program.run(&ProgramStep::get(&next))?;
        let watched = pause.as_secs_f64();
        // the server ends first, so that a connection still open is closed by the server, not by
        // the program's end
        let counts = server.end()?;
        program.end()?;
        Ok(Some(idle_of(&counts, WARM, NEXT, watched)))
    }

    fn hint(&self) -> anyhow::Result<Option<KeepAliveHeader>> {
        let connections = |keep_alive| -> anyhow::Result<u64> {
            let peer = Peer::start(Script {
                keep_alive,
                ..Script::PLAIN
            })?;
            let mut program = self.start(None)?;
            let url = peer.plain() + WARM;
            program.run(&ProgramStep::get(&url))?;
            std::thread::sleep(PAST_HINT);
            program.run(&ProgramStep::get(&url))?;
            program.end()?;
            let asked = peer.asked();
            Ok(asked.iter().map(|one| one.connection).max().unwrap_or(0))
        };
        if connections(None)? > 1 {
            // the client does not keep the connection without the field either
            return Ok(None);
        }
        Ok(Some(if connections(Some(HINT))? > 1 {
            KeepAliveHeader::Obeyed
        } else {
            KeepAliveHeader::Ignored
        }))
    }

    fn dead(&self, how: &str) -> anyhow::Result<RequestOutcomes> {
        let words = ["--idle-timeout", SERVER_IDLE, "--close", how];
        let server = Server::start(self.intact, &words)?;
        let mut program = self.start(Some(&server))?;
        let outcomes = ask_each(&mut program, &server.plain(), STALE, UNTIL_DEAD)?;
        program.end()?;
        let counts = server.end()?;
        Ok(outcomes.fates(|path| Some(counts.asked(path).count())))
    }

    fn race(&self, race: End) -> anyhow::Result<RequestOutcomes> {
        let peer = Peer::start(Script {
            race,
            ..Script::PLAIN
        })?;
        let mut program = self.start(None)?;
        let outcomes = ask_each(&mut program, &peer.plain(), RACE, Duration::ZERO)?;
        program.end()?;
        let asked = peer.asked();
        Ok(outcomes.fates(|path| {
            let with = || asked.iter().filter(|one| one.target == path);
            // a client that happened to take a new connection met no race
            with().any(|one| one.struck).then(|| with().count())
        }))
    }
}

/// The shortest pause after which the next request takes a new connection. For those that check the
/// age of a connection only when they need it.
pub(super) fn shortest(
    longest: f64,
    idle: impl Fn(Duration) -> anyhow::Result<Option<Idle>> + Sync,
) -> anyhow::Result<Idle> {
    let idle = &idle;
    std::thread::scope(|scope| {
        let pauses = PAUSES_S.iter().copied().filter(|&pause| pause < longest);
        let tries: Vec<_> = pauses
            .map(|pause| {
                let tried = scope.spawn(move || idle(Duration::from_secs_f64(pause)));
                (pause, tried)
            })
            .collect();
        let mut shortest = longest;
        for (pause, tried) in tries.into_iter().rev() {
            if matches!(join(tried)?, Some(Idle::DiscardedAtNextUse { .. })) {
                shortest = pause;
            }
        }
        Ok(Idle::DiscardedAtNextUse { within_s: shortest })
    })
}

/// The state of the connection of the first request, which idled for `watched` seconds until the
/// next ones.
pub(super) fn idle_of(counts: &ServerCounts, warm: &str, next: &str, watched: f64) -> Idle {
    let first = counts.asked(warm).next().and_then(|one| one.connection);
    let is_used_again = counts.asked(next).any(|one| one.connection == first);
    // a close right after the response was requested by the client; a close at the time of the
    // next request was caused by that request
    let closed = counts.end_of(warm).filter(|&after| after < watched - 0.2);
    match closed {
        Some(after) if after < 0.2 => Idle::NotKept,
        Some(after) => Idle::Closed {
            after_s: (after * 10.0).round() / 10.0,
        },
        None if !is_used_again => Idle::DiscardedAtNextUse { within_s: watched },
        None => Idle::Kept { for_s: watched },
    }
}

/// Gives a program the path of the server's certificate.
pub(super) fn trust(command: &mut Command, server: &Server) {
    // each runtime has a name of its own for it
    for name in [
        "INTACT_CA",
        "NODE_EXTRA_CA_CERTS",
        "SSL_CERT_FILE",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "AWS_CA_BUNDLE",
        "DENO_CERT",
        "PERL_LWP_SSL_CA_FILE",
    ] {
        command.env(name, server.ca());
    }
}

/// The outcomes of a GET and of a POST, each with a path of its own below `base`.
struct Outcomes {
    base: &'static str,
    get: Option<Outcome>,
    post: Option<Outcome>,
}

impl Outcomes {
    /// With how often the server saw each path; `None`: what was to happen to it did not.
    fn fates(self, seen: impl Fn(&str) -> Option<usize>) -> RequestOutcomes {
        let fate_of = |outcome: Option<Outcome>, word: &str| {
            let seen = seen(&format!("{}{word}", self.base));
            Some(fate(&outcome?, seen?))
        };
        RequestOutcomes {
            get: fate_of(self.get, "get"),
            post: fate_of(self.post, "post"),
        }
    }
}

/// Makes a GET and a POST, each on a connection that was used before and then paused.
fn ask_each(
    program: &mut Program,
    server: &str,
    base: &'static str,
    pause: Duration,
) -> anyhow::Result<Outcomes> {
    let warm = format!("{server}{WARM}");
    let does_get = !program.can(Skill::PostOnly);
    let does_post = program.can(Skill::Post);
    let mut ask = |step: &ProgramStep<'_>| -> anyhow::Result<Outcome> {
        program.run(&ProgramStep::get(&warm))?;
        std::thread::sleep(pause);
        only(program.run(step)?)
    };
    let mut outcomes = Outcomes {
        base,
        get: None,
        post: None,
    };
    if does_get {
        outcomes.get = Some(ask(&ProgramStep::get(&format!("{server}{base}get")))?);
    }
    if does_post {
        outcomes.post = Some(ask(&ProgramStep::post(&format!("{server}{base}post")))?);
    }
    Ok(outcomes)
}

fn only(outcomes: Vec<Outcome>) -> anyhow::Result<Outcome> {
    let [outcome] = <[Outcome; 1]>::try_from(outcomes)
        .map_err(|all| anyhow::anyhow!("one request, {} outcomes", all.len()))?;
    Ok(outcome)
}

/// The result of a request, from what the program reports and how often the server got it.
pub(super) fn fate(outcome: &Outcome, seen: usize) -> RequestOutcome {
    match (outcome, seen) {
        (Outcome::Status(_), 0..=1) => RequestOutcome::Fine,
        (Outcome::Status(_), _) => RequestOutcome::SentTwice,
        (Outcome::Error(_), 0..=1) => RequestOutcome::Error,
        (Outcome::Error(_), _) => RequestOutcome::SentTwiceInVain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fate_is_what_the_program_got_and_how_often_the_server_saw_it() {
        let error = Outcome::Error("ECONNRESET".to_owned());
        assert_eq!(fate(&Outcome::Status(200), 1), RequestOutcome::Fine);
        assert_eq!(fate(&Outcome::Status(200), 2), RequestOutcome::SentTwice);
        assert_eq!(fate(&error, 1), RequestOutcome::Error);
        assert_eq!(fate(&error, 3), RequestOutcome::SentTwiceInVain);
    }
}
