//! Definitions in both languages: what they become, and how each mistake is named.

mod definitions;
mod mistakes;
mod targets;
mod toml;

use intact_scenario::{Language, Plan, ScenarioError};
use std::time::Duration;

/// A definition that is fine runs far shorter; the tests of endless ones wait for it.
const LIMIT: Duration = Duration::from_secs(2);

fn javascript(text: &str) -> Result<Plan, ScenarioError> {
    intact_scenario::compile("x.js", Language::JavaScript, text, LIMIT)
}

fn toml(text: &str) -> Result<Plan, ScenarioError> {
    intact_scenario::compile("x.toml", Language::Toml, text, LIMIT)
}
