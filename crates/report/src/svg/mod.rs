//! Pictures as SVG text: a handful of kinds, each a plain description that is drawn for a given width.
//!
//! A picture is drawn once for narrow and once for wide paper instead of being shrunk, so that letters keep their size. Colours are
//! classes that the page's style sheet resolves (light, dark, print). Everything that goes in is escaped; nothing is computed here
//! but places: numbers come as findings give them. Must not know a ledger, a command or a page.

mod bars;
mod canvas;
mod frame;
mod histogram;
mod lines;
mod scale;
mod scatter;
mod stacks;
mod timeline;

pub use bars::{Bar, Bars};
pub use histogram::{Band, Histogram, Panel, Population};
pub use lines::{Line, LinePoint, Lines, Mark};
pub use scatter::{Point, Scatter, Series};
pub use stacks::{Segment, Stack, Stacks};
pub use timeline::{Lane, Life, Tick, Timeline};

pub use scale::ScaleKind;
use std::fmt;

/// How a value is written on an axis.
pub type Label = fn(f64) -> String;

/// A class of the style sheet that gives a shape its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// What waited for a connection's setup.
    Fresh,
    /// What ran on a connection that was there.
    Reused,
    /// What is neither, or unknown.
    Plain,
    /// What failed or warns.
    Alarm,
    /// One of several series, told apart by colour and by dashes.
    Series(u8),
    /// A phase, by its place in `intact_ledger::Phase::ALL`.
    Phase(u8),
}

impl Tone {
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
}

/// A finished picture. Only this module makes one, and it escapes all text, so that it can stand in a page as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Svg(String);

impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What every picture is: something that can be drawn at a width, with words for who cannot see it.
pub trait Picture {
    /// Draws it `width` units wide, as high as it needs; `title` and `description` are what a screen reader says.
    fn draw(&self, width: f64, title: &str, description: &str) -> Svg;
}
