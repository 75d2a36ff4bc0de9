//! Charts: a kind is a file with its data, and with what the writers make of them.
//!
//! SVG is drawn once for narrow and once for wide pages instead of being shrunk, so that letters
//! keep their size. Colours are classes that the page's style sheet resolves (light, dark, print).
//! A terminal gets the kinds that fit into lines of text. Must not compute more than places.

mod bars;
mod canvas;
mod frame;
mod histogram;
mod letters;
mod lines;
mod scale;
mod scatter;
mod timeline;

pub use bars::*;
pub(crate) use canvas::Svg;
pub use histogram::*;
pub use lines::*;
pub use scatter::*;
pub use timeline::*;

use super::Text;
use crate::painted::{ALARM, PLAIN, Painted, Style};
use intact_units::date;
use intact_units::number::{tick, whole};
use jiff::{SignedDuration, Timestamp};

/// A chart with its title and what to see in it.
pub struct Chart {
    /// A name for links, unique within the page.
    pub id: &'static str,
    /// The title.
    pub title: Text,
    /// Whether it takes the whole width of a page.
    pub is_wide: bool,
    /// What stands below it, and describes it to those who cannot see it.
    pub notes: Vec<Text>,
    /// The data.
    pub(crate) kind: Box<dyn ChartKind>,
}

impl Chart {
    /// A chart with what to see in it.
    pub(crate) fn new(
        id: &'static str,
        title: impl Into<Text>,
        kind: impl ChartKind + 'static,
        note: impl Into<Text>,
    ) -> Chart {
        Chart {
            id,
            title: title.into(),
            is_wide: false,
            notes: vec![note.into()],
            kind: Box::new(kind),
        }
    }

    /// Over the whole width of a page.
    pub fn wide(mut self) -> Chart {
        self.is_wide = true;
        self
    }

    /// With further lines below it.
    pub fn notes(mut self, notes: impl IntoIterator<Item = Text>) -> Chart {
        self.notes.extend(notes);
        self
    }
}

/// What a chart shows: its data, and what each writer makes of them.
pub(crate) trait ChartKind {
    /// Whether there is nothing to draw.
    fn is_empty(&self) -> bool;

    /// The chart as SVG, `width` units wide and as high as needed; `title` and `description` are
    /// what a screen reader says.
    fn svg(&self, width: f64, title: &str, description: &str) -> Svg;

    /// The lines of a terminal with this number of columns; none for a kind that needs a picture.
    fn letters(&self, columns: usize) -> Vec<Painted> {
        let _ = columns;
        Vec::new()
    }

    /// The data; `None` for single values, which have a file of their own.
    fn table(&self) -> Option<ChartTable> {
        None
    }
}

/// The heads and the rows of the data of a chart.
pub(crate) type ChartTable = ([&'static str; 6], Vec<Vec<String>>);

fn row(names: [&str; 2], figures: [f64; 2], ends: [String; 2]) -> Vec<String> {
    let names = names.map(str::to_owned).into_iter();
    let figures = figures.map(|figure| figure.to_string());
    names.chain(figures).chain(ends).collect()
}

fn ends(interval: Option<(f64, f64)>) -> [String; 2] {
    interval.map_or_else(Default::default, |(low, high)| {
        [low.to_string(), high.to_string()]
    })
}

/// What a mark stands for; each writer has its colours and shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// What waited for a connection's setup.
    Fresh,
    /// What ran on a connection that was open.
    Reused,
    /// What is neither, or unknown.
    Plain,
    /// What failed or warns.
    Alarm,
    /// One of several series.
    Series(u8),
    /// A phase, by its position in `intact_ledger::Phase::ALL`.
    Phase(u8),
}

impl Tone {
    /// The class of the style sheet that gives a shape its colour.
    fn class(self) -> String {
        match self {
            Tone::Fresh => "fresh".to_owned(),
            Tone::Reused => "reused".to_owned(),
            Tone::Plain => "plain".to_owned(),
            Tone::Alarm => "alarm".to_owned(),
            Tone::Series(nth) => format!("s{}", nth % 8),
            Tone::Phase(nth) => format!("p{}", nth % 8),
        }
    }

    /// The colour on a terminal.
    fn style(self) -> Style {
        match self {
            Tone::Fresh => "31",
            Tone::Reused => "32",
            Tone::Alarm => ALARM,
            Tone::Plain | Tone::Series(_) | Tone::Phase(_) => PLAIN,
        }
    }
}

/// The unit of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Milliseconds.
    Time,
    /// Milliseconds after a date, on an axis of this many milliseconds.
    Date {
        /// The date of 0.
        zero: Timestamp,
        /// The span, in milliseconds.
        span_ms: u64,
    },
    /// A number of things.
    Count,
}

impl Axis {
    /// A value at a tick.
    pub(crate) fn label(self, value: f64) -> String {
        match self {
            Axis::Time => tick(value),
            Axis::Date { zero, span_ms } => {
                let at = zero.checked_add(SignedDuration::from_millis(value as i64));
                date::tick(at.unwrap_or(zero), span_ms as f64)
            }
            Axis::Count => whole(value),
        }
    }
}

/// How values are placed on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleKind {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart.
    Logarithmic,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_of_weeks_is_a_date_and_that_of_an_hour_a_time_of_day() {
        let zero: Timestamp = "2026-02-20T00:00:00Z".parse().unwrap();
        let hours = |hours: f64| hours * 3_600_000.0;
        let label = |span: f64, at: f64| {
            let axis = Axis::Date {
                zero,
                span_ms: span as u64,
            };
            axis.label(at)
        };
        assert_eq!(label(hours(500.0), hours(278.0)), "3 Mar");
        assert_eq!(label(hours(2.0), hours(14.5)), "14:30");
        assert_eq!(label(hours(2.0), f64::INFINITY), "00:00");
    }
}
