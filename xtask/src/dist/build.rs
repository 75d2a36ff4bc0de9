//! Builds the program for one system. rustup provides the target. zig provides compiler and linker,
//! because it can link against an old glibc.

use super::platform::Platform;
use super::{ROOT, tools::Tools};
use crate::tool;
use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};

/// Builds the program, or states why it cannot be built here.
pub(super) fn program(
    platform: &Platform,
    profile: &str,
    tools: &Tools,
) -> anyhow::Result<PathBuf> {
    let triple = platform.triple;
    if platform.is_mac() && std::env::consts::OS != "macos" {
        bail!("linking needs Apple's SDK: run this command on a Mac");
    }
    let root = Path::new(ROOT);
    tool::run(root, "rustup", &["target", "add", triple])
        .with_context(|| format!("Rust's library for {triple}"))?;
    let (subcommand, target) = match platform.glibc {
        _ if platform.is_mac() => ("build", triple.to_owned()),
        Some(version) => ("zigbuild", format!("{triple}.{version}")),
        None => ("zigbuild", triple.to_owned()),
    };
    println!("building {} ({triple})", platform.name);
    let mut cargo = tool::cargo();
    cargo
        .args([subcommand, "--locked", "-p", "intact", "--profile", profile])
        .args(["--target", &target])
        .current_dir(root)
        .env("PATH", tools.path(subcommand == "zigbuild")?);
    let status = cargo.status().context("cargo")?;
    ensure!(status.success(), "{cargo:?} failed");
    let program = target_folder()
        .join(triple)
        .join(profile)
        .join(platform.program());
    ensure!(program.is_file(), "{} is not there", program.display());
    Ok(program)
}

/// Where cargo builds.
pub(super) fn target_folder() -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Path::new(ROOT).join(folder)
}
