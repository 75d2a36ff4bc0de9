//! Measures proxies and servers: each variant of each release with its own program, `intact serve`
//! behind it, and `intact check` in front. Takes in and compares what was measured.
//!
//! What a proxy does upstream is counted by the server behind it, not by the proxy.

use super::catalogue_run::write_measured;
use super::measure::{SMALL, fate, idle_of, shortest};
use super::peer::{End, Peer, RACE, Script};
use super::program::{Outcome, SLOW};
use super::server::Server;
use super::{Args, environment, for_each, lock};
use crate::peers;
use crate::tally::Tally;
use crate::tool;
use anyhow::{Context, bail};
use intact_fix::{
    AcceptedFacts, AcceptedIdle, DrainFacts, Hop, HopKind, HopMeasurement, HopVariant, Hops, Idle,
    Release, RequestLimit, RequestOutcomes, Role, UpstreamFacts,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Requests in turn.
const IN_TURN: u64 = 20;
/// How long a hop may take to listen, and to end.
const START: Duration = Duration::from_secs(30);
const END: Duration = Duration::from_secs(6);
const LONGEST: Duration = Duration::from_secs(30);
/// The addresses in configurations, each by its port.
const PORTS: [&str; 2] = ["8080", "9000"];
const WARM: &str = "/warm/x";
const NEXT: &str = "/next/x";

/// A variant of a release.
struct HopJob<'a> {
    hop: &'a Hop,
    release: &'a Release,
    variant: &'a HopVariant,
}

impl HopJob<'_> {
    fn name(&self) -> String {
        format!("{}/{}", self.hop.id, self.variant.id)
    }

    fn is(&self, name: &str) -> bool {
        name == self.hop.id || name == self.name()
    }
}

/// Whether a name on the command line is one of a hop.
pub(super) fn is_hop(name: &str) -> anyhow::Result<bool> {
    let hop = name.split('/').next().unwrap_or(name);
    Ok(Hops::embedded()?.hops.iter().any(|one| one.id == hop))
}

/// Measures the hops of these names, or all of them without one.
pub(super) fn run(intact: &Path, names: &[String], args: &Args) -> anyhow::Result<Tally> {
    let hops = read()?;
    let mut jobs = Vec::new();
    for hop in &hops.hops {
        for release in &hop.releases {
            for variant in &hop.variants {
                let job = HopJob {
                    hop,
                    release,
                    variant,
                };
                let is_wanted = match names.is_empty() {
                    true => release.quick || !args.quick,
                    false => names.iter().any(|name| job.is(name)),
                };
                jobs.extend(is_wanted.then_some(job));
            }
        }
    }
    for name in names {
        if !jobs.iter().any(|job| job.is(name)) {
            bail!("clients/hops has no {name}");
        }
    }
    let measure = |job: &HopJob<'_>| {
        let launch = HopLaunch::prepare(intact, job)?;
        let how_long = args.idle_for();
        let version = launch.version(job)?;
        let (hop, variant) = (job.hop.clone(), job.variant.clone());
        let is_accepting = hop.kind == HopKind::Server || variant.role == Role::Default;
        let mut upstream = None;
        if hop.kind == HopKind::Proxy {
            upstream = Some(launch.upstream()?);
        }
        // the rest takes time and no CPU
        Ok(move || {
            if let Some(upstream) = &mut upstream {
                upstream.idle = launch.idle_limit(how_long).context("idle")?;
            }
            let accepted = is_accepting.then(|| launch.accepted(&hop, how_long));
            Ok(HopMeasurement {
                hop: hop.id.clone(),
                variant: variant.id.clone(),
                version,
                date: jiff::Zoned::now().date().to_string(),
                snippet: hop.snippet(&variant),
                upstream,
                accepted: accepted.transpose().context("accepted connections")?,
            })
        })
    };
    let note = |done: &mut Tally, job: &HopJob<'_>, measured: anyhow::Result<_>| {
        let name = job.name();
        match measured.and_then(|measured| take(measured, args)) {
            Ok(lines) if lines.is_empty() => {
                done.passed += 1;
                println!("{name}: {}", if args.check { "holds" } else { "measured" });
            }
            Ok(lines) => {
                lines.iter().for_each(|line| println!("{name}: {line}"));
                done.failed.push(name);
            }
            Err(error) => {
                println!("{name}: FAILED: {error:#}");
                done.failed.push(name);
            }
        }
    };
    Ok(for_each(&jobs, args.jobs, Tally::default(), measure, note))
}

/// Compares, shows or writes one measurement; gives what does not hold.
fn take(measured: HopMeasurement, args: &Args) -> anyhow::Result<Vec<String>> {
    if args.show {
        println!("{}", serde_json::to_string_pretty(&measured)?);
        return Ok(Vec::new());
    }
    let is_same = |one: &HopMeasurement| {
        (&one.hop, &one.variant, &one.version)
            == (&measured.hop, &measured.variant, &measured.version)
    };
    if args.check {
        let hops = read()?;
        let claims = || hops.measured.iter();
        let similar =
            |one: &&HopMeasurement| one.hop == measured.hop && one.variant == measured.variant;
        let claimed = claims().find(|one| is_same(one));
        return Ok(match claimed.or_else(|| claims().find(similar)) {
            Some(claimed) => super::check::hop_differences(claimed, &measured, args.idle_for()),
            None => vec!["clients/hops has no measurement of this variant".to_owned()],
        });
    }
    let _alone = lock::take(lock::MEASURED)?;
    let mut hops = read()?;
    hops.measured.retain(|one| !is_same(one));
    hops.measured.push(measured);
    let order = |one: &HopMeasurement| {
        let hop = hops.hops.iter().position(|hop| hop.id == one.hop)?;
        let mut variants = hops.hops[hop].variants.iter();
        Some((hop, variants.position(|variant| variant.id == one.variant)?))
    };
    hops.measured
        .sort_by_cached_key(|one| (order(one), one.version.clone()));
    write_measured(&measured_file(), &hops.measured)?;
    Ok(Vec::new())
}

fn measured_file() -> PathBuf {
    environment::sources().join("hops/measured.json")
}

/// The rows of this program with the measurements in the tree.
fn read() -> anyhow::Result<Hops> {
    Ok(Hops::parse(&fs::read_to_string(measured_file())?)?)
}

/// A variant of a release, ready to be started.
struct HopLaunch {
    intact: PathBuf,
    program: PathBuf,
    /// The folder of the packages.
    packages: PathBuf,
    command: Vec<String>,
    build: Vec<String>,
    files: Vec<(String, String)>,
}

/// A hop that was started, and its folder. It ends with this value.
struct RunningHop {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Drop for RunningHop {
    fn drop(&mut self) {
        // those with workers end them when they are asked to end
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let since = Instant::now();
        while since.elapsed() < END {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl HopLaunch {
    /// Installs the release where it is missing.
    fn prepare(intact: &Path, job: &HopJob<'_>) -> anyhow::Result<HopLaunch> {
        let _alone = lock::take(lock::FOLDERS)?;
        let packages =
            environment::cache().join(format!("hop-{}-{}", job.hop.id, job.release.manager));
        environment::install(&packages, &job.release.manager, &job.release.packages)?;
        let program = match job.release.manager.as_str() {
            "pip" => pip_program(&packages, &job.release.program)?,
            _ => {
                let name = &job.release.program;
                let found = peers::path_of(name);
                found.with_context(|| tool::not_started(&Command::new(name)))?
            }
        };
        let files = job.hop.files_of(job.variant).into_iter();
        Ok(HopLaunch {
            intact: intact.to_owned(),
            program,
            packages,
            command: job.hop.command_of(job.variant).to_vec(),
            build: job.hop.build.clone(),
            files: files
                .map(|(name, text)| (name.to_owned(), text.to_owned()))
                .collect(),
        })
    }

    /// The first number with two dots that the program prints.
    fn version(&self, job: &HopJob<'_>) -> anyhow::Result<String> {
        let mut command = self.words(&job.hop.version)?;
        let out = command.current_dir(&self.packages).output()?;
        let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
        let number = regex::Regex::new(r"[0-9]+\.[0-9]+\.[0-9]+")?;
        let found = number.find(&text).map(|found| found.as_str().to_owned());
        found.with_context(|| format!("no version in {text:?}"))
    }

    fn words(&self, words: &[String]) -> anyhow::Result<Command> {
        let (first, rest) = words.split_first().context("no command")?;
        let mut command = match first.as_str() {
            "PROGRAM" => Command::new(&self.program),
            program => Command::new(program),
        };
        command.args(rest);
        Ok(command)
    }

    /// A folder with the files of the variant for these ports, and the command to start in it.
    fn place(&self, ports: [u16; 2]) -> anyhow::Result<(tempfile::TempDir, Command)> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().to_str().context("the folder's name")?;
        let filled = |text: &str| {
            let mut text = text.replace("FOLDER", path);
            for (written, port) in PORTS.iter().zip(ports) {
                text = text.replace(written, &port.to_string());
            }
            text
        };
        for (name, text) in &self.files {
            fs::write(folder.path().join(name), filled(text))?;
        }
        let libraries = self.packages.join("lib");
        if libraries.is_dir() {
            std::os::unix::fs::symlink(libraries, folder.path().join("lib"))?;
        }
        if !self.build.is_empty() {
            let mut build = self.words(&self.build)?;
            tool::output(build.current_dir(folder.path()))?;
        }
        let words: Vec<String> = self.command.iter().map(|word| filled(word)).collect();
        let mut command = self.words(&words)?;
        command
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .env("XDG_DATA_HOME", folder.path())
            .env("XDG_CONFIG_HOME", folder.path());
        Ok((folder, command))
    }

    /// Starts it in front of a server, under `intact watch` if a file for its document is given.
    fn start(&self, origin: SocketAddr, watched: Option<&Path>) -> anyhow::Result<RunningHop> {
        let port = free_port()?;
        let (folder, command) = self.place([port, origin.port()])?;
        let mut command = match watched {
            None => command,
            Some(document) => {
                let mut watch = Command::new(&self.intact);
                watch.args(["watch", "--quiet"]);
                watch.arg(format!("--json={}", document.display()));
                inside(watch, &command)
            }
        };
        let log = fs::File::create(folder.path().join("output.log"))?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = command.spawn().with_context(|| tool::line(&command))?;
        let mut running = RunningHop {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            _folder: folder,
        };
        running.wait_until_it_listens()?;
        Ok(running)
    }

    fn upstream(&self) -> anyhow::Result<UpstreamFacts> {
        let in_turn = |path: &str, is_one: bool| -> anyhow::Result<_> {
            let server = Server::start(&self.intact, &[])?;
            let hop = self.start(server.address(), None)?;
            let mut client = Client::new(hop.address);
            let mut failed = 0;
            for _ in 0..IN_TURN {
                if !is_one {
                    client = Client::new(hop.address);
                }
                failed += u64::from(client.ask("GET", path).is_error());
            }
            drop(hop);
            server.end()?.count(path, IN_TURN, failed)
        };
        let (race, connection_field) = self.race().context("race")?;
        Ok(UpstreamFacts {
            one_client: in_turn(SMALL, true).context("one client")?,
            new_clients: in_turn(SMALL, false).context("new clients")?,
            at_once: self.at_once().context("at once")?,
            // is measured later
            idle: Idle::NotKept,
            connection_field,
            race,
            watch: self.watched().context("watch")?,
        })
    }

    fn at_once(&self) -> anyhow::Result<intact_fix::Count> {
        let server = Server::start(&self.intact, &[])?;
        let hop = self.start(server.address(), None)?;
        let mut clients: Vec<Client> = (0..10).map(|_| Client::new(hop.address)).collect();
        let mut failed = 0;
        for _ in 0..3 {
            failed += std::thread::scope(|scope| {
                let asked: Vec<_> = clients
                    .iter_mut()
                    .map(|client| scope.spawn(|| client.ask("GET", SLOW).is_error()))
                    .collect();
                let errors = asked.into_iter().map(super::measure::join);
                errors.filter(|&is_error| is_error).count() as u64
            });
        }
        drop(hop);
        server.end()?.count(SLOW, 30, failed)
    }

    /// A GET and a POST that the server ends in place of a response, each on a connection that was
    /// used before.
    fn race(&self) -> anyhow::Result<(Option<RequestOutcomes>, String)> {
        let script = Script {
            race: End::Fin,
            ..Script::PLAIN
        };
        let peer = Peer::start(script)?;
        let hop = self.start(peer.address(), None)?;
        let mut client = Client::new(hop.address);
        let mut outcome = |method: &str| {
            client.ask("GET", WARM);
            let path = format!("{RACE}{method}");
            let outcome = client.ask(method, &path);
            let asked = peer.asked();
            let with = || asked.iter().filter(|one| one.target == path);
            let is_struck = with().any(|one| one.struck);
            is_struck.then(|| fate(&outcome, with().count()))
        };
        let outcomes = RequestOutcomes {
            get: outcome("GET"),
            post: outcome("POST"),
        };
        let field = peer.asked().first().map(|one| one.connection_field.clone());
        let is_any = outcomes.get.is_some() || outcomes.post.is_some();
        Ok((
            is_any.then_some(outcomes),
            field.context("no request came")?,
        ))
    }

    fn idle_limit(&self, how_long: Duration) -> anyhow::Result<Idle> {
        match self.idle(how_long)? {
            Idle::DiscardedAtNextUse { within_s } => {
                shortest(within_s, |pause| self.idle(pause).map(Some))
            }
            idle => Ok(idle),
        }
    }

    /// What ends an idle connection to the server behind.
    fn idle(&self, how_long: Duration) -> anyhow::Result<Idle> {
        let server = Server::start(&self.intact, &[])?;
        let hop = self.start(server.address(), None)?;
        let mut client = Client::new(hop.address);
        client.ask("GET", WARM);
        std::thread::sleep(how_long);
        // the client's own connection may have ended, and each process has a pool of its own
        for _ in 0..IN_TURN {
            Client::new(hop.address).ask("GET", NEXT);
        }
        let counts = server.end()?;
        drop(hop);
        Ok(idle_of(&counts, WARM, NEXT, how_long.as_secs_f64()))
    }

    /// What `intact watch` finds, without informational findings.
    fn watched(&self) -> anyhow::Result<Vec<String>> {
        let server = Server::start(&self.intact, &[])?;
        let folder = tempfile::tempdir()?;
        let document = folder.path().join("watch.json");
        let hop = self.start(server.address(), Some(&document))?;
        let mut client = Client::new(hop.address);
        for _ in 0..IN_TURN {
            client.ask("GET", SMALL);
        }
        drop((client, hop));
        let text = fs::read_to_string(&document).context("intact watch wrote no document")?;
        Ok(rules(&serde_json::from_str(&text)?))
    }

    /// The connections of clients, by `intact check`.
    fn accepted(&self, hop: &Hop, how_long: Duration) -> anyhow::Result<AcceptedFacts> {
        let server = Server::start(&self.intact, &[])?;
        let running = self.start(server.address(), None)?;
        let url = format!("http://{}/", running.address);
        let limit = format!("{}s", how_long.as_secs());
        let mut check = Command::new(&self.intact);
        check.args([
            "check",
            &url,
            "--thorough",
            "--json",
            "--idle-limit",
            &limit,
        ]);
        let document = json(&mut check)?;
        drop(running);
        let most = &document["max_requests"];
        let requests = match most["measured"].as_u64() {
            Some(after) if !most["ended"].is_null() => RequestLimit::Ended { after },
            _ => RequestLimit::NotReached {
                sent: most["bounds"]["measured"]["low"]
                    .as_u64()
                    .with_context(|| format!("no limit of requests: {most}"))?,
            },
        };
        let idle = &document["idle_timeout"];
        // one that sweeps ends them within a range
        let range = &idle["bounds"]["measured_s"];
        let from = range["low"].as_f64().filter(|_| range["high"].is_f64());
        let idle = match (
            document["kept_connections"]["kept"].as_u64(),
            idle["measured_s"].as_f64().or(from),
        ) {
            (Some(0), _) => AcceptedIdle::NotKept,
            (_, Some(after_s)) => AcceptedIdle::Closed {
                after_s: (after_s * 10.0).round() / 10.0,
            },
            _ => AcceptedIdle::Kept {
                for_s: how_long.as_secs_f64(),
            },
        };
        let drains = hop.signals.iter().map(|signal| self.drain(signal));
        Ok(AcceptedFacts {
            idle,
            requests,
            drains: drains.collect::<anyhow::Result<_>>().context("drain")?,
            check: rules(&document),
        })
    }

    fn drain(&self, signal: &str) -> anyhow::Result<DrainFacts> {
        let server = Server::start(&self.intact, &[])?;
        let port = free_port()?;
        let (_folder, command) = self.place([port, server.address().port()])?;
        let url = format!("http://127.0.0.1:{port}/");
        let mut check = Command::new(&self.intact);
        check.args(["check", &url, "--json", "--drain", "--drain-slow"]);
        check.args(["/delay/500", "--drain-signal", signal]);
        let document = json(&mut inside(check, &command))?;
        let drain = &document["drain"];
        let of = |key: &str| {
            let count = |part: &str| drain[part][key].as_u64();
            Some(count("in_flight")? + count("kept")?)
        };
        Ok(DrainFacts {
            signal: signal.to_owned(),
            sent: of("sent").with_context(|| format!("{drain}"))?,
            lost: of("lost").with_context(|| format!("{drain}"))?,
            ended: drain["process"]["end"] == "ended",
        })
    }
}

/// A command as the last words of another, with its folder and variables.
fn inside(mut outer: Command, command: &Command) -> Command {
    outer.arg("--").arg(command.get_program());
    outer.args(command.get_args());
    let variables = command.get_envs();
    outer.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        outer.current_dir(folder);
    }
    outer
}

/// The document that a command prints, whatever its exit code: a finding is no failure.
fn json(command: &mut Command) -> anyhow::Result<Value> {
    let out = command.stdin(Stdio::null()).output()?;
    serde_json::from_slice(&out.stdout)
        .with_context(|| String::from_utf8_lossy(&out.stderr).into_owned())
}

/// The rules of a document's findings, without informational ones.
fn rules(document: &Value) -> Vec<String> {
    let findings = document["findings"].as_array().into_iter().flatten();
    let grave = findings.filter(|one| one["severity"] != "info");
    let mut rules: Vec<String> = grave
        .filter_map(|one| one["rule"].as_str().map(str::to_owned))
        .collect();
    rules.sort();
    rules.dedup();
    rules
}

impl RunningHop {
    fn wait_until_it_listens(&mut self) -> anyhow::Result<()> {
        let since = Instant::now();
        while since.elapsed() < START {
            if TcpStream::connect(self.address).is_ok() {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                let log = fs::read_to_string(self._folder.path().join("output.log"))?;
                bail!("it ended ({status}): {log}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("it does not listen at {}", self.address)
    }
}

/// A client that keeps its connection where the hop does.
struct Client {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

impl Client {
    fn new(address: SocketAddr) -> Client {
        let stream = None;
        Client { address, stream }
    }

    /// One request. A status of 500 or above is an error: the hop's own.
    fn ask(&mut self, method: &str, path: &str) -> Outcome {
        match self.exchange(method, path) {
            Ok(status) if status < 500 => Outcome::Status(status),
            Ok(status) => Outcome::Error(status.to_string()),
            Err(error) => Outcome::Error(format!("{error:#}")),
        }
    }

    fn exchange(&mut self, method: &str, path: &str) -> anyhow::Result<u16> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(LONGEST))?;
                BufReader::new(stream)
            }
        };
        let length = if method == "POST" {
            "Content-Length: 0\r\n"
        } else {
            ""
        };
        let host = self.address;
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{length}\r\n");
        stream.get_mut().write_all(request.as_bytes())?;
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                bail!("the hop ended the connection");
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_ascii_lowercase()),
            }
        }
        let status = lines.first().and_then(|line| line.split(' ').nth(1));
        let status = status.and_then(|status| status.parse().ok());
        let field = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name));
        let length = field("content-length:").and_then(|value| value.trim().parse().ok());
        let length: u64 = length.context("a response without Content-Length")?;
        std::io::copy(&mut stream.by_ref().take(length), &mut std::io::sink())?;
        if field("connection:").is_none_or(|value| value.trim() != "close") {
            self.stream = Some(stream);
        }
        status.context("a response without a status")
    }
}

fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    Ok(listener.local_addr()?.port())
}

/// A program of a Python package: in the folder of its commands, else in that of the package.
fn pip_program(packages: &Path, program: &str) -> anyhow::Result<PathBuf> {
    let venv = packages.join("venv");
    if program.starts_with("bin/") {
        return Ok(venv.join(program));
    }
    let mut versions = fs::read_dir(venv.join("lib"))?;
    let version = versions.next().context("the venv is empty")??;
    Ok(version.path().join("site-packages").join(program))
}
