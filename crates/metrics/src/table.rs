//! The table of metrics for all writers: names, units, help texts and bounds.
//!
//! Names and attributes are those of OpenTelemetry's semantic conventions where they exist; our own
//! begin with `intact.`. Must not know an output format.

use intact_ledger::Vantage;
use opentelemetry_semantic_conventions::metric;

/// Whether the connection was open before; absent if that is unknown.
pub(crate) const REUSED: &str = "intact.connection.reused";
/// The phase of a setup: `dns`, `connect` or `ssl`.
pub(crate) const PHASE: &str = "intact.connection.phase";
/// The variant of a comparison.
pub(crate) const VARIANT: &str = "intact.variant";

/// Bounds that OpenTelemetry recommends for the duration of requests, and two smaller ones for
/// local servers. Seconds.
const REQUESTS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];
/// Bounds that OpenTelemetry recommends for the duration of connections. Seconds.
const CONNECTIONS: &[f64] = &[
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];
/// Powers of four, from the size of a header to that of a download; OpenTelemetry recommends no
/// bounds for sizes. Bytes.
const SIZES: &[f64] = &[
    0.0,
    256.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// The metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Duration of requests.
    Requests,
    /// Size of response bodies.
    Bodies,
    /// Duration of connections.
    Lives,
    /// Number of open connections.
    Open,
    /// Number of requests, with or without a known duration.
    Seen,
    /// Duration of the phases of setups.
    Setups,
    /// Number of opened connections.
    Opened,
    /// Number of failed dials.
    Failed,
}

/// The kind of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// A count that only grows.
    Count,
    /// A count that grows and shrinks.
    Level,
    /// The number of values up to each of these bounds.
    Distribution(&'static [f64]),
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds; recorded in nanoseconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A number of these, in UCUM's braces.
    Of(&'static str),
}

impl Unit {
    /// The unit in UCUM's notation, as OpenTelemetry uses it.
    pub fn ucum(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Bytes => "By",
            Unit::Of(things) => things,
        }
    }

    /// Converts a recorded value to this unit.
    pub fn scale(self, recorded: i64) -> f64 {
        match self {
            Unit::Seconds => recorded as f64 / 1e9,
            Unit::Bytes | Unit::Of(_) => recorded as f64,
        }
    }
}

/// The facts about a metric that writers need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Definition {
    /// OpenTelemetry's name, with dots.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// Its help text, without a full stop.
    pub help: &'static str,
    /// The kind of its values.
    pub shape: Shape,
}

impl Metric {
    /// All metrics, in the order in which they are written.
    pub const ALL: [Metric; 8] = [
        Metric::Requests,
        Metric::Bodies,
        Metric::Lives,
        Metric::Open,
        Metric::Seen,
        Metric::Setups,
        Metric::Opened,
        Metric::Failed,
    ];

    /// The row of the table for this metric. A ledger of a server has the names of server metrics;
    /// OpenTelemetry has none for a server's connections.
    pub fn definition(self, vantage: Vantage) -> Definition {
        let by = |client, server| match vantage {
            Vantage::Server => server,
            Vantage::Client | Vantage::OnPath => client,
        };
        let connections = Unit::Of("{connection}");
        let (name, unit, shape, help) = match self {
            Metric::Requests => (
                by(
                    metric::HTTP_CLIENT_REQUEST_DURATION,
                    metric::HTTP_SERVER_REQUEST_DURATION,
                ),
                Unit::Seconds,
                Shape::Distribution(REQUESTS),
                "Requests, from when they were wanted to their end, setup included",
            ),
            Metric::Bodies => (
                by(
                    metric::HTTP_CLIENT_RESPONSE_BODY_SIZE,
                    metric::HTTP_SERVER_RESPONSE_BODY_SIZE,
                ),
                Unit::Bytes,
                Shape::Distribution(SIZES),
                "Bodies of responses, up to where they were read",
            ),
            Metric::Lives => (
                by(
                    metric::HTTP_CLIENT_CONNECTION_DURATION,
                    "intact.server.connection.duration",
                ),
                Unit::Seconds,
                Shape::Distribution(CONNECTIONS),
                "Connections that ended, from the first step of their setup",
            ),
            Metric::Open => (
                by(
                    metric::HTTP_CLIENT_OPEN_CONNECTIONS,
                    "intact.server.open_connections",
                ),
                connections,
                Shape::Level,
                "Connections that are open; without times, at the end of the run",
            ),
            Metric::Seen => (
                "intact.requests",
                Unit::Of("{request}"),
                Shape::Count,
                "Requests, whether or not it is known how long they took",
            ),
            Metric::Setups => (
                "intact.connection.setup",
                Unit::Seconds,
                Shape::Distribution(REQUESTS),
                "Steps of setting up connections: lookup, transport and TLS",
            ),
            Metric::Opened => (
                "intact.connections.opened",
                connections,
                Shape::Count,
                "Connections that were opened",
            ),
            Metric::Failed => (
                "intact.connections.failed",
                connections,
                Shape::Count,
                "Dials that led to no connection, those that failed in TLS included",
            ),
        };
        Definition {
            name,
            unit,
            help,
            shape,
        }
    }
}
