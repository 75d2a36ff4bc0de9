//! Horizontal bars, each with its interval where there is one.

use super::canvas::{Canvas, Rect};
use super::frame::{AXIS, Frame, LINE, heading, share_a_line};
use super::scale::Scale;
use super::{Label, Picture, Svg, Tone};

/// Height of a bar.
const THICK: f64 = 16.0;

/// One bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// What it stands for.
    pub name: String,
    /// Its colour.
    pub tone: Tone,
    /// Its length.
    pub value: f64,
    /// The ends of its interval.
    pub interval: Option<(f64, f64)>,
    /// The value in words, interval included.
    pub words: String,
}

/// Bars over a common axis from zero.
#[derive(Clone, Debug)]
pub struct Bars {
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
    /// How values are written.
    pub label: Label,
}

impl Picture for Bars {
    fn draw(&self, width: f64, title: &str, description: &str) -> Svg {
        let mut canvas = Canvas::new(width);
        let longest = self
            .bars
            .iter()
            .map(|bar| bar.interval.map_or(bar.value, |ends| ends.1.max(bar.value)))
            .fold(0.0, f64::max);
        let scale = Scale::from_zero(longest, (1.0, width - 8.0), 5);
        let rows = || {
            let bars = self.bars.iter();
            bars.map(|bar| (bar.name.as_str(), bar.words.as_str()))
        };
        let one_line = share_a_line(width, rows());
        let lines = if one_line { 1.0 } else { 2.0 };
        let row = lines * LINE + THICK + 10.0;
        let frame = Frame {
            left: 1.0,
            right: width - 8.0,
            top: 0.0,
            bottom: row * self.bars.len() as f64,
        };
        frame.x_axis(&mut canvas, &scale, self.label);
        for (nth, bar) in self.bars.iter().enumerate() {
            let top = nth as f64 * row;
            let first = heading(&mut canvas, top, (&bar.name, &bar.words), one_line);
            let end = scale.place(bar.value);
            let rect = Rect {
                x: 1.0,
                y: first,
                width: end - 1.0,
                height: THICK,
            };
            let tip = format!("{}: {}", bar.name, bar.words);
            canvas.rect(&format!("fill {}", bar.tone.class()), rect, &tip);
            if let Some((low, high)) = bar.interval {
                let y = first + THICK / 2.0;
                let (low, high) = (scale.place(low), scale.place(high));
                canvas.line("whisker", (low, y), (high, y));
                for x in [low, high] {
                    canvas.line("whisker", (x, y - 5.0), (x, y + 5.0));
                }
            }
        }
        canvas.finish(frame.bottom + AXIS, title, description)
    }
}
