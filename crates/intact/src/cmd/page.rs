//! Where a page goes: a file whose name says what it is written as.

use anyhow::Context;
use report::page::Page;
use std::ffi::OsStr;
use std::path::PathBuf;

/// The file that `--report` names.
#[derive(Clone, Debug)]
pub(crate) struct PageFile {
    path: PathBuf,
}

/// For clap: a file name that says its kind, in a folder that is there, so that nothing is measured in vain.
pub(crate) fn page_file(word: &str) -> Result<PageFile, String> {
    let path = PathBuf::from(word);
    if path.extension() != Some(OsStr::new("html")) {
        return Err("a file name that ends in .html".to_owned());
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(format!("there is no folder {}", folder.display()));
    }
    Ok(PageFile { path })
}

impl PageFile {
    /// Writes the page.
    pub(crate) fn write(&self, page: &Page) -> anyhow::Result<()> {
        let text = report::html::write(page)?;
        std::fs::write(&self.path, text)
            .with_context(|| format!("--report: cannot write {}", self.path.display()))
    }
}
