//! What is wrong with a definition, with the lines. Must not decide what is.

use std::fmt;

/// How many problems a message lists.
const MOST_SHOWN: usize = 20;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1; absent where the engine names none.
    pub line: Option<usize>,
    /// What is wrong, and the remedy.
    pub words: String,
}

impl Problem {
    /// A problem in this line; 0 stands for an unknown one.
    pub(crate) fn new(line: usize, words: impl Into<String>) -> Problem {
        Problem {
            line: (line > 0).then_some(line),
            words: words.into(),
        }
    }
}

/// Why a definition cannot be run: at least one problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ScenarioError {
    file: String,
    problems: Vec<Problem>,
}

impl ScenarioError {
    /// The problems of a file. The same one twice in a row, such as of nested loops in one line, is
    /// one.
    pub fn new(file: &str, mut problems: Vec<Problem>) -> ScenarioError {
        problems.dedup();
        ScenarioError {
            file: file.to_owned(),
            problems,
        }
    }

    /// The problems, in the order in which they were found.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, problem) in self.problems.iter().take(MOST_SHOWN).enumerate() {
            if nth > 0 {
                writeln!(f)?;
            }
            write!(f, "{}:", self.file)?;
            if let Some(line) = problem.line {
                write!(f, "{line}:")?;
            }
            write!(f, " {}", problem.words)?;
        }
        match self.problems.len().saturating_sub(MOST_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n{}: and {more} more", self.file),
        }
    }
}
