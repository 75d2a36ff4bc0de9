//! The run as metrics, with the names of OpenTelemetry's semantic conventions: one table, one pass over the events, two writers
//! (`--prometheus FILE`, `--otlp[=URL]`). Trouble with a writer is told and ends nothing.

#[cfg(feature = "otlp")]
mod collector;
mod fold;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "prometheus")]
mod prometheus;
mod series;
mod table;

#[cfg(feature = "otlp")]
use collector::Collector;
use fold::Fold;
use intact_ledger::{Event, Run, Sink};

/// Where metrics go.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct Wanted {
    /// The run as metrics in Prometheus' text format, with OpenTelemetry's names
    #[cfg(feature = "prometheus")]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    prometheus: Option<std::path::PathBuf>,
    /// Send the run's metrics to a collector of OpenTelemetry (OTLP/HTTP with protobuf), stamped with the run's own times.
    /// Without a URL to OTEL_EXPORTER_OTLP_ENDPOINT, or http://localhost:4318, with OTEL_EXPORTER_OTLP_HEADERS and
    /// OTEL_EXPORTER_OTLP_TIMEOUT; with one, none of these is used
    #[cfg(feature = "otlp")]
    #[arg(long, value_name = "URL", value_parser = collector::parse, num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Output")]
    otlp: Option<Collector>,
}

/// The metrics of a run, and where they will go.
pub(crate) struct Metrics {
    fold: Fold,
    #[cfg(feature = "prometheus")]
    file: Option<prometheus::TextFile>,
    #[cfg(feature = "otlp")]
    collector: Option<Collector>,
}

impl Wanted {
    /// Begins them, if any are wanted.
    pub(crate) fn open(&self, run: &Run) -> anyhow::Result<Option<Metrics>> {
        let metrics = Metrics {
            fold: Fold::new(run),
            #[cfg(feature = "prometheus")]
            file: self
                .prometheus
                .as_deref()
                .map(prometheus::TextFile::create)
                .transpose()?,
            #[cfg(feature = "otlp")]
            collector: self.otlp.clone(),
        };
        Ok(metrics.is_wanted().then_some(metrics))
    }
}

impl Metrics {
    fn is_wanted(&self) -> bool {
        #[cfg(feature = "prometheus")]
        if self.file.is_some() {
            return true;
        }
        #[cfg(feature = "otlp")]
        if self.collector.is_some() {
            return true;
        }
        false
    }

    /// Writes and sends them; what could not be.
    pub(crate) fn finish(self) -> Vec<String> {
        let run = self.fold.finish();
        let mut troubles = Vec::new();
        #[cfg(feature = "otlp")]
        if let Some(collector) = &self.collector
            && let Err(error) = collector.send(&run)
        {
            troubles.push(format!("--otlp: {error}"));
        }
        #[cfg(feature = "prometheus")]
        if let Some(file) = self.file
            && let Err(error) = file.write(run)
        {
            troubles.push(format!("--prometheus: {error}"));
        }
        troubles
    }
}

impl Sink for Metrics {
    fn record(&mut self, event: Event<'_>) {
        self.fold.record(event);
    }
}
