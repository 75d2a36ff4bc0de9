//! `--json[=FILE]`: a document to standard output or to a file.

use crate::console;
use anyhow::Context;
use std::path::Path;

/// What `--json` without a file stands for.
const HERE: &str = "-";

/// Whether the document takes standard output, so that no page may.
pub(crate) fn takes_output(to: Option<&Path>) -> bool {
    to == Some(Path::new(HERE))
}

/// Prints or writes a document, if one was asked for.
pub(crate) fn tell(
    to: Option<&Path>,
    document: impl FnOnce() -> serde_json::Result<String>,
) -> anyhow::Result<()> {
    match to {
        None => Ok(()),
        Some(file) if file == Path::new(HERE) => {
            console::print(&document().context("--json")?);
            Ok(())
        }
        Some(file) => write(file, document),
    }
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
