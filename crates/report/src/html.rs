//! A page as one HTML file: works offline, loads nothing, light and dark, readable on a phone, printable, without a script too.
//!
//! Templates escape whatever is put into them; pictures come as [`crate::svg::Svg`], which escapes by itself. A content security policy
//! allows our own script and nothing else.

use crate::page::{self, Page};
use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Sorts tables; the only script there is.
const SCRIPT: &str = include_str!("../templates/script.js");

#[derive(Template)]
#[template(path = "page.html")]
struct HtmlTemplate<'a> {
    page: &'a Page,
    title: String,
    when: String,
    script: &'static str,
    script_hash: String,
}

/// Writes a page.
///
/// # Errors
/// The template could not be filled in.
pub fn write(page: &Page) -> Result<String, askama::Error> {
    HtmlTemplate {
        page,
        title: format!("intact {} {}", page.command, page.subject),
        when: page::when(&page.started),
        script: SCRIPT,
        script_hash: STANDARD.encode(Sha256::digest(SCRIPT.as_bytes())),
    }
    .render()
}
