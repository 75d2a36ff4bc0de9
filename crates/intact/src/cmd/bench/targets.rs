//! `--targets` and `--random-path`: what a bench sends in turn. Must not send.

use super::args::RequestOptions;
use crate::exit::Failed;
use anyhow::anyhow;
use clap::builder::{PathBufValueParser, TypedValueParser};
use intact_bench::Targets;
use intact_experiment::Rng;
use intact_ledger::input_file;
use intact_scenario::{LARGEST_TARGETS, Request};
use serde::{Deserialize, Serialize};

/// Paths that are drawn from a pattern.
const PATHS: usize = 10_000;

/// A file of targets as it was read: a descriptor, such as standard input, can be read once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::cmd) struct TargetsFile {
    name: String,
    text: String,
}

impl TargetsFile {
    /// Reads the file of an option.
    pub(super) fn parser() -> impl TypedValueParser<Value = TargetsFile> {
        PathBufValueParser::new().try_map(|path| {
            let text = input_file::read_text(&path, LARGEST_TARGETS)?;
            let name = path.display().to_string();
            Ok::<_, std::io::Error>(TargetsFile { name, text })
        })
    }

    fn requests(&self) -> Result<Vec<Request>, Failed> {
        let body = |path: &str| std::fs::read(path);
        intact_scenario::targets(&self.name, &self.text, &body).map_err(Failed::usage)
    }
}

/// The scheme and the host that the file names, if it does.
pub(super) fn named_url(options: &RequestOptions) -> Result<Option<String>, Failed> {
    let Some(file) = &options.targets else {
        return Ok(None);
    };
    let requests = file.requests()?;
    let named = requests.iter().find_map(Request::target);
    Ok(named.map(str::to_owned))
}

/// The requests; absent if all are alike.
pub(super) fn read(options: &RequestOptions, seed: u64) -> Result<Option<Targets>, Failed> {
    if let Some(pattern) = &options.random_path {
        let mut random = Rng::seeded(seed);
        let requests = intact_scenario::random_paths(pattern, PATHS, |most| random.below(most));
        return Ok(Some(Targets {
            source: format!("--random-path {pattern}"),
            requests: requests.map_err(|error| Failed::usage(anyhow!("--random-path {error}")))?,
        }));
    }
    let Some(file) = &options.targets else {
        return Ok(None);
    };
    Ok(Some(Targets {
        source: file.name.clone(),
        requests: file.requests()?,
    }))
}
