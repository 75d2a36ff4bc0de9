//! `cargo xtask systems`: type-checks the program for macOS on other systems. Only linking needs
//! Apple's SDK; zig compiles the C code of libraries. Without the target or zig, the system is
//! listed as not checked.

use super::platform::PLATFORMS;
use super::tools::Tools;
use crate::tool;
use anyhow::Context;
use std::path::Path;
use std::process::Command;

/// Macs of today. The others differ in the machine only.
const SYSTEM: &str = "darwin-arm64";

/// Checks. `Ok(false)`: the program does not compile there.
pub(crate) fn run() -> anyhow::Result<bool> {
    let platform = PLATFORMS.iter().find(|one| one.name == SYSTEM);
    let platform = platform.context(SYSTEM)?;
    let tools = Tools::new();
    let target = tool::run(
        Path::new(super::ROOT),
        "rustup",
        &["target", "add", platform.triple],
    );
    let path = match target.and_then(|_| tools.path(true)) {
        Ok(path) => path,
        Err(error) => {
            println!("NOT CHECKED {SYSTEM}: {error:#}");
            return Ok(true);
        }
    };
    println!("checking {SYSTEM} ({})", platform.triple);
    let mut cargo = Command::new("cargo-zigbuild");
    cargo.args(["check", "--locked", "-p", "intact"]);
    cargo.args(["--target", platform.triple]);
    cargo.current_dir(super::ROOT).env("PATH", path);
    let status = cargo.status().with_context(|| format!("{cargo:?}"))?;
    Ok(status.success())
}
