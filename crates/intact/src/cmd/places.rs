//! `--places`, `--code-root`: where in the code connections are opened.

use intact_watch::CodeReading;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The options.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Watching")]
pub(crate) struct PlaceOptions {
    /// Name the lines of code that opened connections. Each new connection then waits until the
    /// stack of its thread is read. `off` reads none
    #[arg(long, value_enum, default_value_t = Places::On)]
    places: Places,
    /// The folder of the program's own code: lines below it are named, except those of packages.
    /// Without it, the working folder
    #[arg(long, value_name = "DIR")]
    code_root: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
enum Places {
    On,
    Off,
}

impl PlaceOptions {
    /// The folder of the user's code; `None` where places are not asked for, or there is no working
    /// folder.
    pub(crate) fn root(&self) -> Option<PathBuf> {
        let root = self.code_root.clone();
        let root = root.or_else(|| std::env::current_dir().ok());
        root.filter(|_| self.places == Places::On)
    }

    /// How places are found in the code below a folder: the working folder unless it is given;
    /// `None` where they are not asked for, or there is no working folder.
    pub(crate) fn reading(&self, below: Option<&Path>) -> Option<CodeReading> {
        let root = match (below, &self.code_root) {
            (Some(below), None) => Some(below.to_owned()),
            (Some(below), Some(root)) => Some(below.join(root)),
            (None, _) => self.root(),
        };
        Some(CodeReading {
            root: root.filter(|_| self.places == Places::On)?,
            node_options: Some(std::env::var_os("NODE_OPTIONS").unwrap_or_default()),
        })
    }
}
