//! The files that a run is kept in: ledger, CSV, HAR, HdrHistogram, metrics. Trouble with a file
//! does not end the run: it is printed, and what could not be written is counted.

use crate::console;
use anyhow::Context;
use intact_ledger::export::har::HarWriter;
use intact_ledger::export::{csv, hdr};
use intact_ledger::server_profile::ServerProfile;
use intact_ledger::store::{StoreError, Writer};
use intact_ledger::{
    Caveat, Connection, ConnectionId, Event, Exchange, Run, Sink, Tally, Variant, private_file,
};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a ledger reaches the disk.
const FLUSH: Duration = Duration::from_secs(1);
/// Events between two looks at the clock.
const BREATH: u32 = 256;
/// Connections that a HAR export remembers, to name them in its entries.
const NAMED: usize = 65_536;

/// Which files.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct OutputFiles {
    /// Keep the ledger in a new folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    ledger: Option<PathBuf>,
    /// One row per request, hey's columns first
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    csv: Option<PathBuf>,
    /// All requests as HAR 1.2
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    har: Option<PathBuf>,
    /// Latencies for readers of HdrHistogram, from the counts of a recorder.
    #[arg(skip)]
    pub(crate) hdr: Option<PathBuf>,
    #[cfg(feature = "metrics")]
    #[command(flatten)]
    pub(crate) metrics: super::metrics::MetricsOptions,
}

/// The open files.
pub(crate) struct OpenOutputs {
    run: Run,
    ledger: Option<Writer>,
    /// What is counted for the ledger, unless the recorder counts.
    tally: Option<Tally>,
    csv: Option<BufWriter<File>>,
    har: Option<HarWriter<BufWriter<File>>>,
    hdr: Option<HdrFiles>,
    #[cfg(feature = "metrics")]
    metrics: Option<super::metrics::Metrics>,
    connections: HashMap<ConnectionId, Connection>,
    /// What could not be written, a message for each file.
    troubles: Vec<String>,
    /// How many of them were printed.
    printed: usize,
    lost: u64,
    flushed: Instant,
    breath: u32,
}

impl OutputFiles {
    /// A ledger and a CSV file only.
    pub(crate) fn of(ledger: Option<PathBuf>, csv: Option<PathBuf>) -> OutputFiles {
        OutputFiles {
            ledger,
            csv,
            ..OutputFiles::default()
        }
    }

    /// Opens them.
    pub(crate) fn open(&self, run: &Run) -> anyhow::Result<OpenOutputs> {
        let create = |option: &str, path: &Path| {
            private_file::create(path)
                .map(BufWriter::new)
                .with_context(|| format!("{option}: cannot write {}", path.display()))
        };
        let ledger = self
            .ledger
            .as_deref()
            .map(|folder| Writer::create(folder, run).context("--ledger"))
            .transpose()?;
        let csv = self
            .csv
            .as_deref()
            .map(|path| -> anyhow::Result<_> {
                let mut out = create("--csv", path)?;
                out.write_all(csv::HEAD.as_bytes()).context("--csv")?;
                Ok(out)
            })
            .transpose()?;
        let har = self
            .har
            .as_deref()
            .map(|path| HarWriter::new(create("--har", path)?, run).context("--har"))
            .transpose()?;
        let hdr = self.hdr.as_deref();
        let hdr = hdr.map(|path| HdrFiles::create(path, run, |path| create("--hdr", path)));
        Ok(OpenOutputs {
            run: run.clone(),
            tally: ledger.is_some().then(Tally::new),
            ledger,
            csv,
            har,
            hdr: hdr.transpose()?,
            #[cfg(feature = "metrics")]
            metrics: self.metrics.open(run)?,
            connections: HashMap::new(),
            troubles: Vec::new(),
            printed: 0,
            lost: 0,
            flushed: Instant::now(),
            breath: 0,
        })
    }
}

impl OpenOutputs {
    /// Writes one event.
    pub(crate) fn record(&mut self, event: Event<'_>) {
        if let Some(tally) = &mut self.tally {
            tally.record(event);
        }
        self.write(|ledger| ledger.append(event));
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &mut self.metrics {
            metrics.record(event);
        }
        self.remember(event);
        if let Event::Exchange(exchange) = event {
            self.export(exchange);
        }
        self.lost += u64::from(!self.troubles.is_empty());
        self.breath += 1;
        if self.breath >= BREATH {
            self.breath = 0;
            self.flush_now_and_then();
        }
    }

    /// Leaves counting to the recorder: events are a sample of what happened.
    pub(crate) fn counted_elsewhere(mut self) -> OpenOutputs {
        self.tally = None;
        self
    }

    /// Takes the counts of the recorder.
    pub(crate) fn replace_tally(&mut self, tally: &Tally) {
        self.write(|ledger| ledger.replace_tally(tally));
    }

    /// Writes the latencies of the recorder's last counts.
    pub(crate) fn write_latencies(&mut self, tally: &Tally) {
        if let Some(hdr) = self.hdr.take()
            && let Err(error) = hdr.write(&self.run, tally)
        {
            self.stumble(format!("--hdr: {error}"));
        }
    }

    /// Takes the profile of a check.
    pub(crate) fn replace_profile(&mut self, profile: &ServerProfile) {
        self.write(|ledger| ledger.replace_profile(profile));
    }

    /// Brings the ledger to the disk if it has not been there for a while.
    pub(crate) fn flush_now_and_then(&mut self) {
        if self.flushed.elapsed() >= FLUSH {
            self.flush();
        }
    }

    /// The next trouble with a file, each once.
    pub(crate) fn news(&mut self) -> Option<String> {
        let next = self.troubles.get(self.printed).cloned();
        self.printed += usize::from(next.is_some());
        next
    }

    /// Brings the ledger to the disk.
    pub(crate) fn flush(&mut self) {
        self.flushed = Instant::now();
        self.write(Writer::flush);
    }

    /// Ends the files; what could not be written, which the exit code shows, too.
    pub(crate) fn finish(mut self) -> Vec<Caveat> {
        self.flush();
        if let Some(tally) = self.tally.take() {
            self.write(|ledger| ledger.replace_tally(&tally));
        }
        if let Some(ledger) = self.ledger.take()
            && let Err(error) = ledger.finish(jiff::Timestamp::now())
        {
            self.stumble(ledger_ends(&error));
        }
        if let Some(mut csv) = self.csv.take()
            && let Err(error) = csv.flush()
        {
            self.stumble(format!("--csv: {error}"));
        }
        if let Some(har) = self.har.take()
            && let Err(error) = har.finish()
        {
            self.stumble(format!("--har: {error}"));
        }
        for trouble in &self.troubles[self.printed..] {
            console::unwritten(trouble);
        }
        if !self.troubles.is_empty() {
            console::unwritten_as_noted();
        }
        let mut troubles = self.troubles;
        if let Some(first) = troubles.first_mut() {
            match self.lost {
                0 => {}
                1 => first.push_str("; one event was not written"),
                lost => first.push_str(&format!("; {lost} events were not written")),
            }
        }
        #[cfg(feature = "metrics")]
        if let Some(metrics) = self.metrics.take() {
            troubles.extend(metrics.finish());
        }
        let caveat = |words| Caveat::new("not-written", words);
        troubles.into_iter().map(caveat).collect()
    }

    fn write(&mut self, what: impl FnOnce(&mut Writer) -> Result<(), StoreError>) {
        if let Some(ledger) = &mut self.ledger
            && let Err(error) = what(ledger)
        {
            self.ledger = None;
            self.stumble(ledger_ends(&error));
        }
    }

    fn stumble(&mut self, trouble: String) {
        self.troubles.push(trouble);
    }

    fn export(&mut self, exchange: &Exchange) {
        let variant = exchange
            .variant
            .and_then(|variant| self.run.variants.get(variant as usize))
            .map_or("", |variant| &variant.name);
        if let Some(csv) = &mut self.csv
            && let Err(error) = csv::write_row(csv, &self.run.id, variant, exchange)
        {
            self.csv = None;
            self.stumble(format!("--csv: {error}"));
        }
        let connection = exchange.connection.and_then(|id| self.connections.get(&id));
        if let Some(har) = &mut self.har
            && let Err(error) = har.entry(exchange, connection)
        {
            self.har = None;
            self.stumble(format!("--har: {error}"));
        }
    }

    /// Only HAR entries repeat what is known of the connection.
    fn remember(&mut self, event: Event<'_>) {
        if self.har.is_none() {
            return;
        }
        match event {
            Event::Opened(connection) | Event::Revised(connection)
                if self.connections.len() < NAMED =>
            {
                self.connections.insert(connection.id, connection.clone());
            }
            Event::Closed(closed) => {
                self.connections.remove(&closed.connection);
            }
            _ => {}
        }
    }
}

/// The files of latencies: a log of all variants, or the percentiles of each in a file of its own.
enum HdrFiles {
    Log(BufWriter<File>),
    Percentiles(Vec<BufWriter<File>>),
}

impl HdrFiles {
    fn create(
        path: &Path,
        run: &Run,
        create: impl Fn(&Path) -> anyhow::Result<BufWriter<File>>,
    ) -> anyhow::Result<HdrFiles> {
        if path.extension().is_none_or(|end| end != hdr::PERCENTILES) {
            return Ok(HdrFiles::Log(create(path)?));
        }
        let of_variant = |variant: &Variant| {
            let name = variant.name.replace(", ", "-").replace(['/', ' '], "_");
            create(&path.with_extension(format!("{name}.{}", hdr::PERCENTILES)))
        };
        Ok(HdrFiles::Percentiles(match &run.variants[..] {
            [_] => vec![create(path)?],
            variants => variants.iter().map(of_variant).collect::<Result<_, _>>()?,
        }))
    }

    fn write(self, run: &Run, tally: &Tally) -> std::io::Result<()> {
        match self {
            HdrFiles::Log(mut out) => {
                hdr::write_log(&mut out, run, tally)?;
                out.flush()
            }
            HdrFiles::Percentiles(files) => {
                for ((index, variant), mut out) in (0..).zip(&run.variants).zip(files) {
                    hdr::write_percentiles(&mut out, tally, (index, variant))?;
                    out.flush()?;
                }
                Ok(())
            }
        }
    }
}

/// The message about a ledger that cannot be written any further.
fn ledger_ends(error: &StoreError) -> String {
    format!("--ledger: {error}; the ledger ends there")
}
