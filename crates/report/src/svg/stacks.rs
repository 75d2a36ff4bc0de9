//! Stacked bars: what a whole is made of, such as the phases of a request, cold above warm.

use super::canvas::{Anchor, Canvas, Rect, width_of};
use super::frame::{AXIS, Frame, LINE, Sample, heading, legend, share_a_line};
use super::scale::Scale;
use super::{Label, Picture, Svg, Tone};

/// Height of a bar.
const THICK: f64 = 20.0;

/// A part of a bar.
#[derive(Clone, Debug)]
pub struct Segment {
    /// What it is, for the legend.
    pub name: String,
    /// Its colour.
    pub tone: Tone,
    /// Its length.
    pub value: f64,
}

/// One bar.
#[derive(Clone, Debug)]
pub struct Stack {
    /// What it stands for.
    pub name: String,
    /// Its whole in words.
    pub words: String,
    /// Its parts, in the order in which they happen.
    pub segments: Vec<Segment>,
}

/// Bars over a common axis from zero.
#[derive(Clone, Debug)]
pub struct Stacks {
    /// The bars, from top to bottom.
    pub stacks: Vec<Stack>,
    /// How values are written.
    pub label: Label,
}

impl Picture for Stacks {
    fn draw(&self, width: f64, title: &str, description: &str) -> Svg {
        let mut canvas = Canvas::new(width);
        let longest = self
            .stacks
            .iter()
            .map(|stack| stack.segments.iter().map(|part| part.value).sum::<f64>())
            .fold(0.0, f64::max);
        let scale = Scale::from_zero(longest, (1.0, width - 8.0), 5);
        let mut entries: Vec<(Tone, &str)> = Vec::new();
        for part in self.stacks.iter().flat_map(|stack| &stack.segments) {
            if !entries.iter().any(|(tone, _)| *tone == part.tone) {
                entries.push((part.tone, &part.name));
            }
        }
        // in the order in which they happen, whichever bar has them
        entries.sort_by_key(|(tone, _)| tone.class());
        let first = legend(&mut canvas, 0.0, &entries, Sample::Area) + 4.0;
        let rows = || {
            let stacks = self.stacks.iter();
            stacks.map(|stack| (stack.name.as_str(), stack.words.as_str()))
        };
        let one_line = share_a_line(width, rows());
        let lines = if one_line { 1.0 } else { 2.0 };
        let row = lines * LINE + THICK + 10.0;
        let frame = Frame {
            left: 1.0,
            right: width - 8.0,
            top: first,
            bottom: first + row * self.stacks.len() as f64,
        };
        frame.x_axis(&mut canvas, &scale, self.label);
        for (nth, stack) in self.stacks.iter().enumerate() {
            let top = first + nth as f64 * row;
            let bar_top = heading(&mut canvas, top, (&stack.name, &stack.words), one_line);
            let mut sum = 0.0;
            for part in &stack.segments {
                let (from, to) = (scale.place(sum), scale.place(sum + part.value));
                sum += part.value;
                let rect = Rect {
                    x: from,
                    y: bar_top,
                    width: to - from,
                    height: THICK,
                };
                let told = (self.label)(part.value);
                let tip = format!("{}, {}: {told}", stack.name, part.name);
                canvas.rect(&format!("fill part {}", part.tone.class()), rect, &tip);
                if width_of(&told) + 6.0 < to - from {
                    let middle = (f64::midpoint(from, to), bar_top + 14.0);
                    let class = format!("inside on-{}", part.tone.class());
                    canvas.text(&class, middle, Anchor::Middle, &told);
                }
            }
        }
        canvas.finish(frame.bottom + AXIS, title, description)
    }
}
