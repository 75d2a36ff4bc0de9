//! Horizontal bars: whole with their intervals, or stacked from parts such as the phases of a
//! request.

use super::canvas::{Anchor, Canvas, width_of};
use super::frame::{AXIS, Frame, LINE, Sample, heading, legend, share_a_line};
use super::scale::Scale;
use super::{Svg, tone_class};
use crate::page::{Axis, Bar, Bars, Segment, Tone};

/// Height of a bar.
const THICK: f64 = 18.0;

impl Bars {
    pub(super) fn draw(&self, width: f64, title: &str, description: &str) -> Svg {
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
        entries.sort_by_key(|(tone, _)| tone_class(*tone));
        legend(canvas, 0.0, &entries, Sample::Area) + 4.0
    }
}

fn draw_part(canvas: &mut Canvas, bar: &Bar, part: &Segment, (from, to): (f64, f64), y: f64) {
    let (at, size) = ((from, y), (to - from, THICK));
    let tone = tone_class(part.tone);
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
