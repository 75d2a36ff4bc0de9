//! Where a page goes: a file whose name says what it is written as.

use anyhow::Context;
use intact_report::page::{Page, Source};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::PathBuf;

/// The file that `--report` names.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PageFile {
    path: PathBuf,
    format: Format,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Format {
    Html,
    Markdown,
}

/// For clap: a file name that says its kind, in a folder that is there, so that nothing is measured in vain.
pub(crate) fn page_file(word: &str) -> Result<PageFile, String> {
    let path = PathBuf::from(word);
    let format = match path.extension().and_then(OsStr::to_str) {
        Some("html" | "htm") => Format::Html,
        Some("md" | "markdown") => Format::Markdown,
        _ => return Err("a file name that ends in .html or .md says what to write".to_owned()),
    };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(format!("there is no folder {}", folder.display()));
    }
    Ok(PageFile { path, format })
}

impl PageFile {
    /// Writes the page of these runs.
    pub(crate) fn write(&self, runs: &[Source<'_>]) -> anyhow::Result<()> {
        let page = Page::new(runs).context("--report")?;
        let text = match self.format {
            Format::Html => intact_report::html::write(&page).context("--report")?,
            Format::Markdown => intact_report::markdown::write(&page),
        };
        std::fs::write(&self.path, text)
            .with_context(|| format!("--report: cannot write {}", self.path.display()))
    }
}
