//! The files that `--report` names: the ending of the name is the format.

use crate::console;
use anyhow::Context;
use intact_ledger::private_file;
use intact_report::page::Page;
use intact_report::terminal::Length;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// The variable that names the summary of a step in GitHub Actions; the file's name has no ending.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// The option.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
pub(crate) struct ReportFiles {
    /// Write the page to a file, may be repeated: .html replaces it, .md is appended (for a pull
    /// request or $GITHUB_STEP_SUMMARY)
    #[arg(id = "report", long = "report", value_name = "FILE", value_parser = page_file, help_heading = "Output")]
    files: Vec<PageFile>,
    #[command(flatten)]
    length: PageLength,
}

/// How much of a page the terminal shows.
#[derive(Clone, Copy, Debug, Default, clap::Args, Serialize, Deserialize)]
pub(crate) struct PageLength {
    /// Print the whole page [default: at most 40 lines, and the names of what is left out]
    #[arg(long, help_heading = "Output")]
    full: bool,
}

impl From<PageLength> for Length {
    fn from(length: PageLength) -> Length {
        if length.full {
            Length::Full
        } else {
            Length::SCREEN
        }
    }
}

impl ReportFiles {
    /// How much of the page the terminal shows.
    pub(crate) fn length(&self) -> Length {
        self.length.into()
    }

    /// Whether no file is wanted.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Writes these pages to all files. A file that cannot be written is named.
    ///
    /// # Errors
    /// A page cannot be laid out.
    pub(crate) fn write(&self, pages: &[Page<'_>]) -> anyhow::Result<()> {
        self.files.iter().try_for_each(|file| file.write(pages))
    }
}

/// A file that `--report` names.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PageFile {
    path: PathBuf,
    format: Format,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Format {
    Html,
    Markdown,
}

/// For clap: a file name with a known ending, in a folder that exists, so that no measurement is
/// lost.
fn page_file(word: &str) -> Result<PageFile, String> {
    let path = PathBuf::from(word);
    let format = match path.extension().and_then(OsStr::to_str) {
        Some("html" | "htm") => Format::Html,
        Some("md" | "markdown") => Format::Markdown,
        _ if std::env::var_os(STEP_SUMMARY).is_some_and(|summary| summary == word) => {
            Format::Markdown
        }
        _ => return Err("the file name has to end in .html or .md".to_owned()),
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
    /// Writes these pages. HTML replaces the file. Markdown is appended to it, because the summary
    /// of a CI collects the pages of several steps.
    fn write(&self, pages: &[Page<'_>]) -> anyhow::Result<()> {
        let written = match self.format {
            Format::Html => {
                let text = intact_report::html::write(pages).context("--report")?;
                private_file::write(&self.path, text)
            }
            Format::Markdown => {
                let text = intact_report::markdown::write(pages);
                // the summary of a step belongs to the CI, with its permissions
                let file = match self.path.exists() {
                    true => OpenOptions::new().append(true).open(&self.path),
                    false => private_file::append(&self.path),
                };
                file.and_then(|mut file| file.write_all(text.as_bytes()))
            }
        };
        console::note_unwritten("--report", &self.path, written);
        Ok(())
    }
}
