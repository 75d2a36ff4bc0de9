//! `--prometheus FILE`: the text format of Prometheus (0.0.4), as the node exporter's textfile collector and `promtool` read it.
//! Names follow OpenTelemetry's rules for Prometheus: dots become underscores, units and `_total` are appended.
//!
//! The library writes OpenMetrics, which differs in few things: there `_total` is no part of a family's name, so that a reader of the older
//! format would find a counter without type and words. Names are therefore handed over whole, and values as they stand.

use super::fold::Measured;
use super::series::{Attributes, Families, Family, Point, Value};
use super::table::{Definition, Shape, Unit};
use anyhow::Context;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file that metrics will be written to.
pub(super) struct TextFile {
    path: PathBuf,
    file: File,
}

impl TextFile {
    /// Creates it, so that one which cannot be written is told before anything is measured.
    pub(super) fn create(path: &Path) -> anyhow::Result<TextFile> {
        let file = File::create(path)
            .with_context(|| format!("--prometheus: cannot write {}", path.display()))?;
        Ok(TextFile {
            path: path.to_owned(),
            file,
        })
    }

    /// Writes the metrics.
    pub(super) fn write(mut self, measured: Measured) -> anyhow::Result<()> {
        let text = text(measured.families).context("metrics as text")?;
        self.file
            .write_all(text.as_bytes())
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn text(families: Families) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Exposed(families)));
    let mut text = String::new();
    encode_registry(&mut text, &registry)?;
    Ok(text)
}

/// The families as the library asks for them.
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
    let mut encoder = encoder.encode_descriptor(&name, definition.words, None, kind)?;
    for (attributes, series) in &family.series {
        let labels = labels(attributes);
        value(family, &series.total, encoder.encode_family(&labels)?)?;
    }
    Ok(())
}

fn value(family: &Family, point: &Point, mut encoder: MetricEncoder<'_>) -> std::fmt::Result {
    match family.definition.shape {
        // as a gauge, for it appends nothing to the name
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
