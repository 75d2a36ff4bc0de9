//! The real servers and clients that tests run against: which there are, and how a missing one is
//! installed.

use crate::tool;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program that some tests or clients need, and where it comes from.
pub(crate) struct Peer {
    pub(crate) program: &'static str,
    source: Source,
}

/// Where a program comes from.
enum Source {
    /// These Debian packages.
    Debian(&'static str),
    /// This Go package, through the module proxy.
    Go(&'static str),
    /// The Go module in this folder of the repository.
    GoModule(&'static str),
    /// This package of PyPI, in an environment of its own.
    Python(&'static str),
}

const fn debian(program: &'static str, packages: &'static str) -> Peer {
    let source = Source::Debian(packages);
    Peer { program, source }
}

/// What the tests need.
pub(crate) const PEERS: &[Peer] = &[
    debian("nginx", "nginx-light"),
    debian("caddy", "caddy"),
    debian("haproxy", "haproxy"),
    debian("apache2", "apache2"),
    debian("node", "nodejs npm"),
    debian("curl", "curl"),
    debian("h2load", "nghttp2-client"),
    debian("tshark", "tshark"),
    debian("python3", "python3-venv"),
    debian("wget", "wget"),
    debian("script", "bsdutils"),
    debian("openssl", "openssl"),
    debian("chromium", "chromium"),
    debian("promtool", "prometheus"),
    debian("go", "golang-go"),
    debian("gcc", "gcc"),
    debian("certutil", "libnss3-tools"),
    debian("podman", "podman"),
    debian("runc", "runc"),
    Peer {
        program: "grpc-peer",
        source: Source::GoModule("fixtures/grpc-peer"),
    },
    Peer {
        program: "h2spec",
        source: Source::Go("github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible"),
    },
    Peer {
        program: "duckdb",
        source: Source::Python("duckdb-cli==1.5.6"),
    },
];

/// What only clients of the catalogue need.
const RUNTIMES: &[Peer] = &[
    debian("npm", "nodejs npm"),
    debian("javac", "default-jdk-headless"),
    debian("java", "default-jdk-headless"),
    debian("mvn", "maven"),
    debian("cargo", "cargo"),
    debian("mcs", "mono-mcs"),
    debian("php", "php-cli php-curl"),
    debian("ruby", "ruby"),
    debian("perl", "perl"),
    debian("puma", "puma"),
];

/// The Debian packages that bring a program.
pub(crate) fn package_of(program: &str) -> Option<&'static str> {
    let mut all = PEERS.iter().chain(RUNTIMES);
    match all.find(|peer| peer.program == program)?.source {
        Source::Debian(packages) => Some(packages),
        Source::Go(_) | Source::GoModule(_) | Source::Python(_) => None,
    }
}

/// Whether a program can be run.
pub(crate) fn is_installed(program: &str) -> bool {
    path_of(program).is_some()
}

/// Where a program is: on the path, or where Debian, Go and [`python`] install some.
pub(crate) fn path_of(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .chain(["go/bin", ".local/bin"].map(|folder| Path::new(&home).join(folder)))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Installs the peers that are missing.
pub(crate) fn install() -> anyhow::Result<()> {
    let is_missing = |peer: &&Peer| !is_installed(peer.program);
    install_debian(PEERS.iter().map(|peer| peer.program))?;
    for peer in PEERS.iter().filter(is_missing) {
        println!("installing {}", peer.program);
        match peer.source {
            Source::Debian(_) => {}
            Source::Go(package) => go(".", package)?,
            Source::GoModule(folder) => go(folder, ".")?,
            Source::Python(package) => python(package, peer.program)?,
        }
    }
    match PEERS.iter().find(is_missing) {
        Some(peer) => bail!("{} is still not there after installing it", peer.program),
        None => Ok(()),
    }
}

/// Installs the programs that are missing and that Debian has.
pub(crate) fn install_debian(
    programs: impl IntoIterator<Item = &'static str>,
) -> anyhow::Result<()> {
    let missing = programs
        .into_iter()
        .filter(|program| !is_installed(program));
    let packages = missing.filter_map(package_of);
    install_packages(packages.flat_map(str::split_whitespace))
}

/// Installs packages of Debian that are missing.
pub(crate) fn install_packages<'a>(packages: impl Iterator<Item = &'a str>) -> anyhow::Result<()> {
    let is_missing = |package: &&str| {
        let mut known = Command::new("dpkg");
        known.args(["--status", package]).stderr(Stdio::null());
        let status = known.stdout(Stdio::null()).status();
        !status.is_ok_and(|status| status.success())
    };
    let packages: Vec<&str> = packages.filter(is_missing).collect();
    if packages.is_empty() {
        return Ok(());
    }
    println!("installing {}", packages.join(", "));
    apt(&["update", "-qq"])?;
    let words = ["install", "-y", "-qq", "--no-install-recommends"];
    apt(&[&words[..], &packages].concat())
}

fn apt(words: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("apt-get")
        // another installation may be under way
        .args(["-o", "DPkg::Lock::Timeout=300"])
        .args(words)
        .env("DEBIAN_FRONTEND", "noninteractive")
        // without this, a package starts its service, which takes ports that tests need
        .env("RUNLEVEL", "1")
        .stdout(Stdio::null())
        .status()
        .context("there is no apt-get: install the programs of the list by hand on this system")?;
    if !status.success() {
        bail!(
            "apt-get {} failed: run it by hand to see why",
            words.join(" ")
        );
    }
    Ok(())
}

/// Installs a package of PyPI below `~/.local`, and a link to its program.
fn python(package: &str, program: &str) -> anyhow::Result<()> {
    let local = Path::new(&std::env::var_os("HOME").context("HOME is not set")?).join(".local");
    let folder = local.join("share/intact-test").join(program);
    std::fs::create_dir_all(&folder)?;
    tool::run(&folder, "python3", &["-m", "venv", "."])?;
    let words = ["-m", "pip", "install", "-q", package];
    tool::run(&folder, folder.join("bin/python"), &words)?;
    let link = local.join("bin").join(program);
    std::fs::create_dir_all(local.join("bin"))?;
    // one that leads nowhere is no program
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(folder.join("bin").join(program), link)?;
    Ok(())
}

fn go(folder: &str, package: &str) -> anyhow::Result<()> {
    let status = Command::new("go")
        .args(["install", package])
        .current_dir(folder)
        .status()
        .context("go: install it by hand on this system")?;
    if !status.success() {
        bail!(
            "go install {package} in {folder} failed: an older Go may be too old for it, take one from https://go.dev/dl/"
        );
    }
    Ok(())
}
