//! `--json[=FILE]`: a document to standard output or to a file.

use crate::console;
use anyhow::Context;
use intact_ledger::private_file;
use intact_units::foreign_text::escape_json;
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
///
/// # Errors
/// The facts cannot be written as JSON. A file or a standard output that cannot be written is no
/// error here: it is named, and the exit code shows it.
pub(crate) fn deliver(
    to: Option<&JsonTarget>,
    document: impl FnOnce() -> serde_json::Result<String>,
) -> anyhow::Result<()> {
    match to {
        None => {}
        Some(JsonTarget::Standard) => print(&document().context("--json")?),
        Some(JsonTarget::File(file)) => write(file, document)?,
    }
    Ok(())
}

/// Prints a document to standard output.
pub(crate) fn print(document: &str) {
    console::print_written(&escape_json(document));
}

/// Writes a document to a file.
///
/// # Errors
/// As those of [`deliver`].
pub(crate) fn write(
    file: &Path,
    document: impl FnOnce() -> serde_json::Result<String>,
) -> anyhow::Result<()> {
    let document = document().context("--json")?;
    if let Err(error) = private_file::write(file, escape_json(&document)) {
        let file = file.display();
        console::unwritten(format_args!("--json={file}: cannot be written: {error}"));
    }
    Ok(())
}
