//! The real servers and clients that tests run against: which there are, and how a missing one is installed.

use anyhow::{Context, bail};
use std::process::{Command, Stdio};

/// A program that some tests need, and the Debian package that brings it.
pub(crate) struct Peer {
    pub(crate) program: &'static str,
    package: &'static str,
}

/// All of them.
pub(crate) const PEERS: &[Peer] = &[
    Peer {
        program: "nginx",
        package: "nginx-light",
    },
    Peer {
        program: "caddy",
        package: "caddy",
    },
    Peer {
        program: "node",
        package: "nodejs",
    },
    Peer {
        program: "curl",
        package: "curl",
    },
    Peer {
        program: "tshark",
        package: "tshark",
    },
    Peer {
        program: "python3",
        package: "python3",
    },
    Peer {
        program: "wget",
        package: "wget",
    },
    Peer {
        program: "openssl",
        package: "openssl",
    },
    Peer {
        program: "chromium",
        package: "chromium",
    },
];

impl Peer {
    /// Whether it can be run.
    pub(crate) fn is_there(&self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .chain(["/usr/sbin".into(), "/sbin".into()])
            .any(|folder| folder.join(self.program).is_file())
    }
}

/// Installs what is missing.
pub(crate) fn install() -> anyhow::Result<()> {
    let missing: Vec<&str> = PEERS
        .iter()
        .filter(|peer| !peer.is_there())
        .map(|peer| peer.package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("installing {}", missing.join(", "));
    apt(&["update", "-qq"])?;
    let mut words = vec!["install", "-y", "-qq", "--no-install-recommends"];
    words.extend(&missing);
    apt(&words)?;
    for peer in PEERS {
        if !peer.is_there() {
            bail!(
                "{} is still not there after installing {}",
                peer.program,
                peer.package
            );
        }
    }
    Ok(())
}

fn apt(words: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("apt-get")
        .args(words)
        .env("DEBIAN_FRONTEND", "noninteractive")
        // a package that starts its service would take the ports that tests need
        .env("RUNLEVEL", "1")
        .stdout(Stdio::null())
        .status()
        .context("apt-get: install nginx, caddy, node, curl, openssl and chromium by hand on this system")?;
    if !status.success() {
        bail!(
            "apt-get {} failed: run it by hand to see why",
            words.join(" ")
        );
    }
    Ok(())
}
