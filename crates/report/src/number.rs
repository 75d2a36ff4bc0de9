//! Figures that may be absent, as cells of tables print them: a dash for none. The formats are those of [`intact_units::number`].

use intact_units::number::{per_second, percent, time};

/// Milliseconds that may be absent.
pub(crate) fn maybe_time(ms: Option<f64>) -> String {
    ms.map_or_else(none, time)
}

/// A rate a second that may be absent.
pub(crate) fn maybe_rate(per_s: Option<f64>) -> String {
    per_s.map_or_else(none, per_second)
}

/// A share that may be absent.
pub(crate) fn maybe_percent(share: Option<f64>) -> String {
    share.map_or_else(none, percent)
}

/// A share of requests that reused a connection, or its range where the state of some requests is unknown.
pub(crate) fn reuse(share: Option<f64>, range: Option<[f64; 2]>) -> String {
    match range {
        Some([low, high]) => format!("{} to {}", percent(low), percent(high)),
        None => maybe_percent(share),
    }
}

fn none() -> String {
    "-".to_owned()
}
