//! Why a scenario cannot be run.

use crate::config::ConfigError;
use intact_scenario::{Problem, ScenarioError};

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioConfigError {
    /// Something in the definition, with its line.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Something in the options.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl ScenarioConfigError {
    /// A problem at a line of the definition.
    pub(super) fn at(file: &str, line: usize, words: String) -> ScenarioConfigError {
        let line = Some(line);
        ScenarioConfigError::Scenario(ScenarioError::new(file, vec![Problem { line, words }]))
    }
}
