//! What stands around the data: axes with ticks, and the legend.

use super::canvas::{Anchor, Canvas, fit, fit_bold, width_of, width_of_bold};
use super::scale::Scale;
use super::{Axis, Tone};

/// Height of a line of text.
pub(super) const LINE: f64 = 16.0;
/// Height that an axis with tick labels below it takes.
pub(super) const AXIS: f64 = 22.0;

/// The rectangle that data is drawn in.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame {
    /// The horizontal axis below, with grid lines through the frame. Labels that would touch are
    /// left out.
    pub(super) fn x_axis(&self, canvas: &mut Canvas, scale: &Scale, axis: Axis) {
        let wanted = ((self.right - self.left) / 62.0).max(2.0) as usize;
        canvas.line("axis", (self.left, self.bottom), (self.right, self.bottom));
        let mut free = f64::NEG_INFINITY;
        for tick in scale.ticks(wanted) {
            let x = scale.place(tick);
            canvas.line("grid", (x, self.top), (x, self.bottom));
            let text = axis.label(tick);
            let half = width_of(&text) / 2.0;
            let middle = x.clamp(half, canvas.width() - half);
            if middle - half > free {
                canvas.text("tick", (middle, self.bottom + 15.0), Anchor::Middle, &text);
                free = middle + half + 4.0;
            }
        }
    }

    /// The vertical axis to the left, with grid lines through the frame.
    pub(super) fn y_axis(&self, canvas: &mut Canvas, scale: &Scale, axis: Axis) {
        let wanted = ((self.bottom - self.top) / 28.0).max(1.0) as usize;
        for tick in scale.ticks(wanted) {
            let (y, text) = (scale.place(tick), axis.label(tick));
            // there is no half of a thing that is counted
            if text.is_empty() {
                continue;
            }
            canvas.line("grid", (self.left, y), (self.right, y));
            canvas.text("tick", (self.left - 6.0, y + 4.0), Anchor::End, &text);
        }
    }
}

/// Width that the labels of a vertical axis need, gap included.
pub(super) fn y_axis_width(scale: &Scale, height: f64, axis: Axis) -> f64 {
    let wanted = (height / 28.0).max(1.0) as usize;
    scale
        .ticks(wanted)
        .into_iter()
        .map(|tick| width_of(&axis.label(tick)))
        .fold(0.0, f64::max)
        + 8.0
}

/// Whether all names fit on one line with their words, or the words need one of their own.
pub(super) fn share_a_line<'a>(
    width: f64,
    mut rows: impl Iterator<Item = (&'a str, &'a str)>,
) -> bool {
    rows.all(|(name, words)| width_of_bold(name) + 14.0 + width_of(words) <= width)
}

/// The heading of a bar: its name, and its words to the right or below. Returns where the bar may
/// begin.
pub(super) fn heading(
    canvas: &mut Canvas,
    top: f64,
    (name, words): (&str, &str),
    one_line: bool,
) -> f64 {
    let width = canvas.width();
    let name = fit_bold(name, width - 1.0);
    canvas.text("strong halo", (1.0, top + 12.0), Anchor::Start, &name);
    if one_line {
        canvas.text("label halo", (width - 1.0, top + 12.0), Anchor::End, words);
        return top + LINE + 2.0;
    }
    let words = fit(words, width - 1.0);
    let at = (1.0, top + 12.0 + LINE);
    canvas.text("label halo", at, Anchor::Start, &words);
    top + 2.0 * LINE + 2.0
}

/// What a legend shows of a series.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sample {
    /// Its colour.
    Area,
    /// A piece of its line, dashes included.
    Line,
}

/// A legend in as many lines as it needs, from `top` down. Returns where it ends.
pub(super) fn legend(
    canvas: &mut Canvas,
    top: f64,
    entries: &[(Tone, &str)],
    sample: Sample,
) -> f64 {
    let sample_width = match sample {
        Sample::Area => 10.0,
        Sample::Line => 24.0,
    };
    let (mut x, mut y) = (0.0, top);
    for (tone, words) in entries {
        let wide = sample_width + 6.0 + width_of(words) + 12.0;
        if x > 0.0 && x + wide - 12.0 > canvas.width() {
            x = 0.0;
            y += LINE + 2.0;
        }
        if sample == Sample::Area {
            let class = format!("fill {}", tone.class());
            canvas.rect(&class, (x, y + 2.0), (sample_width, 10.0), "");
        } else {
            let ends = [(x, y + 7.0), (x + sample_width, y + 7.0)];
            canvas.path(&format!("curve {}", tone.class()), &ends, false);
        }
        let words_at = (x + sample_width + 5.0, y + 11.0);
        let words = fit(words, canvas.width() - words_at.0);
        canvas.text("label", words_at, Anchor::Start, &words);
        x += wide;
    }
    y + LINE + 4.0
}
