//! Installs an artefact into an empty environment, with the installer that its users have.

use super::{Installed, fixtures};
use crate::dist::package::Kind;
use crate::dist::platform::Platform;
use crate::dist::{Artefact, PACKAGE, VERSION};
use crate::tool;
use anyhow::{Context, bail, ensure};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Installs an artefact below `room`.
pub(super) fn install(
    artefact: &Artefact,
    all: &[Artefact],
    platform: &Platform,
    room: &Path,
) -> anyhow::Result<Installed> {
    let (file, name) = (&artefact.file, artefact.name());
    let mut is_thorough = false;
    let run = |command: &str, operands: &[&str]| {
        let words: Vec<&str> = command.split(' ').chain(operands.iter().copied()).collect();
        tool::run(room, words[0], &words[1..])
    };
    let path = file.display().to_string();
    let (program, command) = match artefact.kind {
        Kind::Archive if platform.is_windows() => {
            is_thorough = true;
            run("python3 -m zipfile -e", &[&path, "."])?;
            (unpacked(room, platform)?, format!("unzip {name}"))
        }
        Kind::Archive => {
            is_thorough = true;
            run("tar -xzf", &[&path])?;
            (unpacked(room, platform)?, format!("tar -xzf {name}"))
        }
        Kind::Wheel => {
            if platform.npm[2] == "musl" {
                // pip on a glibc system refuses the musl tag, so the wheel is unpacked as pip would
                // do
                run("python3 -m zipfile -e", &[&path, "."])?;
                let stem = format!("{}-{VERSION}.data", PACKAGE.replace('-', "_"));
                let program = room.join(stem).join("scripts").join(platform.program());
                run("chmod +x", &[&program.display().to_string()])?;
                (program, format!("unzip {name} (pip needs a musl system)"))
            } else {
                run("python3 -m venv venv", &[])?;
                run("venv/bin/pip install -q --no-index", &[&path])?;
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
            let npm = "npm install --offline --ignore-scripts --no-audit --no-fund";
            run(npm, &[&own_path, &path])?;
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
            let dpkg = "dpkg --log=/dev/null --force-depends --force-architecture";
            run(dpkg, &[&root, "-i", &path])?;
            (
                room.join("usr/bin/intact"),
                format!("dpkg --root=EMPTY --force-depends -i {name}"),
            )
        }
        Kind::Rpm => {
            let root = room.display().to_string();
            run("rpm --nodeps --ignorearch --root", &[&root, "-i", &path])?;
            (
                room.join("usr/bin/intact"),
                format!("rpm --root EMPTY --nodeps -i {name}"),
            )
        }
        Kind::Image => {
            let image = format!("oci-archive:{path}");
            let mount = format!("{0}:{0}:ro", fixtures().display());
            // the engine's default limits may be above what this machine allows
            let podman = "podman run --rm --network none --ulimit nofile=4096:4096 --ulimit nproc=8192:8192 -v";
            let words = podman.split(' ').chain([&*mount, &*image]);
            return Ok(Installed {
                words: words.map(OsString::from).collect(),
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
