//! Runs an installed program in an environment without variables, and reads what it prints.

use super::{Installed, fixtures};
use crate::dist::VERSION;
use crate::dist::package::Kind;
use crate::dist::platform::Platform;
use crate::tool::{self, Process};
use anyhow::{Context, ensure};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the program and returns the names of what ran.
pub(super) fn steps(
    installed: &Installed,
    platform: &Platform,
    kind: Kind,
    room: &Path,
) -> anyhow::Result<Vec<&'static str>> {
    let expect = |words: &[&str], wanted: &str| expect(installed, room, words, wanted);
    let mut ran = vec!["--version"];
    expect(&["--version"], VERSION)?;
    if platform.triple.contains("linux") {
        // every package has the commands and options of a default build
        let help = intact::help_json().context("help --json")?;
        expect(&["help", "--json"], &help)?;
        ran.push("help --json");
    }
    let capture = fixtures().join("captures/nginx-curl.pcap");
    let capture = &*capture.display().to_string();
    expect(&["audit", capture], "10 connections opened, 2 needed")?;
    ran.push("audit");
    if kind == Kind::Archive && platform.glibc.is_some() {
        let program = Path::new(&installed.words[installed.words.len() - 1]);
        oldest_glibc(platform, program)?;
        ran.push("readelf: glibc 2.17 suffices");
    }
    if !installed.is_thorough {
        return Ok(ran);
    }
    let (_server, url) = serve(installed, room)?;
    expect(&["check", &url, "--idle-limit", "1s"], "Keeps connections")?;
    let bench = ["bench", &url, "-n", "40", "--ledger", "run"];
    let bench = [&bench[..], &["--require", "failed == 0"]].concat();
    expect(&bench, "80 requests measured")?;
    expect(&["report", "run"], "80 requests measured")?;
    let kept = ["audit", capture, "--ledger", "seen"];
    expect(&kept, "10 connections opened")?;
    expect(&["compare", "seen", "seen"], "behaves like seen")?;
    expect(&["fix", "curl"], "does not reuse connections by default")?;
    fs::write(
        room.join("chain.toml"),
        "[client]\ncalls = [{ to = \"shop\", rtt = \"30ms\", reuse = true }]\n[service.shop]\nwork = \"4ms\"\n",
    )?;
    expect(&["model", "chain.toml"], "shop")?;
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

/// Starts `intact serve` of the program under trial, and returns it with its address.
fn serve(installed: &Installed, room: &Path) -> anyhow::Result<(Process, String)> {
    let mut command = empty(&installed.words, room);
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    command.args(["--tls-listen", "127.0.0.1:0"]);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut server = Process(child);
    let out = server.0.stdout.take().context("stdout")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let url = words.find(|word| word.starts_with("http://"));
    let url = url.with_context(|| format!("serve prints no address: {line}"))?;
    Ok((server, url.to_owned()))
}
