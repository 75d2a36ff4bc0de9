//! A page through the three writers.

use intact_report::page::Page;
use intact_report::terminal::{TerminalOptions, write};
use intact_report::{html, markdown};
use std::path::Path;

/// A terminal of 80 columns without colour.
pub(crate) const OPTIONS: TerminalOptions = TerminalOptions::plain(80);

/// The pages as a terminal of 80 columns has them. Only code may be wider.
pub(crate) fn terminal(pages: &[Page<'_>]) -> String {
    let written: Vec<String> = pages.iter().map(|page| write(page, OPTIONS)).collect();
    let written = written.join("\n");
    let is_wide = |line: &&str| line.chars().count() > 80 && !line.starts_with("    ");
    let wide: Vec<&str> = written.lines().filter(is_wide).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    let is_foreign = |letter: char| letter != '\n' && letter.is_control();
    assert!(!written.contains(is_foreign), "{written:?}");
    written
}

/// The pages as Markdown, and as HTML, which is left in the folder that cargo gives tests
/// (`target/tmp/pages`).
pub(crate) fn files(name: &str, pages: &[Page<'_>]) -> (String, String) {
    let html = html::write(pages).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{name}.html")), &html).unwrap();
    (markdown::write(pages), html)
}
