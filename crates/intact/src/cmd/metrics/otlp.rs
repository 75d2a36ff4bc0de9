//! A run's metrics as a message of OTLP (opentelemetry-proto, `ExportMetricsServiceRequest`). Every point is stamped with the run's own
//! beginning and last moment, so that a log of last night lands in last night. Must not send.

use super::fold::Measured;
use super::series::{Attributes, Family, Point, Value};
use super::table::Shape;
use ledger::Run;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, metric,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_semantic_conventions::{SCHEMA_URL, attribute};

/// When points begin and end, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// The start of the run; 0 is OTLP's word for unknown.
    pub(super) start: u64,
    /// The last moment that it tells of.
    pub(super) end: u64,
}

impl Times {
    /// Those of a run; `None` where it has no dates.
    pub(super) fn of(measured: &Measured) -> Option<Times> {
        let started: jiff::Timestamp = measured.run.started.parse().ok()?;
        let start = u64::try_from(started.as_nanosecond()).ok()?;
        (start > 0).then(|| Times {
            start,
            end: start.saturating_add(measured.last.0),
        })
    }
}

/// The message; `None` where there is nothing to tell.
pub(super) fn message(measured: &Measured, times: Times) -> Option<ExportMetricsServiceRequest> {
    let metrics: Vec<Metric> = measured
        .families
        .iter()
        .map(|family| metric(family, times))
        .collect();
    (!metrics.is_empty()).then(|| ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource(&measured.run)),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(InstrumentationScope {
                    name: "intact".to_owned(),
                    version: measured.run.version.clone(),
                    ..InstrumentationScope::default()
                }),
                metrics,
                schema_url: SCHEMA_URL.to_owned(),
            }],
            schema_url: SCHEMA_URL.to_owned(),
        }],
    })
}

/// Who tells. Each run is an instance of its own: its counts begin at zero.
fn resource(run: &Run) -> Resource {
    let text = |name, value: &str| attribute_of(name, &Value::Text(value.to_owned()));
    let mut attributes = vec![
        text(attribute::SERVICE_NAME, "intact"),
        text(attribute::SERVICE_VERSION, &run.version),
        text(attribute::SERVICE_INSTANCE_ID, &run.id),
        text("intact.command", &run.producer),
    ];
    if let Some(subject) = &run.subject {
        attributes.push(text("intact.subject", subject));
    }
    Resource {
        attributes,
        ..Resource::default()
    }
}

fn metric(family: &Family, times: Times) -> Metric {
    let definition = family.definition;
    let cumulative = AggregationTemporality::Cumulative.into();
    let data = match definition.shape {
        Shape::Count | Shape::Level => metric::Data::Sum(Sum {
            data_points: points(family, |attributes, point| NumberDataPoint {
                attributes,
                start_time_unix_nano: times.start,
                time_unix_nano: times.end,
                value: Some(number_data_point::Value::AsInt(whole(point.sum))),
                ..NumberDataPoint::default()
            }),
            aggregation_temporality: cumulative,
            is_monotonic: definition.shape == Shape::Count,
        }),
        Shape::Distribution(bounds) => metric::Data::Histogram(Histogram {
            data_points: points(family, |attributes, point| HistogramDataPoint {
                attributes,
                start_time_unix_nano: times.start,
                time_unix_nano: times.end,
                count: point.count,
                sum: Some(definition.unit.scale(point.sum)),
                bucket_counts: point.buckets.clone(),
                explicit_bounds: bounds.to_vec(),
                min: Some(definition.unit.scale(point.least)),
                max: Some(definition.unit.scale(point.greatest)),
                ..HistogramDataPoint::default()
            }),
            aggregation_temporality: cumulative,
        }),
    };
    Metric {
        name: definition.name.to_owned(),
        description: definition.words.to_owned(),
        unit: definition.unit.ucum().to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

fn points<T>(family: &Family, point: impl Fn(Vec<KeyValue>, &Point) -> T) -> Vec<T> {
    let keys = |attributes: &Attributes| {
        attributes
            .iter()
            .map(|(name, value)| attribute_of(name, value))
            .collect()
    };
    family
        .series
        .iter()
        .map(|(attributes, values)| point(keys(attributes), values))
        .collect()
}

fn attribute_of(name: &str, value: &Value) -> KeyValue {
    let value = match value {
        Value::Text(text) => any_value::Value::StringValue(text.clone()),
        Value::Number(number) => any_value::Value::IntValue(*number),
        Value::Flag(flag) => any_value::Value::BoolValue(*flag),
    };
    KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
