//! The text format of Prometheus (0.0.4), as the node exporter's textfile collector and `promtool`
//! read it. Names follow OpenTelemetry's rules for Prometheus: dots become underscores, units and
//! `_total` are appended.
//!
//! The library writes OpenMetrics, where `_total` is not part of a family's name. A reader of the
//! older format would then find a counter without type and help. So this module passes complete
//! names, and passes values as gauges.

use crate::attributes::{Attributes, Value};
use crate::fold::Measured;
use crate::series::{Families, Family, Point};
use crate::table::{Definition, Shape, Unit};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why the file of metrics could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TextFileError {
    /// The file cannot be created or written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// A value could not be formatted.
    #[error("metrics as text")]
    Text(#[from] std::fmt::Error),
}

/// The file for metrics. Readers see the old text until the new one is complete.
#[derive(Debug)]
pub struct TextFile {
    path: PathBuf,
    file: File,
    /// The temporary path of the new text; `None` if the file cannot be replaced (a pipe, a
    /// terminal).
    temporary: Option<PathBuf>,
}

impl TextFile {
    /// Creates the file, so that an error is reported before the measurement.
    pub fn create(path: &Path) -> Result<TextFile, TextFileError> {
        let cannot = |source| TextFileError::Write {
            path: path.to_owned(),
            source,
        };
        let is_replaced = std::fs::metadata(path).map_or(true, |there| there.is_file());
        // the target of a symbolic link is replaced, not the link
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let temporary = is_replaced.then(|| {
            let mut name = target.clone().into_os_string();
            name.push(".tmp");
            PathBuf::from(name)
        });
        let file = File::create(temporary.as_ref().unwrap_or(&target)).map_err(cannot)?;
        Ok(TextFile {
            path: target,
            file,
            temporary,
        })
    }

    /// Writes the metrics.
    pub fn write(mut self, measured: Measured) -> Result<(), TextFileError> {
        let text = text(measured.families)?;
        let written = self.file.write_all(text.as_bytes());
        let replaced = written.and_then(|()| match &self.temporary {
            Some(temporary) => std::fs::rename(temporary, &self.path),
            None => Ok(()),
        });
        replaced.map_err(|source| TextFileError::Write {
            path: self.path.clone(),
            source,
        })?;
        self.temporary = None;
        Ok(())
    }
}

impl Drop for TextFile {
    fn drop(&mut self) {
        // a run without a result leaves the old file
        if let Some(temporary) = &self.temporary {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

fn text(families: Families) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Exposed(families)));
    let mut text = String::new();
    encode_registry(&mut text, &registry)?;
    Ok(text)
}

/// The families in the form that the library requires.
#[derive(Debug)]
struct Exposed(Families);

impl Collector for Exposed {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        self.0
            .iter()
            .try_for_each(|family| expose(family, &mut encoder))
    }
}

fn expose(family: &Family, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
    let definition = family.definition;
    let kind = match definition.shape {
        Shape::Count => MetricType::Counter,
        Shape::Level => MetricType::Gauge,
        Shape::Distribution(_) => MetricType::Histogram,
    };
    let name = name(&definition);
    let mut encoder = encoder.encode_descriptor(&name, definition.help, None, kind)?;
    for (attributes, series) in &family.series {
        let labels = labels(attributes);
        value(family, &series.total, encoder.encode_family(&labels)?)?;
    }
    Ok(())
}

fn value(family: &Family, point: &Point, mut encoder: MetricEncoder<'_>) -> std::fmt::Result {
    match family.definition.shape {
        // as a gauge, because it appends nothing to the name
        Shape::Count | Shape::Level => encoder.encode_gauge(&point.sum),
        Shape::Distribution(bounds) => {
            let bounds = bounds.iter().copied().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(point.buckets.iter().copied()).collect();
            let sum = family.definition.unit.scale(point.sum);
            encoder.encode_histogram::<NoLabelSet>(sum, point.count, &buckets, None)
        }
    }
}

fn labels(attributes: &Attributes) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
    };
    attributes
        .iter()
        .map(|(name, value)| (underscored(name), text(value)))
        .collect()
}

fn name(definition: &Definition) -> String {
    let mut name = underscored(definition.name);
    name.push_str(match definition.unit {
        Unit::Seconds => "_seconds",
        Unit::Bytes => "_bytes",
        Unit::Of(_) => "",
    });
    if definition.shape == Shape::Count {
        name.push_str("_total");
    }
    name
}

fn underscored(name: &str) -> String {
    name.replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::Fold;
    use intact_ledger::{Connection, ConnectionId, Event, Nanos, Producer, Run, Sink, Vantage};

    fn measured() -> Measured {
        let start = jiff::Timestamp::UNIX_EPOCH;
        let mut fold = Fold::new(&Run::new(
            Producer::Watch,
            "0",
            Vantage::Client,
            start,
            1,
            &[],
        ));
        fold.record(Event::Opened(&Connection::new(ConnectionId(1), Nanos(0))));
        fold.finish()
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[test]
    fn the_old_text_stays_until_the_new_one_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("intact.prom");
        std::fs::write(&path, "old").unwrap();
        let old = || std::fs::read_to_string(&path).unwrap();
        drop(TextFile::create(&path).unwrap());
        assert_eq!(old(), "old");
        assert_eq!(names(dir.path()), ["intact.prom"]);
        let file = TextFile::create(&path).unwrap();
        assert_eq!(old(), "old");
        file.write(measured()).unwrap();
        let new = std::fs::read_to_string(&path).unwrap();
        assert!(new.contains("intact_connections_opened_total{} 1"), "{new}");
        assert_eq!(names(dir.path()), ["intact.prom"]);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error_immediately() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().to_owned(), dir.path().join("none/intact.prom")] {
            let error = TextFile::create(&path).unwrap_err();
            assert!(error.to_string().contains("cannot write"), "{error}");
        }
    }
}
