//! `cargo xtask clients`: measures the clients of the catalogue against `intact serve` and writes `clients/measured.json`,
//! or with `--check` holds that file against what they do now.

mod check;
mod environment;
mod measure;
mod peer;
mod program;
mod server;
mod survive;

use anyhow::{Context, bail};
use environment::{Environment, Launch};
use fix::{Catalogue, Client, Measurement, Variant};
use measure::Bench;
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Measures the clients of the catalogue.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Clients to measure, or CLIENT/VARIANT; none: all
    names: Vec<String>,
    /// Hold the catalogue against what the clients do now, and write nothing
    #[arg(long)]
    check: bool,
    /// Print what is measured as JSON, and write nothing
    #[arg(long, conflicts_with = "check")]
    show: bool,
    /// Only the clients that need little to be installed
    #[arg(long)]
    quick: bool,
    /// Watch idle connections for 130 s instead of 7
    #[arg(long)]
    full: bool,
    /// Instead: a hundred requests with pauses around SECONDS against a server that closes idle connections then
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["check", "show", "full"])]
    survive: Option<f64>,
    /// Variants measured at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

impl Args {
    /// What CI holds the catalogue to.
    pub(crate) fn quick_check() -> Args {
        Args {
            names: Vec::new(),
            check: true,
            show: false,
            quick: true,
            full: false,
            survive: None,
            jobs: 4,
        }
    }
}

/// One variant on one runtime.
struct Job<'a> {
    client: &'a Client,
    variant: &'a Variant,
    runtime: Option<&'a str>,
}

impl Job<'_> {
    fn name(&self) -> String {
        let name = format!("{}/{}", self.client.id, self.variant.id);
        self.runtime
            .map_or(name.clone(), |version| format!("{name} on {version}"))
    }
}

/// What came of all of them.
pub(crate) struct Done {
    /// Variants that were measured, or hold what the catalogue says.
    pub(crate) fine: u64,
    /// Variants that do not, or could not be measured.
    pub(crate) failed: u64,
}

/// Measures.
pub(crate) fn run(args: &Args) -> anyhow::Result<Done> {
    let catalogue = read()?;
    let jobs = choose(&catalogue, args)?;
    let intact = build()?;
    if let Some(seconds) = args.survive {
        let server_idle = Duration::try_from_secs_f64(seconds).context("--survive")?;
        return survive_all(&jobs, &intact, server_idle);
    }
    let idle_for = Duration::from_secs(if args.full { 130 } else { 7 });
    let queue = Mutex::new(VecDeque::from(jobs));
    // variants of one client share its folder
    let installing = Mutex::new(());
    let book = Mutex::new(Book {
        catalogue: catalogue.clone(),
        done: Done { fine: 0, failed: 0 },
    });
    let (queue, installing, book) = (&queue, &installing, &book);
    let intact = &*intact;
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(move || {
                loop {
                    let next = queue.lock().map(|mut queue| queue.pop_front());
                    let Ok(Some(job)) = next else { break };
                    let launched = launch_of(&job, installing);
                    let done = launched
                        .and_then(|launch| Ok((measure_one(&job, &launch, intact)?, launch)));
                    let note = move |done| {
                        if let Ok(mut book) = book.lock() {
                            book.note(&job, done, args);
                        }
                    };
                    match done {
                        // waiting takes no CPU: the next is measured meanwhile
                        Ok((measured, launch)) => {
                            scope.spawn(move || {
                                note(watch_one(measured, &launch, intact, idle_for));
                            });
                        }
                        Err(error) => note(Err(error)),
                    }
                }
            });
        }
    });
    let mut book = book
        .lock()
        .map_err(|_| anyhow::anyhow!("a measurement panicked"))?;
    Ok(std::mem::replace(
        &mut book.done,
        Done { fine: 0, failed: 0 },
    ))
}

/// What has been found so far.
struct Book {
    catalogue: Catalogue,
    done: Done,
}

impl Book {
    /// What the catalogue claims and is not so, a line each. Where the versions differ, what it says of others is held all the same.
    fn held_against(&self, measured: &Measurement) -> Vec<String> {
        let claims = || self.catalogue.measured.iter();
        let exact = claims().find(|one| check::is_of(one, measured));
        let similar = || {
            claims().rfind(|one| one.client == measured.client && one.variant == measured.variant)
        };
        match exact.or_else(similar) {
            Some(claimed) => check::differences(claimed, measured),
            None => vec!["the catalogue says nothing of it".to_owned()],
        }
    }

    fn note(&mut self, job: &Job<'_>, measured: anyhow::Result<Measurement>, args: &Args) {
        let name = job.name();
        match measured.and_then(|measured| self.take(job, measured, args)) {
            Ok(told) if told.is_empty() => {
                self.done.fine += 1;
                println!("{name}: {}", if args.check { "holds" } else { "measured" });
            }
            Ok(told) => {
                self.done.failed += 1;
                for line in told {
                    println!("{name}: {line}");
                }
            }
            Err(error) => {
                self.done.failed += 1;
                println!("{name}: FAILED: {error:#}");
            }
        }
    }

    /// Checks, shows or writes; gives what does not hold.
    fn take(
        &mut self,
        job: &Job<'_>,
        measured: Measurement,
        args: &Args,
    ) -> anyhow::Result<Vec<String>> {
        if args.check {
            return Ok(self.held_against(&measured));
        }
        if args.show {
            println!("{}", serde_json::to_string_pretty(&measured)?);
            return Ok(Vec::new());
        }
        // of a runtime that the catalogue does not name there is only the one installed
        let only = job.runtime.is_none();
        self.catalogue.measured.retain(|one| {
            let same = one.client == measured.client && one.variant == measured.variant;
            !(check::is_of(one, &measured) || only && same)
        });
        self.catalogue.measured.push(measured);
        // after each, so that a later failure loses nothing
        write(&mut self.catalogue)?;
        Ok(Vec::new())
    }
}

/// Tells of each variant how many of a hundred requests it lost. Limits are set as `intact fix --server-idle` says.
fn survive_all(jobs: &[Job<'_>], intact: &Path, server_idle: Duration) -> anyhow::Result<Done> {
    let mut done = Done { fine: 0, failed: 0 };
    for job in jobs {
        let idle = fix::client_idle(server_idle).as_millis() as u64;
        let launch = Environment::prepare(job.client, job.runtime)?.launch(
            job.client,
            job.variant,
            Some(idle),
        )?;
        let survived = survive::survive(intact, &launch, server_idle)?;
        let lost = survived.errors.len();
        println!(
            "{}: {} of {} answered on {} connections{}",
            job.name(),
            survived.answered,
            survived.answered + lost,
            survived.connections,
            survived
                .errors
                .first()
                .map_or(String::new(), |error| format!("; lost to {error}")),
        );
        if lost == 0 || job.variant.role != fix::Role::Limit {
            done.fine += 1;
        } else {
            done.failed += 1;
        }
    }
    Ok(done)
}

/// Installs and builds what a variant needs, one at a time.
fn launch_of(job: &Job<'_>, installing: &Mutex<()>) -> anyhow::Result<Launch> {
    let _alone = installing.lock().unwrap_or_else(PoisonError::into_inner);
    Environment::prepare(job.client, job.runtime)?.launch(job.client, job.variant, None)
}

fn measure_one(job: &Job<'_>, launch: &Launch, intact: &Path) -> anyhow::Result<Measurement> {
    let (about, facts) = measure::measure(&Bench { intact, launch })?;
    Ok(Measurement {
        client: job.client.id.clone(),
        variant: job.variant.id.clone(),
        versions: about.versions,
        date: jiff::Zoned::now().date().to_string(),
        snippet: snippet(job.client, job.variant)?,
        facts,
    })
}

fn watch_one(
    mut measured: Measurement,
    launch: &Launch,
    intact: &Path,
    idle_for: Duration,
) -> anyhow::Result<Measurement> {
    let bench = Bench { intact, launch };
    measured.facts.idle = measure::watch(&bench, &measured.facts, idle_for)?;
    Ok(measured)
}

/// The lines of a program between its marks.
pub(crate) fn snippet(client: &Client, variant: &Variant) -> anyhow::Result<String> {
    let folder = environment::sources().join(&client.id);
    let path = fs::read_dir(&folder)
        .with_context(|| folder.display().to_string())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            path.file_stem()
                .is_some_and(|stem| stem == variant.program())
        })
        .with_context(|| format!("no program {} in {}", variant.program(), folder.display()))?;
    let text = fs::read_to_string(&path)?;
    let is_mark =
        |line: &str, word: &str| line.trim_start_matches([' ', '\t', '/', '#']).trim_end() == word;
    let lines: Vec<&str> = text
        .lines()
        .skip_while(|line| !is_mark(line, "snippet"))
        .skip(1)
        .take_while(|line| !is_mark(line, "end"))
        .collect();
    if lines.is_empty() {
        bail!(
            "{} has no lines between `snippet` and `end`",
            path.display()
        );
    }
    let indented = lines.iter().filter(|line| !line.trim().is_empty());
    let margin = indented
        .map(|line| line.len() - line.trim_start().len())
        .min();
    let lines: Vec<&str> = lines
        .iter()
        .map(|line| line.get(margin.unwrap_or(0)..).unwrap_or(""))
        .collect();
    Ok(lines.join("\n").trim_end().to_owned())
}

fn choose<'a>(catalogue: &'a Catalogue, args: &Args) -> anyhow::Result<Vec<Job<'a>>> {
    let wanted = |client: &Client, variant: &Variant| {
        let is_named =
            |name: &String| *name == client.id || *name == format!("{}/{}", client.id, variant.id);
        (args.names.is_empty() || args.names.iter().any(is_named)) && (client.quick || !args.quick)
    };
    let mut jobs = Vec::new();
    for client in &catalogue.clients {
        for variant in client
            .variants
            .iter()
            .filter(|variant| wanted(client, variant))
        {
            let runtimes = client.runtimes.iter().map(|version| Some(version.as_str()));
            let runtimes: Vec<_> = if client.runtimes.is_empty() {
                vec![None]
            } else {
                runtimes.collect()
            };
            // the newest is the last
            let skipped = if args.quick { runtimes.len() - 1 } else { 0 };
            jobs.extend(runtimes.into_iter().skip(skipped).map(|runtime| Job {
                client,
                variant,
                runtime,
            }));
        }
    }
    if jobs.is_empty() {
        bail!("the catalogue has no {}", args.names.join(", "));
    }
    Ok(jobs)
}

/// The catalogue as it is in the tree now, which may be newer than this program.
fn read() -> anyhow::Result<Catalogue> {
    let folder = environment::sources();
    let written = fs::read_to_string(folder.join("catalogue.toml"))?;
    let measured = fs::read_to_string(folder.join("measured.json"))?;
    Ok(Catalogue::parse(&written, &measured)?)
}

/// Writes the measured part, in the order of the written one.
fn write(catalogue: &mut Catalogue) -> anyhow::Result<()> {
    let order: Vec<(String, String)> = catalogue
        .clients
        .iter()
        .flat_map(|client| {
            client
                .variants
                .iter()
                .map(|variant| (client.id.clone(), variant.id.clone()))
        })
        .collect();
    catalogue.measured.sort_by_key(|one| {
        let at = order
            .iter()
            .position(|(client, variant)| *client == one.client && *variant == one.variant);
        (at, format!("{:?}", one.versions))
    });
    let mut text = serde_json::to_string_pretty(&catalogue.measured)?;
    text.push('\n');
    let path = environment::sources().join("measured.json");
    let new = path.with_extension("json.new");
    fs::write(&new, text)?;
    fs::rename(new, path)?;
    Ok(())
}

/// Builds `intact` and says where it is.
fn build() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--package", "intact"])
        .status()
        .context("cargo build")?;
    if !built.success() {
        bail!("cargo build --package intact failed");
    }
    let own = std::env::current_exe()?;
    own.ancestors()
        .map(|folder| folder.join("intact"))
        .find(|program| program.is_file())
        .context("intact is not beside xtask in the target folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fix_prints_is_what_was_measured() {
        let catalogue = read().unwrap();
        for client in &catalogue.clients {
            for variant in &client.variants {
                let written = snippet(client, variant).unwrap();
                for one in catalogue.of(client, variant) {
                    assert_eq!(
                        one.snippet, written,
                        "{}/{} was changed and not measured again",
                        client.id, variant.id
                    );
                }
            }
        }
    }

    #[test]
    fn every_variant_was_measured_on_every_runtime() {
        let catalogue = read().unwrap();
        for client in &catalogue.clients {
            for variant in &client.variants {
                let measured: Vec<&Measurement> = catalogue.of(client, variant).collect();
                assert!(!measured.is_empty(), "{}/{}", client.id, variant.id);
                for runtime in &client.runtimes {
                    let has =
                        |one: &Measurement| one.versions.values().any(|version| version == runtime);
                    assert!(
                        measured.iter().any(|one| has(one)),
                        "{}/{} on {runtime}",
                        client.id,
                        variant.id
                    );
                }
            }
        }
    }
}
