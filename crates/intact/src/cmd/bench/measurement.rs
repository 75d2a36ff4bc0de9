//! What every kind of bench does around its own run: requirements and signals before it, the server
//! without a URL, the head of the run, its files, its page. Must not send requests.

use super::{Config, server_config};
use crate::cmd::builtin::{Builtin, Ready};
use crate::cmd::conclusion::{Conclusion, print};
use crate::cmd::on_link::Near;
use crate::cmd::output_files::OutputFiles;
use crate::cmd::recording::Recording;
use crate::cmd::run_header;
use crate::console;
use crate::exit::Failed;
use crate::interrupt::Interrupt;
use intact_bench::Gauge;
use intact_findings::{Document, Parts};
use intact_ledger::{Caveat, Producer, Run, Vantage};
use intact_report::documents;
use intact_report::page::Page;
use std::process::ExitCode;
use std::sync::Arc;

/// A bench of any kind.
pub(super) struct Measurement<'a> {
    config: &'a Config,
    conclusion: Conclusion,
    pub(super) interrupt: Interrupt,
    /// The link on whose client side the process is.
    near: Option<Near>,
    builtin: Option<Builtin>,
}

impl<'a> Measurement<'a> {
    /// Reads the requirements and listens for signals.
    pub(super) fn begin(config: &'a Config, near: Option<Near>) -> Result<Measurement<'a>, Failed> {
        let args = &config.options;
        Ok(Measurement {
            config,
            conclusion: Conclusion::begin(args.output.clone(), &args.gates, args.document())?,
            interrupt: Interrupt::listen()?,
            near,
            builtin: None,
        })
    }

    /// Starts the built-in server, unless it is at the far end of a link.
    pub(super) fn start_server(&mut self) -> anyhow::Result<()> {
        if self.near.is_none() {
            self.builtin = Some(Builtin::start(server_config(&self.config.options)?)?);
        }
        Ok(())
    }

    /// The built-in server, if it is measured.
    pub(super) fn ready(&self) -> Option<&Ready> {
        let far = self.near.as_ref().and_then(Near::ready);
        far.or(self.builtin.as_ref().map(Builtin::ready))
    }

    /// Whether the server is at the far end of a link.
    pub(super) fn is_on_link(&self) -> bool {
        self.near.is_some()
    }

    /// The head of the run, which `describe` completes.
    pub(super) fn head(&self, describe: impl FnOnce(&mut Run)) -> Run {
        let config = self.config;
        let mut head = run_header::head(Producer::Bench, Vantage::Client, &config.words);
        describe(&mut head);
        if self.ready().is_some() {
            head.subject = None;
        }
        match &self.near {
            Some(near) => near.describe(&mut head),
            None if config.options.is_demonstration => {
                head.subject = Some("the built-in server on plain loopback, 0 ms away".to_owned());
            }
            None => {}
        }
        head
    }

    /// Opens the files of the run.
    pub(super) fn record(&self, head: Run, gauge: Arc<Gauge>) -> Result<Recording, Failed> {
        let args = &self.config.options;
        let mut files = OutputFiles::of(args.ledger.clone(), args.csv.clone());
        files.hdr.clone_from(&args.hdr);
        #[cfg(feature = "metrics")]
        files.metrics.clone_from(&args.metrics);
        Recording::start(head, &files, self.interrupt.clone(), gauge, args.live)
    }

    /// What limits the measurement, by the state of the link.
    pub(super) fn caveats(&mut self) -> anyhow::Result<Vec<Caveat>> {
        let near = self.near.as_mut();
        near.map_or_else(|| Ok(Vec::new()), Near::caveats)
    }

    /// Writes everything; the page of the demonstration ends with what comes next.
    pub(super) fn conclude(self, document: &Document) -> Result<ExitCode, Failed> {
        let next = match &document.parts {
            Parts::Bench(parts) if self.config.options.is_demonstration => {
                Some(documents::demonstration(&parts.facts))
            }
            _ => None,
        };
        let print = |page: &Page<'_>, length| {
            print(page, length);
            if let Some(next) = next {
                let paper = console::paper(length);
                console::print_written(&intact_report::terminal::write_sections(&[next], paper));
            }
        };
        let signal = self.interrupt.signal();
        Ok(self.conclusion.finish_with(document, signal, print)?)
    }
}
