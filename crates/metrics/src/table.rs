//! The table of metrics: names, units, help texts and bounds, for all writers. Names and attributes are those of OpenTelemetry's
//! semantic conventions where they exist; our own begin with `intact.`. Must not know an output format.

use intact_ledger::Vantage;
use opentelemetry_semantic_conventions::metric;

/// Whether the connection had been opened before; absent where that is not known.
pub(crate) const REUSED: &str = "intact.connection.reused";
/// The step of a setup: `dns`, `connect` or `ssl`.
pub(crate) const PHASE: &str = "intact.connection.phase";
/// The variant of a comparison.
pub(crate) const VARIANT: &str = "intact.variant";

/// OpenTelemetry's advice for the duration of requests, and two below it: one machine is quick. Seconds.
const REQUESTS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];
/// OpenTelemetry's advice for the duration of connections. Seconds.
const CONNECTIONS: &[f64] = &[
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];
/// OpenTelemetry advises none for sizes: powers of four from a header to a download. Bytes.
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

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// How long requests took.
    Requests,
    /// How large the bodies of answers were.
    Bodies,
    /// How long connections lived.
    Lives,
    /// Connections that are open.
    Open,
    /// Requests, whether or not it is known how long they took.
    Seen,
    /// How long the steps of setups took.
    Setups,
    /// Connections that were opened.
    Opened,
    /// Dials that led to none.
    Failed,
}

/// What one value of a metric is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// A count that only grows.
    Count,
    /// A count that grows and shrinks.
    Level,
    /// How many values lie up to each of these bounds.
    Distribution(&'static [f64]),
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds; recorded in nanoseconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Things of this kind, in UCUM's braces.
    Of(&'static str),
}

impl Unit {
    /// UCUM's notation, as OpenTelemetry has it.
    pub fn ucum(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Bytes => "By",
            Unit::Of(things) => things,
        }
    }

    /// A recorded value in this unit.
    pub fn scale(self, recorded: i64) -> f64 {
        match self {
            Unit::Seconds => recorded as f64 / 1e9,
            Unit::Bytes | Unit::Of(_) => recorded as f64,
        }
    }
}

/// All that a writer has to know of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Definition {
    /// OpenTelemetry's name, with dots.
    pub name: &'static str,
    /// What a value counts.
    pub unit: Unit,
    /// Its help text, without a full stop.
    pub help: &'static str,
    /// What one value is.
    pub shape: Shape,
}

impl Metric {
    /// All, in the order in which they are written.
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

    /// Its row of the table. A server has the metrics of a server; OpenTelemetry has no names for a server's connections.
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
                "Bodies of answers as far as they were read",
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
