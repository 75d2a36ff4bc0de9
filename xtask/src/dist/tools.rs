//! The programs that pack: zig, cargo-zigbuild and wheel from PyPI, nfpm from Go's proxy, in exact
//! versions below `target/dist-tools`.

use super::build::target_folder;
use crate::tool;
use anyhow::Context;
use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const FROM_PYPI: [&str; 3] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.0", "wheel==0.46.3"];
/// Newer versions need a library that Go's proxy does not have.
const NFPM: &str = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4";

/// Installs each tool when it is first needed.
pub(super) struct Tools {
    folder: PathBuf,
    python: OnceCell<PathBuf>,
}

impl Tools {
    pub(super) fn new() -> Tools {
        Tools {
            folder: target_folder().join("dist-tools"),
            python: OnceCell::new(),
        }
    }

    /// The Python of an environment that has the tools of PyPI.
    pub(super) fn python(&self) -> anyhow::Result<&Path> {
        if let Some(python) = self.python.get() {
            return Ok(python);
        }
        let folder = &self.folder;
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let python = folder.join("python/bin/python");
        if !python.is_file() {
            tool::run(folder, "python3", &["-m", "venv", "python"])?;
        }
        // finds them all there after the first time, without a request
        let words = [&["-m", "pip", "install", "-q"][..], &FROM_PYPI].concat();
        tool::run(folder, &python, &words)?;
        Ok(self.python.get_or_init(|| python))
    }

    /// The search path for programs, with those of PyPI in front if they are wanted.
    pub(super) fn path(&self, with_python: bool) -> anyhow::Result<OsString> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = match with_python {
            true => self.python()?.parent().map(Path::to_owned),
            false => None,
        };
        Ok(std::env::join_paths(
            own.into_iter().chain(std::env::split_paths(&path)),
        )?)
    }

    /// The packer of .deb and .rpm.
    pub(super) fn nfpm(&self) -> anyhow::Result<PathBuf> {
        let program = self.folder.join("nfpm");
        if !program.is_file() {
            std::fs::create_dir_all(&self.folder)?;
            let mut go = Command::new("go");
            tool::output(go.args(["install", NFPM]).env("GOBIN", &self.folder))?;
        }
        Ok(program)
    }
}
