//! The real servers and clients that tests run against: which there are, and how a missing one is
//! installed.

use anyhow::{Context, bail};
use std::path::Path;
use std::process::{Command, Stdio};

/// A program that some tests need, and where it comes from.
pub(crate) struct Peer {
    pub(crate) program: &'static str,
    source: Source,
}

/// Where a program comes from.
enum Source {
    /// This Debian package.
    Debian(&'static str),
    /// This Go package, through the module proxy.
    Go(&'static str),
    /// The Go module in this folder of the repository.
    GoModule(&'static str),
}

/// All of them.
pub(crate) const PEERS: &[Peer] = &[
    Peer {
        program: "nginx",
        source: Source::Debian("nginx-light"),
    },
    Peer {
        program: "caddy",
        source: Source::Debian("caddy"),
    },
    Peer {
        program: "node",
        source: Source::Debian("nodejs"),
    },
    Peer {
        program: "curl",
        source: Source::Debian("curl"),
    },
    Peer {
        program: "h2load",
        source: Source::Debian("nghttp2-client"),
    },
    Peer {
        program: "tshark",
        source: Source::Debian("tshark"),
    },
    Peer {
        program: "python3",
        source: Source::Debian("python3"),
    },
    Peer {
        program: "wget",
        source: Source::Debian("wget"),
    },
    Peer {
        program: "script",
        source: Source::Debian("bsdutils"),
    },
    Peer {
        program: "openssl",
        source: Source::Debian("openssl"),
    },
    Peer {
        program: "chromium",
        source: Source::Debian("chromium"),
    },
    Peer {
        program: "promtool",
        source: Source::Debian("prometheus"),
    },
    Peer {
        program: "go",
        source: Source::Debian("golang-go"),
    },
    Peer {
        program: "gcc",
        source: Source::Debian("gcc"),
    },
    Peer {
        program: "certutil",
        source: Source::Debian("libnss3-tools"),
    },
    Peer {
        program: "podman",
        source: Source::Debian("podman"),
    },
    Peer {
        program: "runc",
        source: Source::Debian("runc"),
    },
    Peer {
        program: "grpc-peer",
        source: Source::GoModule("fixtures/grpc-peer"),
    },
    Peer {
        program: "h2spec",
        source: Source::Go("github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible"),
    },
];

impl Peer {
    /// Whether it can be run.
    pub(crate) fn is_there(&self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let home = std::env::var_os("HOME").unwrap_or_default();
        std::env::split_paths(&path)
            .chain(["/usr/sbin".into(), "/sbin".into()])
            .chain([Path::new(&home).join("go/bin")])
            .any(|folder| folder.join(self.program).is_file())
    }

    fn debian(&self) -> Option<&'static str> {
        match self.source {
            Source::Debian(package) => Some(package),
            Source::Go(_) | Source::GoModule(_) => None,
        }
    }
}

/// Installs what is missing.
pub(crate) fn install() -> anyhow::Result<()> {
    let missing: Vec<&Peer> = PEERS.iter().filter(|peer| !peer.is_there()).collect();
    let packages: Vec<&str> = missing.iter().filter_map(|peer| peer.debian()).collect();
    if !packages.is_empty() {
        println!("installing {}", packages.join(", "));
        apt(&["update", "-qq"])?;
        let mut words = vec!["install", "-y", "-qq", "--no-install-recommends"];
        words.extend(&packages);
        apt(&words)?;
    }
    for peer in missing {
        let (folder, package) = match peer.source {
            Source::Debian(_) => continue,
            Source::Go(package) => (".", package),
            Source::GoModule(folder) => (folder, "."),
        };
        println!("installing {}", peer.program);
        go(folder, package)?;
    }
    for peer in PEERS {
        if !peer.is_there() {
            bail!("{} is still not there after installing it", peer.program);
        }
    }
    Ok(())
}

pub(crate) fn apt(words: &[&str]) -> anyhow::Result<()> {
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
