//! `--targets` and `--random-path`: what a bench sends in turn. Must not send.

use super::args::RequestOptions;
use crate::exit::Failed;
use anyhow::{Context, anyhow};
use intact_bench::Targets;
use intact_experiment::Rng;
use intact_ledger::input_file;
use intact_scenario::{LARGEST_TARGETS, Request};

/// Paths that are drawn from a pattern.
const PATHS: usize = 10_000;

/// The scheme and the host that the file names, if it does.
pub(super) fn named_url(options: &RequestOptions) -> Result<Option<String>, Failed> {
    let targets = read(options, 0)?.unwrap_or_default();
    let named = targets.requests.iter().find_map(Request::target);
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
    let Some(path) = &options.targets else {
        return Ok(None);
    };
    let source = path.display().to_string();
    let text = input_file::read_text(path, LARGEST_TARGETS);
    let text = text.with_context(|| format!("--targets {source}"));
    let body = |path: &str| std::fs::read(path);
    let requests = intact_scenario::targets(&source, &text.map_err(Failed::usage)?, &body);
    let requests = requests.map_err(Failed::usage)?;
    Ok(Some(Targets { source, requests }))
}
