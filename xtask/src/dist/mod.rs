//! `cargo xtask dist`: builds every artefact of a release into one folder, with checksums and a
//! bill of materials. An artefact that cannot be built here is listed with the reason, and the
//! others are built. Nothing is uploaded; RELEASING.md has the next steps.

mod build;
mod package;
#[cfg(test)]
mod package_names;
mod platform;
mod sbom;
mod stage;
mod tools;
mod trial;
pub(crate) mod type_check;

use anyhow::{Context, bail};
use package::Kind;
use platform::{PLATFORMS, Platform};
use sha2::{Digest, Sha256};
use stage::Stage;
use std::fs;
use std::path::{Path, PathBuf};
use tools::Tools;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// The name of our package in every registry; the program is `intact`. That name belongs to other
/// people on npm and crates.io.
const PACKAGE: &str = "intact-http";
/// The workspace's version: the only place where it is decided is Cargo.toml.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What to build.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Build only these: names of systems (linux-x64), of channels (deb), or both; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Folder of the artefacts
    #[arg(long, value_name = "DIR", default_value = "target/dist-out")]
    out: PathBuf,
    /// Profile of Cargo.toml; `release` builds faster and is not what is shipped
    #[arg(long, default_value = "dist")]
    profile: String,
    /// Package this program instead of building one: SYSTEM=FILE, may be repeated; what packages
    /// promise (glibc 2.17) is then up to you
    #[arg(long = "program", value_name = "SYSTEM=FILE", value_parser = built_before)]
    programs: Vec<(String, PathBuf)>,
    /// Install what was built into empty environments and run it there
    #[arg(long = "try")]
    try_them: bool,
}

/// A file that was built.
struct Artefact {
    kind: Kind,
    /// None: for every system.
    platform: Option<&'static Platform>,
    file: PathBuf,
}

/// What was not built, and why.
struct Missing {
    name: String,
    reason: String,
    /// Its absence is a failure: `--only` names it, or its system is always built.
    is_wanted: bool,
}

/// Builds the artefacts. `Ok(false)`: one that must be there is missing, or did not run.
pub(crate) fn run(args: &Args) -> anyhow::Result<bool> {
    let selection = Selection::parse(&args.only)?;
    let out = Path::new(ROOT).join(&args.out);
    fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let out = out.canonicalize()?;
    let tools = Tools::new();
    let (mut artefacts, mut missing) = (Vec::new(), Vec::new());
    let mut stages: Vec<Stage> = Vec::new();
    for platform in selection.platforms() {
        let kinds = package::OF_A_SYSTEM
            .into_iter()
            .filter(|kind| kind.is_for(platform));
        let kinds: Vec<Kind> = kinds.filter(|kind| selection.has(*kind)).collect();
        if kinds.is_empty() {
            continue;
        }
        let mut given = args
            .programs
            .iter()
            .filter(|(name, _)| name == platform.name);
        let program = match given.next() {
            Some((_, file)) => Ok(file.clone()),
            None => build::program(platform, &args.profile, &tools),
        };
        let staged = program.and_then(|program| Stage::fill(platform, &program, &stages));
        match staged {
            Ok(stage) => {
                for kind in kinds {
                    match kind.make(&stage, &out, &tools) {
                        Ok(file) => artefacts.push(Artefact {
                            kind,
                            platform: Some(platform),
                            file,
                        }),
                        Err(error) => missing.push(selection.missing(platform, Some(kind), &error)),
                    }
                }
                stages.push(stage);
            }
            Err(error) => missing.push(selection.missing(platform, None, &error)),
        }
    }
    if selection.has(Kind::Npm) && !stages.is_empty() {
        let file = package::npm_main(&out)?;
        artefacts.push(Artefact {
            kind: Kind::Npm,
            platform: None,
            file,
        });
    }
    if selection.has(Kind::Sbom) {
        artefacts.push(Artefact {
            kind: Kind::Sbom,
            platform: None,
            file: sbom::write(&out)?,
        });
    }
    write_sums(&out)?;
    print(&artefacts, &missing, &out)?;
    let all_there = !missing.iter().any(|one| one.is_wanted);
    Ok(all_there && (!args.try_them || trial::run(&artefacts, &tools)?))
}

/// Reads SYSTEM=FILE.
fn built_before(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if PLATFORMS.iter().any(|one| one.name == name) => {
            Ok((name.to_owned(), file.into()))
        }
        _ => Err(format!("expected SYSTEM=FILE; systems are {}", systems())),
    }
}

/// What `--only` names.
#[derive(Default)]
struct Selection {
    platforms: Vec<&'static Platform>,
    kinds: Vec<Kind>,
}

impl Selection {
    fn parse(names: &[String]) -> anyhow::Result<Selection> {
        let mut selection = Selection::default();
        for name in names {
            let kind = <Kind as clap::ValueEnum>::from_str(name, false);
            match (PLATFORMS.iter().find(|one| one.name == name), kind) {
                (Some(platform), _) => selection.platforms.push(platform),
                (None, Ok(kind)) => selection.kinds.push(kind),
                (None, Err(_)) => bail!(
                    "--only {name}: neither a system ({}) nor a channel ({})",
                    systems(),
                    channels()
                ),
            }
        }
        Ok(selection)
    }

    fn platforms(&self) -> impl Iterator<Item = &'static Platform> {
        let named = |one: &&Platform| {
            self.platforms.is_empty() || self.platforms.iter().any(|other| other.name == one.name)
        };
        PLATFORMS.iter().filter(named)
    }

    fn has(&self, kind: Kind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    fn missing(&self, platform: &Platform, kind: Option<Kind>, error: &anyhow::Error) -> Missing {
        let kind = kind.map_or_else(|| "all channels".to_owned(), Kind::name);
        Missing {
            name: format!("{} ({kind})", platform.name),
            reason: format!("{error:#}"),
            is_wanted: !self.platforms.is_empty() || platform.name == PLATFORMS[0].name,
        }
    }
}

fn systems() -> String {
    let names: Vec<&str> = PLATFORMS.iter().map(|one| one.name).collect();
    names.join(", ")
}

fn channels() -> String {
    let all = <Kind as clap::ValueEnum>::value_variants().iter();
    all.map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}

/// `SHA256SUMS` of every file in the folder, as `sha256sum --check` reads it.
fn write_sums(out: &Path) -> anyhow::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(out)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| name != "SHA256SUMS");
    names.sort();
    let mut lines = String::new();
    for name in names {
        let sum = Sha256::digest(fs::read(out.join(&name))?);
        let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        lines.push_str(&format!("{sum}  {name}\n"));
    }
    fs::write(out.join("SHA256SUMS"), lines).context("SHA256SUMS")
}

fn print(artefacts: &[Artefact], missing: &[Missing], out: &Path) -> anyhow::Result<()> {
    println!("{} artefacts in {}:", artefacts.len(), out.display());
    for artefact in artefacts {
        println!("  {:>9}  {}", artefact.size()?, artefact.name());
    }
    for one in missing {
        println!("NOT BUILT {}: {}", one.name, one.reason);
    }
    Ok(())
}

impl Artefact {
    fn name(&self) -> String {
        let name = self.file.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn size(&self) -> anyhow::Result<String> {
        let bytes = fs::metadata(&self.file)?.len();
        Ok(format!("{:.2} MB", bytes as f64 / 1e6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(names: &[&str]) -> anyhow::Result<Selection> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Selection::parse(&names)
    }

    #[test]
    fn only_names_systems_channels_or_both() {
        let names = |selection: &Selection| {
            selection
                .platforms()
                .map(|one| one.name)
                .collect::<Vec<_>>()
        };
        let all = selection(&[]).unwrap();
        assert_eq!(names(&all).len(), PLATFORMS.len());
        assert!(all.has(Kind::Deb) && all.has(Kind::Image));
        let some = selection(&["deb", "linux-x64", "wheel"]).unwrap();
        assert_eq!(names(&some), ["linux-x64"]);
        assert!(some.has(Kind::Deb) && some.has(Kind::Wheel) && !some.has(Kind::Rpm));
        let error = selection(&["linux"]).err().unwrap().to_string();
        assert!(
            error.contains("linux-x64, linux-x64-musl") && error.contains("wheel"),
            "{error}"
        );
    }

    #[test]
    fn what_was_not_named_may_be_missing_and_the_first_system_may_not() {
        let error = anyhow::anyhow!("no SDK");
        let mac = PLATFORMS.iter().find(|one| one.is_mac()).unwrap();
        let all = selection(&[]).unwrap();
        assert!(!all.missing(mac, None, &error).is_wanted);
        assert!(
            all.missing(&PLATFORMS[0], Some(Kind::Deb), &error)
                .is_wanted
        );
        assert!(
            selection(&[mac.name])
                .unwrap()
                .missing(mac, None, &error)
                .is_wanted
        );
    }

    /// Other files name the version too; each of them names this one.
    #[test]
    fn every_file_names_the_version_of_the_workspace() {
        let read = |name: &str| fs::read_to_string(Path::new(ROOT).join(name)).unwrap();
        for (file, before) in [
            ("CHANGELOG.md", "\n## "),
            ("deploy/README.md", "registry.example/intact:"),
            (
                "deploy/kubernetes/README.md",
                "registry.example/intact-http:",
            ),
            (
                "deploy/kubernetes/sidecar.yaml",
                "registry.example/intact-http:",
            ),
            ("kits/pytest/pyproject.toml", "\nversion = \""),
            ("kits/node/package.json", "\"version\": \""),
            ("kits/junit5/pom.xml", "<version>"),
            ("kits/go/intact.go", "Version = \""),
        ] {
            let text = read(file);
            let (_, rest) = text.split_once(before).unwrap();
            assert!(
                rest.starts_with(VERSION),
                "{file} does not name {VERSION} after {before:?}"
            );
        }
    }
}
