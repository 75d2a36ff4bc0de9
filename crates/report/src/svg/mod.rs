//! Charts as SVG text, drawn for a given width.
//!
//! A chart is drawn once for narrow and once for wide pages instead of being shrunk, so that
//! letters keep their size. Colours are classes that the page's style sheet resolves (light, dark,
//! print). Everything that goes in is escaped. Must not compute more than places.

mod bars;
mod canvas;
mod frame;
mod histogram;
mod lines;
mod scale;
mod scatter;
mod timeline;

use super::page::{ChartKind, Tone};
use std::fmt;

/// The class of the style sheet that gives a shape its colour.
fn tone_class(tone: Tone) -> String {
    match tone {
        Tone::Fresh => "fresh".to_owned(),
        Tone::Reused => "reused".to_owned(),
        Tone::Plain => "plain".to_owned(),
        Tone::Alarm => "alarm".to_owned(),
        Tone::Series(nth) => format!("s{}", nth % 8),
        Tone::Phase(nth) => format!("p{}", nth % 8),
    }
}

/// A finished chart. Only this module makes one, and it escapes all text, so that a page can hold
/// it as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Svg(String);

impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Draws a chart `width` units wide, as high as needed; `title` and `description` are what a screen
/// reader says.
pub(crate) fn draw(kind: &ChartKind, width: f64, title: &str, description: &str) -> Svg {
    match kind {
        ChartKind::Bars(bars) => bars.draw(width, title, description),
        ChartKind::Histogram(histogram) => histogram.draw(width, title, description),
        ChartKind::Lines(lines) => lines.draw(width, title, description),
        ChartKind::Scatter(scatter) => scatter.draw(width, title, description),
        ChartKind::Timeline(timeline) => timeline.draw(width, title, description),
    }
}
