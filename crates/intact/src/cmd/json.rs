//! `--json[=FILE]`: a document to standard output or to a file.

use crate::console;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where `--json` leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum JsonTarget {
    /// Standard output: `--json`, or `--json=-`.
    Standard,
    /// This file.
    File(PathBuf),
}

impl From<OsString> for JsonTarget {
    fn from(word: OsString) -> JsonTarget {
        if word == "-" {
            JsonTarget::Standard
        } else {
            JsonTarget::File(word.into())
        }
    }
}

/// Whether the document takes standard output, so that no page may.
pub(crate) fn takes_output(to: Option<&JsonTarget>) -> bool {
    to == Some(&JsonTarget::Standard)
}

/// Prints or writes a document, if one was asked for.
pub(crate) fn tell(
    to: Option<&JsonTarget>,
    document: impl FnOnce() -> serde_json::Result<String>,
) -> anyhow::Result<()> {
    match to {
        None => {}
        Some(JsonTarget::Standard) => console::print(&document().context("--json")?),
        Some(JsonTarget::File(file)) => write(file, document)?,
    }
    Ok(())
}

/// Writes a document to a file.
pub(crate) fn write(
    file: &Path,
    document: impl FnOnce() -> serde_json::Result<String>,
) -> anyhow::Result<()> {
    let document = document().context("--json")?;
    std::fs::write(file, document)
        .with_context(|| format!("--json={}: cannot be written", file.display()))
}
