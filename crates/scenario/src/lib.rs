//! Scenarios: reads the actions of simulated clients from a load-test definition, and compiles them
//! into a [`Plan`].
//!
//! A definition is TOML, or JavaScript as load-testing services document it. Both become a
//! `Definition`, whose values are checked in one place. JavaScript is evaluated once, before the
//! first request. Its engine has bounded memory and time, and no files or network. This crate must
//! not send, time or print anything.

mod compile;
mod definition;
mod error;
mod javascript;
mod pattern;
mod plan;
mod targets;
mod toml_source;
mod toml_writer;

pub use error::{Problem, ScenarioError};
pub use plan::{Check, JsonCheck, Note, Phase, Plan, Request, Session, Step, Target, Wait};
pub use targets::ReadBody;

use std::path::Path;
use std::time::Duration;

/// The most bytes that a file may have.
pub const LARGEST_FILE: u64 = 1 << 20;

/// The most bytes that a file of targets may have.
pub const LARGEST_TARGETS: u64 = 64 << 20;

/// The language of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// JavaScript, for files that end with `.js`.
    JavaScript,
    /// TOML, for files that end with `.toml`.
    Toml,
}

impl Language {
    /// The language of a file, by the end of its name.
    pub fn of(file: &Path) -> Option<Language> {
        match file.extension()?.to_str()? {
            "js" | "mjs" | "cjs" => Some(Language::JavaScript),
            "toml" => Some(Language::Toml),
            _ => None,
        }
    }
}

/// Compiles a definition. `file` is used in errors only. JavaScript may run for `limit`.
///
/// # Errors
/// All problems of the definition, with their lines.
pub fn compile(
    file: &str,
    language: Language,
    text: &str,
    limit: Duration,
) -> Result<Plan, ScenarioError> {
    let definition = match language {
        Language::JavaScript => javascript::evaluate(text, limit),
        Language::Toml => toml_source::read(text),
    };
    let plan = definition.and_then(compile::plan);
    plan.map_err(|problems| ScenarioError::new(file, problems))
}

/// Reads a file of targets: vegeta's text or JSON, or a list of URLs. `file` is used in errors
/// only; `body` reads the files that have bodies. Requests without a tag are too many to count
/// each.
///
/// # Errors
/// All problems of the file, with their lines.
pub fn targets(file: &str, text: &str, body: ReadBody<'_>) -> Result<Vec<Request>, ScenarioError> {
    let requests = targets::read(text, body).and_then(|all| compile::targets(&all));
    requests.map_err(|problems| ScenarioError::new(file, problems))
}

/// As many paths that a regular expression matches, without tags. `below` returns a random number
/// below its argument.
///
/// # Errors
/// What is wrong with the expression.
pub fn random_paths(
    pattern: &str,
    count: usize,
    mut below: impl FnMut(u64) -> u64,
) -> Result<Vec<Request>, String> {
    pattern::requests(pattern, count, &mut below)
}
