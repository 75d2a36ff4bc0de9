//! The packages of one system, each made from the same staged program by the tool of its channel.

use super::platform::{PLATFORMS, Platform};
use super::stage::{Stage, copy_files, packer};
use super::{PACKAGE, ROOT, VERSION, tools::Tools};
use crate::tool;
use anyhow::Context;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use clap::ValueEnum;
use rustls_pki_types::CertificateDer;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A channel.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    Archive,
    Wheel,
    Npm,
    Deb,
    Rpm,
    Image,
    Sbom,
}

/// The channels of one system.
pub(super) const OF_A_SYSTEM: [Kind; 6] = [
    Kind::Archive,
    Kind::Wheel,
    Kind::Npm,
    Kind::Deb,
    Kind::Rpm,
    Kind::Image,
];

impl Kind {
    /// Our name of it.
    pub(super) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether the system has that channel.
    pub(super) fn is_for(self, platform: &Platform) -> bool {
        match self {
            Kind::Archive | Kind::Wheel | Kind::Npm => true,
            Kind::Deb | Kind::Rpm => platform.linux_package.is_some(),
            Kind::Image => platform.image.is_some(),
            Kind::Sbom => false,
        }
    }

    /// Makes the package and returns its file.
    pub(super) fn make(self, stage: &Stage, out: &Path, tools: &Tools) -> anyhow::Result<PathBuf> {
        match self {
            Kind::Archive => archive(stage, out, tools),
            Kind::Wheel => wheel(stage, out, tools),
            Kind::Npm => npm_platform(stage, out),
            Kind::Deb | Kind::Rpm => linux_package(self, stage, out, tools),
            Kind::Image => image(stage, out),
            Kind::Sbom => super::sbom::write(out),
        }
    }
}

fn archive(stage: &Stage, out: &Path, tools: &Tools) -> anyhow::Result<PathBuf> {
    let name = format!("{PACKAGE}-{VERSION}-{}", stage.platform.name);
    let folder = stage.folder.join(&name);
    for (from, to) in [
        ("program", ""),
        ("pages/man", "man"),
        ("pages/completions", "completions"),
        ("licences", ""),
    ] {
        let to = folder.join(to);
        fs::create_dir_all(&to)?;
        copy_files(&stage.folder.join(from), &to)?;
    }
    fs::copy(packages("README.md"), folder.join("README.md"))?;
    if stage.platform.is_windows() {
        let file = out.join(format!("{name}.zip"));
        let mut zip = packer(tools.python()?, &stage.folder);
        zip.args(["-m", "zipfile", "-c"]).arg(&file).arg(&name);
        tool::output(&mut zip)?;
        return Ok(file);
    }
    let file = out.join(format!("{name}.tar.gz"));
    // macOS has a tar of its own, without these options
    let tar = if cfg!(target_os = "macos") {
        "gtar"
    } else {
        "tar"
    };
    let mut tar = packer(tar, &stage.folder);
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .arg(format!("--mtime=@{}", super::stage::date()))
        .args(["-czf".as_ref(), file.as_os_str(), name.as_ref()]);
    tool::output(&mut tar)?;
    Ok(file)
}

/// A wheel whose only content is the program and its pages, as maturin's `bindings = "bin"` makes
/// it. The program is that of all other channels: it is not built again.
fn wheel(stage: &Stage, out: &Path, tools: &Tools) -> anyhow::Result<PathBuf> {
    let stem = format!("{}-{VERSION}", PACKAGE.replace('-', "_"));
    let folder = stage.folder.join("wheel");
    let info = folder.join(format!("{stem}.dist-info"));
    let data = folder.join(format!("{stem}.data"));
    for (from, to) in [
        ("program", data.join("scripts")),
        ("pages/man", data.join("data/share/man/man1")),
        ("licences", info.join("licenses")),
    ] {
        fs::create_dir_all(&to)?;
        copy_files(&stage.folder.join(from), &to)?;
    }
    let text = fs::read_to_string(packages("README.md"))?;
    let metadata = format!(
        "Metadata-Version: 2.4\nName: {PACKAGE}\nVersion: {VERSION}\nSummary: {SUMMARY}\n\
         License-Expression: {LICENCE}\nLicense-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\n\
         Requires-Python: >=3.7\nDescription-Content-Type: text/markdown\n\n{text}"
    );
    fs::write(info.join("METADATA"), metadata)?;
    let tags = stage.platform.wheel.split('.');
    let tags: String = tags.map(|tag| format!("Tag: py3-none-{tag}\n")).collect();
    let wheel = format!(
        "Wheel-Version: 1.0\nGenerator: {PACKAGE} {VERSION}\nRoot-Is-Purelib: false\n{tags}"
    );
    fs::write(info.join("WHEEL"), wheel)?;
    let mut pack = packer(tools.python()?, &stage.folder);
    pack.args(["-m", "wheel", "pack", "wheel", "--dest-dir"])
        .arg(out);
    tool::output(&mut pack)?;
    made(
        out,
        &format!("{stem}-py3-none-"),
        &format!("{}.whl", stage.platform.wheel),
    )
}

/// npm's package of one system.
fn npm_platform(stage: &Stage, out: &Path) -> anyhow::Result<PathBuf> {
    let [os, cpu, libc] = stage.platform.npm;
    let mut package = npm_manifest(&npm_name(stage.platform), "the program for one system");
    package["os"] = json!([os]);
    package["cpu"] = json!([cpu]);
    if !libc.is_empty() {
        package["libc"] = json!([libc]);
    }
    package["preferUnplugged"] = json!(true);
    let folder = stage.folder.join("npm");
    fs::create_dir_all(&folder)?;
    for name in ["program", "licences"] {
        copy_files(&stage.folder.join(name), &folder)?;
    }
    npm_pack(&folder, &package, out)
}

/// The npm package that users install. It starts the program of the package that npm chose for
/// their system. It lists only packages in the folder, built now or copied there: an unpublished
/// name could be registered by somebody else.
pub(super) fn npm_main(out: &Path) -> anyhow::Result<PathBuf> {
    let names = PLATFORMS.iter().map(npm_name);
    let names = names.filter(|name| out.join(format!("{name}-{VERSION}.tgz")).is_file());
    let names = names.map(|name| (name, json!(VERSION)));
    let mut package = npm_manifest(PACKAGE, SUMMARY);
    package["optionalDependencies"] = Value::Object(names.collect());
    package["bin"] = json!({ "intact": "launcher.js" });
    package["engines"] = json!({ "node": ">=16" });
    let folder = super::build::target_folder().join("dist-stage/npm");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    fs::copy(packages("launcher.js"), folder.join("launcher.js"))?;
    npm_pack(&folder, &package, out)
}

fn npm_name(platform: &Platform) -> String {
    format!("{PACKAGE}-{}", platform.name)
}

fn npm_manifest(name: &str, description: &str) -> Value {
    json!({ "name": name, "version": VERSION, "description": description, "license": LICENCE })
}

fn npm_pack(folder: &Path, package: &Value, out: &Path) -> anyhow::Result<PathBuf> {
    fs::write(
        folder.join("package.json"),
        serde_json::to_string_pretty(package)?,
    )?;
    fs::copy(packages("README.md"), folder.join("README.md"))?;
    let mut npm = packer("npm", folder);
    npm.args(["pack", "--silent", "--pack-destination"])
        .arg(out);
    let name = tool::output(&mut npm)?;
    Ok(out.join(name.trim()))
}

fn linux_package(kind: Kind, stage: &Stage, out: &Path, tools: &Tools) -> anyhow::Result<PathBuf> {
    let packager = kind.name();
    let arch = stage
        .platform
        .linux_package
        .context("no .deb and .rpm for it")?;
    // nfpm prints "using ..." and "created package: FILE"
    let mut nfpm = packer(tools.nfpm()?, &stage.folder);
    nfpm.env("ARCH", arch)
        .env("VERSION", VERSION)
        .env("MAINTAINER", maintainer());
    nfpm.args(["package", "--packager", &packager, "--config"])
        .arg(packages("nfpm.yaml"))
        .arg("--target")
        .arg(out);
    let printed = tool::output(&mut nfpm)?;
    let file = printed
        .lines()
        .find_map(|line| line.split_once("created package: "));
    Ok(file.context("nfpm names no file")?.1.into())
}

/// The maintainer of the package, from the variables that Debian's tools read.
fn maintainer() -> String {
    let from = |name| std::env::var(name).ok();
    let email = from("DEBEMAIL").unwrap_or_else(|| "intact@localhost".to_owned());
    let name = from("DEBFULLNAME").unwrap_or_else(|| "the intact developers".to_owned());
    format!("{name} <{email}>")
}

/// An image of the static program alone, as a file that podman, docker and skopeo load.
fn image(stage: &Stage, out: &Path) -> anyhow::Result<PathBuf> {
    let arch = stage.platform.image.context("no image for it")?;
    let file = out.join(format!(
        "{PACKAGE}-{VERSION}-{}.oci.tar",
        stage.platform.name
    ));
    let _ = fs::remove_file(&file);
    let name = format!("localhost/{PACKAGE}:{VERSION}-{arch}");
    let buildah = |command: &str, operands: &[&str]| {
        let mut buildah = packer("buildah", &stage.folder);
        buildah.args(["--storage-driver", "vfs"]);
        tool::output(buildah.args(command.split(' ')).args(operands))
    };
    let containerfile = Path::new(ROOT).join("deploy/image/Containerfile");
    let (containerfile, date) = (containerfile.display().to_string(), super::stage::date());
    fs::write(stage.folder.join("ca-certificates.crt"), public_issuers())?;
    let built = ["--timestamp", &date, "-f", &containerfile, "-t", &name, "."];
    buildah(&format!("bud --isolation chroot --arch {arch}"), &built)?;
    let archive = format!("oci-archive:{}:{PACKAGE}:{VERSION}", file.display());
    buildah("push", &[&name, &archive])?;
    buildah("rmi", &[&name])?;
    Ok(file)
}

/// The issuers that browsers trust, as the file that programs read. An image without a system has
/// none, and the stores of `fleet` are reached by https.
fn public_issuers() -> String {
    let of_one = |certificate: &CertificateDer<'_>| {
        let text = BASE64_STANDARD.encode(certificate);
        let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy);
        let lines: Vec<_> = lines.collect();
        format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            lines.join("\n")
        )
    };
    let all = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
    all.map(of_one).collect()
}

/// A file of deploy/packages.
fn packages(name: &str) -> PathBuf {
    Path::new(ROOT).join("deploy/packages").join(name)
}

/// The file that a tool just made under a name of its own.
fn made(out: &Path, start: &str, end: &str) -> anyhow::Result<PathBuf> {
    let mut files = fs::read_dir(out)?.flatten().map(|entry| entry.path());
    let found = files.find(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(start) && name.ends_with(end)
    });
    found.with_context(|| format!("no file {start}*{end} was made"))
}

const SUMMARY: &str = "finds, measures and fixes HTTP connections that are not reused";
const LICENCE: &str = env!("CARGO_PKG_LICENSE");

#[cfg(test)]
mod tests {
    use super::*;
    use rustls_pki_types::pem::PemObject;

    #[test]
    fn the_file_of_issuers_has_each_certificate() {
        let text = public_issuers();
        let read = CertificateDer::pem_slice_iter(text.as_bytes());
        let read: Vec<_> = read.map(Result::unwrap).collect();
        assert_eq!(read, webpki_root_certs::TLS_SERVER_ROOT_CERTS);
        assert!(read.len() > 100, "{}", read.len());
    }
}
