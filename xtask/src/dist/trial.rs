//! `cargo xtask dist --try`: installs what was built, as a user would, into empty environments, and runs it there. It prints the table of the
//! release: artefact, size, command, what was run. What cannot be tried here is named with its reason and counts as not run.

use super::package::Kind;
use super::platform::Platform;
use super::{Artefact, PACKAGE, ROOT, VERSION};
use crate::tool;
use anyhow::{Context, bail, ensure};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A program that was installed: the words that start it, and how it came there.
struct Installed {
    words: Vec<OsString>,
    command: String,
    /// All commands are run, not only `--version` and `audit`.
    is_thorough: bool,
}

/// What came of an artefact.
enum Trial {
    Ran(String, Vec<&'static str>),
    NotRun(String),
    Failed(String),
}

/// Tries all of them and prints the table. `Ok(false)`: one does not run.
pub(super) fn run(artefacts: &[Artefact]) -> anyhow::Result<bool> {
    let mut all_ran = true;
    println!("\n| artefact | size | installed with | run from it |\n| --- | ---: | --- | --- |");
    for artefact in artefacts {
        let room = tempfile::tempdir()?;
        let trial = attempt(artefact, artefacts, room.path());
        let (command, ran) = match trial {
            Trial::Ran(command, steps) => (format!("`{command}`"), steps.join(", ")),
            Trial::NotRun(why) => ("-".to_owned(), format!("not run: {why}")),
            Trial::Failed(why) => {
                all_ran = false;
                ("-".to_owned(), format!("FAILED: {why}"))
            }
        };
        println!(
            "| {} | {} | {command} | {ran} |",
            artefact.name(),
            artefact.size()?
        );
    }
    Ok(all_ran)
}

fn attempt(artefact: &Artefact, all: &[Artefact], room: &Path) -> Trial {
    if artefact.kind == Kind::Sbom {
        return Trial::NotRun("a document".to_owned());
    }
    let platform = match (artefact.kind, artefact.platform) {
        // npm's main package runs through that of this machine
        (Kind::Npm, None) => match all
            .iter()
            .filter_map(|one| one.platform)
            .find(|one| one.runs_here())
        {
            Some(platform) => platform,
            None => {
                return Trial::NotRun("no program of this machine's system was built".to_owned());
            }
        },
        (Kind::Npm, Some(_)) => {
            return Trial::NotRun(format!("through {PACKAGE}, if it is this machine's"));
        }
        (_, Some(platform)) => platform,
        (_, None) => return Trial::NotRun("no program".to_owned()),
    };
    let emulator = match emulator(platform, artefact.kind) {
        Ok(emulator) => emulator,
        Err(why) => return Trial::NotRun(why),
    };
    let ran = install(artefact, all, platform, room).and_then(|mut installed| {
        installed.words.splice(0..0, emulator);
        steps(&installed, platform, artefact.kind, room).map(|steps| (installed.command, steps))
    });
    match ran {
        Ok((command, steps)) => Trial::Ran(command, steps),
        Err(error) => Trial::Failed(format!("{error:#}").replace('\n', " ")),
    }
}

/// The words in front of a program of another system, or why it does not run here.
fn emulator(platform: &Platform, kind: Kind) -> Result<Option<OsString>, String> {
    if platform.runs_here() {
        return Ok(None);
    }
    if matches!(kind, Kind::Wheel | Kind::Image) {
        return Err(format!("its installer runs on {} only", platform.name));
    }
    match platform.emulator {
        Some([program, package]) => match Command::new(program).arg("--version").output() {
            Ok(_) => Ok(Some(program.into())),
            Err(_) => Err(format!(
                "{program} is not installed (apt-get install {package})"
            )),
        },
        None => Err("nothing here runs programs of that system".to_owned()),
    }
}

/// Installs an artefact below `room`.
fn install(
    artefact: &Artefact,
    all: &[Artefact],
    platform: &Platform,
    room: &Path,
) -> anyhow::Result<Installed> {
    let (file, name) = (&artefact.file, artefact.name());
    let mut is_thorough = false;
    let run = |words: &[&str]| tool::run(room, words[0], &words[1..]);
    let path = file.display().to_string();
    let (program, command) = match artefact.kind {
        Kind::Archive if platform.is_windows() => {
            is_thorough = true;
            run(&["python3", "-m", "zipfile", "-e", &path, "."])?;
            (unpacked(room, platform)?, format!("unzip {name}"))
        }
        Kind::Archive => {
            is_thorough = true;
            run(&["tar", "-xzf", &path])?;
            (unpacked(room, platform)?, format!("tar -xzf {name}"))
        }
        Kind::Wheel => {
            if platform.npm[2] == "musl" {
                // pip of a glibc system refuses its tag; the files are those that pip would place
                run(&["python3", "-m", "zipfile", "-e", &path, "."])?;
                let stem = format!("{}-{VERSION}.data", PACKAGE.replace('-', "_"));
                let program = room.join(stem).join("scripts").join(platform.program());
                run(&["chmod", "+x", &program.display().to_string()])?;
                (program, format!("unzip {name} (pip needs a musl system)"))
            } else {
                run(&["python3", "-m", "venv", "venv"])?;
                run(&["venv/bin/pip", "install", "-q", "--no-index", &path])?;
                (
                    room.join("venv/bin").join(platform.program()),
                    format!("pip install --no-index {name}"),
                )
            }
        }
        Kind::Npm => {
            let own = all.iter().find(|one| {
                one.kind == Kind::Npm && one.platform.is_some_and(|one| one.name == platform.name)
            });
            let own = own.context("npm's package of this machine was not built")?;
            let own_path = own.file.display().to_string();
            fs::write(room.join("package.json"), "{\"private\": true}\n")?;
            run(&[
                "npm",
                "install",
                "--offline",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                &own_path,
                &path,
            ])?;
            (
                room.join("node_modules/.bin/intact"),
                format!("npm install --offline {name} {}", own.name()),
            )
        }
        Kind::Deb => {
            for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates"] {
                fs::create_dir_all(room.join(folder))?;
            }
            fs::write(room.join("var/lib/dpkg/status"), "")?;
            let root = format!("--root={}", room.display());
            // an empty root has no libc6, and the machine may be another
            run(&[
                "dpkg",
                &root,
                "--log=/dev/null",
                "--force-depends",
                "--force-architecture",
                "-i",
                &path,
            ])?;
            (
                room.join("usr/bin/intact"),
                format!("dpkg --root=EMPTY --force-depends -i {name}"),
            )
        }
        Kind::Rpm => {
            let root = room.display().to_string();
            run(&[
                "rpm",
                "--root",
                &root,
                "--nodeps",
                "--ignorearch",
                "-i",
                &path,
            ])?;
            (
                room.join("usr/bin/intact"),
                format!("rpm --root EMPTY --nodeps -i {name}"),
            )
        }
        Kind::Image => {
            let image = format!("oci-archive:{path}");
            let mount = format!("{0}:{0}:ro", fixtures().display());
            let words = [
                "podman",
                "run",
                "--rm",
                "--network",
                "none",
                "-v",
                &mount,
                &image,
            ];
            return Ok(Installed {
                words: words.map(OsString::from).to_vec(),
                command: format!("podman run --rm oci-archive:{name}"),
                is_thorough: false,
            });
        }
        Kind::Sbom => bail!("a document"),
    };
    Ok(Installed {
        words: vec![program.into()],
        command,
        is_thorough,
    })
}

/// The program of an unpacked archive.
fn unpacked(room: &Path, platform: &Platform) -> anyhow::Result<PathBuf> {
    let folder = room.join(format!("{PACKAGE}-{VERSION}-{}", platform.name));
    for page in [
        "man/intact.1",
        "man/intact-bench.1",
        "completions/_intact",
        "LICENSE-MIT",
    ] {
        ensure!(folder.join(page).is_file(), "the archive lacks {page}");
    }
    Ok(folder.join(platform.program()))
}

fn fixtures() -> PathBuf {
    let folder = Path::new(ROOT).join("fixtures");
    folder.canonicalize().unwrap_or(folder)
}

/// Runs the program and returns the names of what ran.
fn steps(
    installed: &Installed,
    platform: &Platform,
    kind: Kind,
    room: &Path,
) -> anyhow::Result<Vec<&'static str>> {
    let mut ran = vec!["--version"];
    expect(installed, room, &["--version"], VERSION)?;
    let capture = fixtures()
        .join("captures/nginx-curl.pcap")
        .display()
        .to_string();
    expect(
        installed,
        room,
        &["audit", &capture],
        "10 connections opened, 2 needed",
    )?;
    ran.push("audit");
    if kind == Kind::Archive && platform.glibc.is_some() {
        oldest_glibc(
            platform,
            Path::new(&installed.words[installed.words.len() - 1]),
        )?;
        ran.push("readelf: glibc 2.17 suffices");
    }
    if !installed.is_thorough {
        return Ok(ran);
    }
    let server = Server::start(installed, room)?;
    expect(
        installed,
        room,
        &["check", &server.url, "--idle-limit", "1s"],
        "Keeps connections",
    )?;
    expect(
        installed,
        room,
        &["bench", &server.url, "-n", "40", "--ledger", "run"],
        "80 requests measured",
    )?;
    expect(installed, room, &["report", "run"], "80 requests measured")?;
    expect(installed, room, &["compare", "run", "run"], "80 requests")?;
    expect(
        installed,
        room,
        &["fix", "curl"],
        "does not reuse connections by default",
    )?;
    fs::write(
        room.join("chain.toml"),
        "[client]\ncalls = [{ to = \"shop\", rtt = \"30ms\", reuse = true }]\n[service.shop]\nwork = \"4ms\"\n",
    )?;
    expect(installed, room, &["model", "chain.toml"], "shop")?;
    ran.extend([
        "serve", "check", "bench", "report", "compare", "fix", "model",
    ]);
    Ok(ran)
}

/// Runs a command in an empty environment; its output has to contain a text.
fn expect(installed: &Installed, room: &Path, words: &[&str], wanted: &str) -> anyhow::Result<()> {
    let printed = tool::output(empty(&installed.words, room).args(words))?;
    ensure!(
        printed.contains(wanted),
        "intact {} does not print {wanted:?}: {printed}",
        words.join(" ")
    );
    Ok(())
}

/// A command that inherits the search path and nothing else.
fn empty(words: &[OsString], room: &Path) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(room).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    // Wine and podman keep state in the home
    command
        .env("HOME", room)
        .env("WINEDEBUG", "-all")
        .env("COLUMNS", "200");
    command
}

/// No symbol may be newer than the glibc that the platform promises.
fn oldest_glibc(platform: &Platform, program: &Path) -> anyhow::Result<()> {
    let promised = platform.glibc.map(version).unwrap_or_default();
    let mut readelf = Command::new("readelf");
    let printed = tool::output(readelf.args(["--wide", "--version-info"]).arg(program))?;
    let names = printed
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("GLIBC_"));
    let newest = names
        .map(version)
        .max()
        .context("readelf names no version of glibc")?;
    ensure!(
        newest <= promised,
        "needs glibc {newest:?}, promised is {promised:?}"
    );
    Ok(())
}

/// The numbers of a version, to be compared.
fn version(text: &str) -> Vec<u64> {
    text.split('.')
        .map_while(|part| part.parse().ok())
        .collect()
}

/// `intact serve` of the program under trial; ends with this value.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(installed: &Installed, room: &Path) -> anyhow::Result<Server> {
        let mut command = empty(&installed.words, room);
        command.args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--tls-listen",
            "127.0.0.1:0",
        ]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().context("stdout")?;
        let mut server = Server {
            child,
            url: String::new(),
        };
        BufReader::new(out).read_line(&mut line)?;
        let url = line
            .split_whitespace()
            .find(|word| word.starts_with("http://"));
        server.url = url
            .with_context(|| format!("serve prints no address: {line}"))?
            .to_owned();
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
