//! A run's metrics as a message of OTLP (opentelemetry-proto, `ExportMetricsServiceRequest`).
//!
//! Points are cumulative and have the times of the run, so an old log gives a curve at its original
//! time. Must not send.

use crate::attributes::Value;
use crate::fold::Measured;
use crate::series::{Families, Family, Point};
use crate::table::Shape;
use intact_ledger::{Nanos, Run};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_semantic_conventions::{SCHEMA_URL, attribute};

/// Converts times of the run to nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dates {
    /// The run began at this time.
    From(u64),
    /// The run has no dates: all points have this time, and the start is unknown.
    Only(u64),
}

impl Dates {
    /// The dates of a run; `now` for a run without dates.
    pub(crate) fn of(run: &Run, now: u64) -> Dates {
        let started = run.started.parse().map(jiff::Timestamp::as_nanosecond);
        match started.map(u64::try_from) {
            Ok(Ok(start)) if start > 0 => Dates::From(start),
            _ => Dates::Only(now),
        }
    }

    fn start(self) -> u64 {
        match self {
            Dates::From(start) => start,
            // OTLP's value for an unknown time
            Dates::Only(_) => 0,
        }
    }

    /// Points with their dates; only the last point for a run without dates.
    fn date(self, points: Vec<(Nanos, Point)>) -> Vec<(u64, Point)> {
        match self {
            Dates::From(start) => {
                let dated = points.into_iter();
                dated
                    .map(|(at, point)| (start.saturating_add(at.0), point))
                    .collect()
            }
            Dates::Only(now) => {
                let last = points.into_iter().last();
                last.map(|(_, point)| (now, point)).into_iter().collect()
            }
        }
    }
}

/// The message; `None` for a run without metrics.
pub(crate) fn message(measured: &Measured, dates: Dates) -> Option<ExportMetricsServiceRequest> {
    let metrics: Vec<Metric> = measured
        .families
        .iter()
        .map(|family| metric(&measured.families, family, dates))
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

/// The sender. Each run is an instance of its own, because its counts begin at zero.
fn resource(run: &Run) -> Resource {
    let text = |name, value: &str| attribute_of(name, &Value::Text(value.to_owned()));
    let mut attributes = vec![
        text(attribute::SERVICE_NAME, "intact"),
        text(attribute::SERVICE_VERSION, &run.version),
        text(attribute::SERVICE_INSTANCE_ID, &run.id),
        text("intact.command", run.producer.as_str()),
    ];
    if let Some(subject) = &run.subject {
        attributes.push(text("intact.subject", subject));
    }
    Resource {
        attributes,
        ..Resource::default()
    }
}

fn metric(families: &Families, family: &Family, dates: Dates) -> Metric {
    let definition = family.definition;
    let cumulative = AggregationTemporality::Cumulative.into();
    let data = match definition.shape {
        Shape::Count | Shape::Level => metric::Data::Sum(Sum {
            data_points: points(families, family, dates, |attributes, at, point| {
                NumberDataPoint {
                    attributes,
                    start_time_unix_nano: dates.start(),
                    time_unix_nano: at,
                    value: Some(number_data_point::Value::AsInt(point.sum)),
                    ..NumberDataPoint::default()
                }
            }),
            aggregation_temporality: cumulative,
            is_monotonic: definition.shape == Shape::Count,
        }),
        Shape::Distribution(bounds) => metric::Data::Histogram(Histogram {
            data_points: points(families, family, dates, |attributes, at, point| {
                HistogramDataPoint {
                    attributes,
                    start_time_unix_nano: dates.start(),
                    time_unix_nano: at,
                    count: point.count,
                    sum: Some(definition.unit.scale(point.sum)),
                    bucket_counts: point.buckets,
                    explicit_bounds: bounds.to_vec(),
                    min: Some(definition.unit.scale(point.least)),
                    max: Some(definition.unit.scale(point.greatest)),
                    ..HistogramDataPoint::default()
                }
            }),
            aggregation_temporality: cumulative,
        }),
    };
    Metric {
        name: definition.name.to_owned(),
        description: definition.help.to_owned(),
        unit: definition.unit.ucum().to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

fn points<T>(
    families: &Families,
    family: &Family,
    dates: Dates,
    point_of: impl Fn(Vec<KeyValue>, u64, Point) -> T,
) -> Vec<T> {
    let mut all = Vec::new();
    for (attributes, series) in &family.series {
        let attributes: Vec<KeyValue> = attributes
            .iter()
            .map(|(name, value)| attribute_of(name, value))
            .collect();
        let points = dates.date(families.through_time(series));
        all.extend(
            points
                .into_iter()
                .map(|(at, point)| point_of(attributes.clone(), at, point)),
        );
    }
    all
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_have_the_dates_of_the_run_and_one_without_has_the_date_of_sending() {
        let dates = |started: &str| {
            let started = started.parse().unwrap();
            let run = Run::new(
                intact_ledger::Producer::Audit,
                "0",
                intact_ledger::Vantage::Client,
                started,
                1,
                &[],
            );
            Dates::of(&run, 77)
        };
        let points = || [1, 2].map(|at| (Nanos(at), Point::default())).to_vec();
        let dated = dates("1970-01-01T00:00:01Z");
        let times = |dates: Dates| {
            let dated = dates.date(points()).into_iter();
            (dates.start(), dated.map(|(at, _)| at).collect::<Vec<_>>())
        };
        assert_eq!(
            times(dated),
            (1_000_000_000, vec![1_000_000_001, 1_000_000_002])
        );
        assert_eq!(times(dates("1970-01-01T00:00:00Z")), (0, vec![77]));
    }
}
