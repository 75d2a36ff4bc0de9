//! A run as metrics with the names of OpenTelemetry's semantic conventions: one table, one pass
//! over the events.
//!
//! [`Fold`] receives the events, and [`Measured`] has the values. Two writers are features:
//! `prometheus` (a text file) and `otlp` (a request to a collector). Must not draw conclusions,
//! print, or read clocks and the environment: the caller passes both in.

mod attributes;
#[cfg(feature = "otlp")]
mod collector;
mod connections;
mod fold;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "prometheus")]
mod prometheus;
mod series;
mod table;

pub use attributes::{Attributes, Value};
#[cfg(feature = "otlp")]
pub use collector::{Collector, CollectorError};
pub use fold::{Fold, Measured};
#[cfg(feature = "prometheus")]
pub use prometheus::{TextFile, TextFileError};
pub use series::{Families, Family, Point, Series};
pub use table::{Definition, Metric, Shape, Unit};
