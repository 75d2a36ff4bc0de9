//! The options `--prometheus FILE` and `--otlp[=URL]`, and their wiring to `intact-metrics`. A
//! writer that fails is a caveat of the run and ends nothing.

#[cfg(feature = "prometheus")]
use crate::console;
#[cfg(feature = "prometheus")]
use anyhow::Context;
use intact_ledger::{Event, Run, Sink};
#[cfg(feature = "otlp")]
use intact_metrics::Collector;
use intact_metrics::Fold;
#[cfg(feature = "prometheus")]
use intact_metrics::TextFile;
use serde::{Deserialize, Serialize};

/// Where metrics go.
#[derive(clap::Args, Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct MetricsOptions {
    /// The run as metrics in Prometheus' text format, with OpenTelemetry's names
    #[cfg(feature = "prometheus")]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    prometheus: Option<std::path::PathBuf>,
    /// Send the run's metrics to a collector of OpenTelemetry (OTLP/HTTP with protobuf), stamped
    /// with the run's own times. Without a URL to OTEL_EXPORTER_OTLP_ENDPOINT, or
    /// http://localhost:4318, with OTEL_EXPORTER_OTLP_HEADERS and OTEL_EXPORTER_OTLP_TIMEOUT; with
    /// one, none of these is used
    #[cfg(feature = "otlp")]
    // its header fields are secrets, and no process on a link can reach it
    #[serde(skip)]
    #[arg(long, value_name = "URL", value_parser = collector, num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Output")]
    otlp: Option<Collector>,
}

/// The metrics of a run and their writers.
pub(crate) struct Metrics {
    fold: Fold,
    #[cfg(feature = "prometheus")]
    file: Option<TextFile>,
    #[cfg(feature = "otlp")]
    collector: Option<Collector>,
}

/// For clap: a URL, or the collector of the environment.
#[cfg(feature = "otlp")]
fn collector(url: &str) -> Result<Collector, String> {
    Collector::parse(url, |name| std::env::var(name).ok())
}

impl MetricsOptions {
    /// Whether there is a writer.
    pub(crate) fn is_any(&self) -> bool {
        #[cfg(feature = "prometheus")]
        if self.prometheus.is_some() {
            return true;
        }
        #[cfg(feature = "otlp")]
        if self.otlp.is_some() {
            return true;
        }
        false
    }

    /// Whether a collector of this network gets them.
    pub(crate) fn has_collector(&self) -> bool {
        #[cfg(feature = "otlp")]
        return self.otlp.is_some();
        #[cfg(not(feature = "otlp"))]
        false
    }

    /// Opens the writers; `None` without any.
    pub(crate) fn open(&self, run: &Run) -> anyhow::Result<Option<Metrics>> {
        if !self.is_any() {
            return Ok(None);
        }
        Ok(Some(Metrics {
            fold: Fold::new(run),
            #[cfg(feature = "prometheus")]
            file: self
                .prometheus
                .as_deref()
                .map(TextFile::create)
                .transpose()
                .context("--prometheus")?,
            #[cfg(feature = "otlp")]
            collector: self.otlp.clone(),
        }))
    }
}

impl Metrics {
    /// Writes and sends the metrics; returns what failed. A file that cannot be written fails the
    /// command, a collector does not.
    pub(crate) fn finish(self) -> Vec<String> {
        let measured = self.fold.finish();
        let mut troubles = Vec::new();
        #[cfg(feature = "otlp")]
        if let Some(collector) = &self.collector {
            let tls = intact_client::tls::provider();
            if let Err(error) = collector.send(&measured, jiff::Timestamp::now(), tls) {
                troubles.push(format!("--otlp: {error}"));
            }
        }
        #[cfg(feature = "prometheus")]
        if let Some(file) = self.file
            && let Err(error) = file.write(measured)
        {
            let trouble = format!("--prometheus: {:#}", anyhow::Error::from(error));
            console::unwritten(&trouble);
            troubles.push(trouble);
        }
        troubles
    }
}

impl Sink for Metrics {
    fn record(&mut self, event: Event<'_>) {
        self.fold.record(event);
    }
}
