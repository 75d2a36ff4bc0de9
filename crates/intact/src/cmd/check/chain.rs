//! `check --chain`: idle limits of a path, as given or as configuration files set them. Nothing is
//! sent.

use super::Args;
use crate::cmd::audit;
use crate::cmd::bench::time;
use crate::cmd::conclusion::Conclusion;
use crate::cmd::run_header;
use crate::exit::{Failed, refuse};
use crate::interrupt::Interrupt;
use anyhow::anyhow;
use intact_document::requirement::DocumentKind;
use intact_findings::{Document, Parts};
use intact_ledger::{Producer, Vantage, input_file};
use intact_servers::chain::{ChainFacts, HopGaps};
use intact_timers::{ConfigError, FileError, Files, Hop, HopSource, HopSpec, MOST_BYTES};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The options.
#[derive(clap::Args)]
#[command(next_help_heading = "Chain")]
pub(crate) struct ChainArgs {
    /// Compare the idle limits of a path instead of probing. A hop is NAME=LIMIT (60s, none, off;
    /// 75s/60s for both sides), NAME=FILE (a configuration of nginx, HAProxy, Apache or Caddy), or
    /// a product for its defaults
    #[arg(long, value_name = "HOP", num_args = 1.., conflicts_with_all = ["url", "drain", "ladder", "pcapng", "ledger", "tries", "thorough", "no_idle"])]
    chain: Vec<HopSpec>,
    /// A log, capture or ledger that `audit` reads: its idle times give the requests that are
    /// expected to be lost; HOP= if they are of the connections that one hop accepts
    #[arg(long, value_name = "[HOP=]FILE", requires = "chain")]
    gaps: Option<String>,
    /// The round trip between two hops, in which a request crosses the server's close
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1ms", requires = "chain")]
    rtt: Duration,
}

impl ChainArgs {
    /// Whether a chain is to be compared.
    pub(super) fn is_wanted(&self) -> bool {
        !self.chain.is_empty()
    }

    fn hops(&self) -> Result<Vec<Hop>, Failed> {
        if self.chain.len() < 2 {
            refuse!("a chain has two hops at least, the client first: --chain client=60s app=5s");
        }
        let mut hops: Vec<Hop> = Vec::new();
        for spec in &self.chain {
            if hops.iter().any(|hop| hop.name == spec.name) {
                refuse!(
                    "--chain names {:?} twice: give each hop a name of its own",
                    spec.name
                );
            }
            hops.push(limits(spec)?);
        }
        Ok(hops)
    }

    /// The idle times of the log, and the hop that they are of.
    fn idle_times(&self, hops: &[Hop], words: &[String]) -> Result<Option<HopGaps>, Failed> {
        let Some(given) = &self.gaps else {
            return Ok(None);
        };
        let named = given.split_once('=').and_then(|(name, file)| {
            let nth = hops.iter().position(|hop| hop.name == name)?;
            Some((nth, file))
        });
        let (server, file) = named.map_or((None, given.as_str()), |(nth, file)| (Some(nth), file));
        if server == Some(0) {
            refuse!(
                "--gaps {given}: the client accepts no connections; name the hop that it sends requests to"
            );
        }
        let traffic = audit::analysis(&[PathBuf::from(file)], words)?;
        let (gaps, requests, length) = traffic.idle_gaps();
        if gaps.is_empty() {
            return Err(Failed::unreadable(anyhow!(
                "--gaps {file}: no connection carried a second request, so there are no idle times; name a log with connection numbers (docs/reference/audit.md)"
            )));
        }
        Ok(Some(HopGaps {
            gaps,
            requests,
            length,
            round_trip: self.rtt,
            server,
        }))
    }
}

fn limits(spec: &HopSpec) -> Result<Hop, Failed> {
    match &spec.source {
        HopSource::Limits {
            accepts,
            keeps,
            is_coupled,
        } => Ok(Hop::given(&spec.name, *accepts, *keeps, *is_coupled)),
        HopSource::Defaults(product) => Ok(Hop::of_product(&spec.name, *product)),
        HopSource::File(product, version, path) => {
            let files = Disk { main: path.clone() };
            let read = intact_timers::read(&spec.name, *product, version.as_ref(), path, &files);
            read.map_err(|error| match error {
                ConfigError::Unreadable { .. } => Failed::unreadable(error),
                ConfigError::NoFiles(_) => Failed::usage(error),
            })
        }
    }
}

/// The files of a configuration: none outside its folder, wherever links lead.
struct Disk {
    main: PathBuf,
}

impl Disk {
    fn is_inside(&self, path: &Path) -> std::io::Result<bool> {
        let main = self
            .main
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = main.unwrap_or(Path::new(".")).canonicalize()?;
        Ok(path.canonicalize()?.starts_with(folder))
    }
}

impl Files for Disk {
    fn read(&self, path: &Path) -> Result<String, FileError> {
        let system = |error: std::io::Error| FileError::System(error.to_string());
        if path != self.main && !self.is_inside(path).map_err(system)? {
            return Err(FileError::Outside);
        }
        // a comment may be in any encoding
        let text = input_file::read(path, MOST_BYTES).map_err(system)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>, FileError> {
        let system = |error: std::io::Error| FileError::System(error.to_string());
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        let entries = std::fs::read_dir(folder).map_err(system)?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.collect())
    }
}

/// Compares the limits and prints the page.
pub(super) fn run(args: &Args, words: &[String]) -> Result<ExitCode, Failed> {
    let conclusion = Conclusion::begin(args.output.clone(), &args.gates, DocumentKind::Chain)?;
    let interrupt = Interrupt::listen()?;
    let hops = args.chain.hops()?;
    let gaps = args.chain.idle_times(&hops, words)?;
    let facts = ChainFacts::new(&hops, gaps.as_ref());
    let mut run = run_header::head(Producer::Check, Vantage::Client, words);
    let names: Vec<&str> = hops.iter().map(|hop| hop.name.as_str()).collect();
    run.subject = Some(names.join(" -> "));
    let document = Document::new(run, Parts::Chain(Box::new(facts)));
    Ok(conclusion.finish(&document, interrupt.signal())?)
}
