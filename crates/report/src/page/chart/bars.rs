//! Horizontal bars: whole with their intervals, or stacked from parts such as the phases of a
//! request.

use super::canvas::{Anchor, Canvas, Svg, width_of};
use super::frame::{AXIS, Frame, LINE, Sample, heading, legend, share_a_line};
use super::letters::{named, names};
use super::scale::Scale;
use super::{Axis, ChartKind, ChartTable, Tone, ends, row};
use crate::painted::{FAINT, PLAIN, Painted};

/// Height of a bar.
const THICK: f64 = 18.0;
/// Letters that a bar gets at most.
const BAR: usize = 60;

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

impl ChartKind for Bars {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn svg(&self, width: f64, title: &str, description: &str) -> Svg {
        let mut canvas = Canvas::new(width);
        let end = |bar: &Bar| {
            bar.interval
                .map_or(bar.value(), |ends| ends.1.max(bar.value()))
        };
        let longest = self.0.iter().map(end).fold(0.0, f64::max);
        let scale = Scale::from_zero(longest, (1.0, width - 8.0), 5);
        let first = self.draw_legend(&mut canvas);
        let rows = self.0.iter().map(|bar| (&*bar.name, &*bar.words));
        let one_line = share_a_line(width, rows);
        let row = if one_line { LINE } else { 2.0 * LINE } + THICK + 10.0;
        let frame = Frame {
            left: 1.0,
            right: width - 8.0,
            top: first,
            bottom: first + row * self.0.len() as f64,
        };
        frame.x_axis(&mut canvas, &scale, Axis::Time);
        for (nth, bar) in self.0.iter().enumerate() {
            let top = first + nth as f64 * row;
            let top = heading(&mut canvas, top, (&bar.name, &bar.words), one_line);
            let mut sum = 0.0;
            for part in &bar.parts {
                let (from, to) = (scale.place(sum), scale.place(sum + part.value));
                sum += part.value;
                draw_part(&mut canvas, bar, part, (from, to), top);
            }
            if let Some((low, high)) = bar.interval {
                let y = top + THICK / 2.0;
                let (low, high) = (scale.place(low), scale.place(high));
                canvas.line("whisker", (low, y), (high, y));
                for x in [low, high] {
                    canvas.line("whisker", (x, y - 5.0), (x, y + 5.0));
                }
            }
        }
        canvas.finish(frame.bottom + AXIS, title, description)
    }

    fn letters(&self, columns: usize) -> Vec<Painted> {
        let (names, name_width) = names(self.0.iter().map(|bar| &*bar.name));
        let words = self.0.iter().map(|bar| bar.words.chars().count());
        let room = columns.saturating_sub(name_width + words.max().unwrap_or(0) + 6);
        let room = room.clamp(10, BAR) as f64;
        let longest = self.0.iter().map(|bar| bar.value()).fold(0.0, f64::max);
        let mut legend: Vec<(char, &str)> = Vec::new();
        let mut lines = Vec::new();
        for (bar, name) in self.0.iter().zip(names) {
            let mut line = named(&name, name_width);
            for part in &bar.parts {
                let letter = letter(&mut legend, &part.name).to_string();
                let times = (part.value / longest.max(1e-9) * room).round() as usize;
                line = line.and(part.tone.style(), &letter.repeat(times));
            }
            lines.push(line.and(PLAIN, &format!(" {}", bar.words)));
        }
        if !legend.is_empty() {
            let parts: Vec<String> = legend
                .iter()
                .map(|(letter, name)| format!("{letter} {name}"))
                .collect();
            lines.push(Painted::new(FAINT, &format!("  {}", parts.join(", "))));
        }
        lines
    }

    fn table(&self) -> Option<ChartTable> {
        let bars = self.0.iter().flat_map(|bar| {
            let parts = bar.parts.iter();
            parts.map(|part| {
                let figures = [part.value, bar.value()];
                row([&bar.name, &part.name], figures, ends(bar.interval))
            })
        });
        let head = ["bar", "part", "part_ms", "ms", "low_ms", "high_ms"];
        Some((head, bars.collect()))
    }
}

impl Bars {
    /// What the parts are, where they have names. Returns where the bars may begin.
    fn draw_legend(&self, canvas: &mut Canvas) -> f64 {
        let mut entries: Vec<(Tone, &str)> = Vec::new();
        for part in self.0.iter().flat_map(|bar| &bar.parts) {
            if !part.name.is_empty() && !entries.iter().any(|(tone, _)| *tone == part.tone) {
                entries.push((part.tone, &part.name));
            }
        }
        if entries.is_empty() {
            return 0.0;
        }
        // in the order in which they happen, whichever bar has them
        entries.sort_by_key(|(tone, _)| tone.class());
        legend(canvas, 0.0, &entries, Sample::Area) + 4.0
    }
}

fn draw_part(canvas: &mut Canvas, bar: &Bar, part: &Segment, (from, to): (f64, f64), y: f64) {
    let (at, size) = ((from, y), (to - from, THICK));
    let tone = part.tone.class();
    if part.name.is_empty() {
        let tip = format!("{}: {}", bar.name, bar.words);
        canvas.rect(&format!("fill {tone}"), at, size, &tip);
        return;
    }
    let value = Axis::Time.label(part.value);
    let tip = format!("{}, {}: {value}", bar.name, part.name);
    canvas.rect(&format!("fill part {tone}"), at, size, &tip);
    if width_of(&value) + 6.0 < to - from {
        let middle = (f64::midpoint(from, to), y + 13.0);
        canvas.text(&format!("inside on-{tone}"), middle, Anchor::Middle, &value);
    }
}

/// The letter of a part: the first of its name that no other part has.
fn letter<'a>(legend: &mut Vec<(char, &'a str)>, name: &'a str) -> char {
    if let Some((letter, _)) = legend.iter().find(|(_, known)| *known == name) {
        return *letter;
    }
    let letters = || name.chars().map(|letter| letter.to_ascii_lowercase());
    let free = letters().find(|letter| !legend.iter().any(|(taken, _)| taken == letter));
    let Some(letter) = free.or(letters().next()) else {
        return '█';
    };
    legend.push((letter, name));
    letter
}
