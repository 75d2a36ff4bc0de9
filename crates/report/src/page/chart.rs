//! Charts as data. A writer draws the kinds that it can: SVG all, the terminal those that fit into
//! lines of text.

use super::Text;
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
    pub kind: ChartKind,
}

impl Chart {
    /// A chart with what to see in it.
    pub fn new(
        id: &'static str,
        title: impl Into<Text>,
        kind: impl Into<ChartKind>,
        note: impl Into<Text>,
    ) -> Chart {
        Chart {
            id,
            title: title.into(),
            is_wide: false,
            notes: vec![note.into()],
            kind: kind.into(),
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

/// What a chart shows.
pub enum ChartKind {
    /// Bars over a common axis.
    Bars(Bars),
    /// Distributions.
    Histogram(Histogram),
    /// Values over a quantity or time.
    Lines(Lines),
    /// Single values in their order.
    Scatter(Scatter),
    /// Connections over time.
    Timeline(Timeline),
}

impl ChartKind {
    /// Whether there is nothing to draw. A line needs two points.
    pub fn is_empty(&self) -> bool {
        match self {
            ChartKind::Bars(bars) => bars.0.is_empty(),
            ChartKind::Histogram(histogram) => histogram.populations().next().is_none(),
            ChartKind::Lines(lines) => lines.lines.iter().all(|line| line.points.len() < 2),
            ChartKind::Scatter(scatter) => scatter.0.iter().all(|one| one.points.is_empty()),
            ChartKind::Timeline(timeline) => timeline.lanes.iter().all(|one| one.lives.is_empty()),
        }
    }
}

macro_rules! kinds {
    ($($kind:ident),*) => {
        $(impl From<$kind> for ChartKind {
            fn from(chart: $kind) -> ChartKind {
                ChartKind::$kind(chart)
            }
        })*
    };
}

kinds!(Bars, Histogram, Lines, Scatter, Timeline);

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

/// Bars over a common axis of time from zero.
#[derive(Clone, Debug, Default)]
pub struct Bars(pub Vec<Bar>);

/// One bar, whole or stacked.
#[derive(Clone, Debug)]
pub struct Bar {
    /// What it stands for.
    pub name: String,
    /// Its value in words, interval included.
    pub words: String,
    /// Its parts in their order; the only one of a whole bar has no name.
    pub parts: Vec<Segment>,
    /// The ends of the interval of its value, in milliseconds.
    pub interval: Option<(f64, f64)>,
}

impl Bar {
    /// A bar that is one part.
    pub fn whole(name: impl Into<String>, tone: Tone, value: f64, words: String) -> Bar {
        Bar {
            name: name.into(),
            words,
            parts: vec![Segment {
                name: String::new(),
                tone,
                value,
            }],
            interval: None,
        }
    }

    /// Its length.
    pub(crate) fn value(&self) -> f64 {
        self.parts.iter().map(|part| part.value).sum()
    }
}

/// A part of a bar.
#[derive(Clone, Debug)]
pub struct Segment {
    /// What it is.
    pub name: String,
    /// What it stands for.
    pub tone: Tone,
    /// Its length in milliseconds.
    pub value: f64,
}

/// Panels over one axis of time.
#[derive(Clone, Debug, Default)]
pub struct Histogram(pub Vec<Panel>);

impl Histogram {
    /// All populations, each with its panel.
    pub(crate) fn populations(&self) -> impl Iterator<Item = (&Panel, &Population)> {
        let panels = self.0.iter();
        panels.flat_map(|panel| panel.populations.iter().map(move |one| (panel, one)))
    }
}

/// Populations over the common axis.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What it is about; empty where there is one panel.
    pub name: String,
    /// The populations, each drawn over the ones before.
    pub populations: Vec<Population>,
    /// A marked range of values.
    pub band: Option<Band>,
}

/// A distribution.
#[derive(Clone, Debug)]
pub struct Population {
    /// What it is; empty where a panel has one.
    pub name: String,
    /// Its figures.
    pub words: String,
    /// What it stands for.
    pub tone: Tone,
    /// Low, high (milliseconds), count.
    pub buckets: Vec<(f64, f64, u64)>,
}

/// A marked range of values.
#[derive(Clone, Debug)]
pub struct Band {
    /// Its lower end.
    pub from: f64,
    /// Its upper end.
    pub to: f64,
    /// What it means.
    pub words: String,
}

/// Lines over common axes.
#[derive(Clone, Debug)]
pub struct Lines {
    /// The lines.
    pub lines: Vec<Line>,
    /// Marked places on the horizontal axis.
    pub marks: Vec<Mark>,
    /// How the horizontal axis is divided.
    pub scale: ScaleKind,
    /// The unit of the horizontal axis.
    pub x: Axis,
    /// The unit of the vertical axis.
    pub y: Axis,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// What it stands for.
    pub tone: Tone,
    /// The points, from left to right.
    pub points: Vec<LinePoint>,
    /// Points further apart than this are not joined.
    pub reach: Option<f64>,
}

/// A point of a line.
#[derive(Clone, Copy, Debug)]
pub struct LinePoint {
    /// Its place on the horizontal axis.
    pub x: f64,
    /// Its value.
    pub y: f64,
    /// The ends of the interval of its value.
    pub interval: Option<(f64, f64)>,
}

/// A marked place on the horizontal axis.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The place.
    pub x: f64,
    /// What happened there.
    pub words: String,
}

/// Single times in their order, a panel for each series.
#[derive(Clone, Debug, Default)]
pub struct Scatter(pub Vec<Series>);

/// One series.
#[derive(Clone, Debug)]
pub struct Series {
    /// What it is; empty where there is one.
    pub name: String,
    /// The points, from left to right.
    pub points: Vec<Point>,
    /// Marked values, each with its words.
    pub levels: Vec<(f64, String)>,
}

/// One value.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Its position, from 1.
    pub x: f64,
    /// Its value in milliseconds.
    pub y: f64,
    /// What it stands for.
    pub tone: Tone,
    /// Whether it is drawn hollow.
    pub hollow: bool,
}

/// Connections over time.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The subjects.
    pub lanes: Vec<Lane>,
    /// The unit of the horizontal axis.
    pub x: Axis,
}

/// Connections of one subject.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The subject.
    pub name: String,
    /// The connections.
    pub lives: Vec<Life>,
}

/// One connection; all times in milliseconds.
#[derive(Clone, Debug)]
pub struct Life {
    /// When its setup began.
    pub from: f64,
    /// When it was ready.
    pub ready: Option<f64>,
    /// When it ended, or was last seen.
    pub to: f64,
    /// Its exchanges.
    pub ticks: Vec<Tick>,
    /// What is not drawn.
    pub rest: Option<String>,
    /// Who ended it.
    pub end: Option<(Tone, String)>,
    /// Its story.
    pub words: String,
}

/// One exchange.
#[derive(Clone, Copy, Debug)]
pub struct Tick {
    /// When it began.
    pub from: f64,
    /// When it ended.
    pub to: f64,
    /// Whether it succeeded.
    pub ok: bool,
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
