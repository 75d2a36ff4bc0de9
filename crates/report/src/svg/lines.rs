//! Lines over time, rounds or concurrency, with intervals where there are some and marks where
//! something changed.

use super::canvas::{Anchor, Canvas, width_of};
use super::frame::{AXIS, Frame, LINE, Sample, legend, y_axis_width};
use super::scale::Scale;
use super::{Svg, tone_class};
use crate::page::{Axis, Line, LinePoint, Lines, Tone};

const HEIGHT: f64 = 190.0;
/// With more points than this a line goes without dots.
const DOTS: usize = 60;

impl Lines {
    pub(super) fn draw(&self, width: f64, title: &str, description: &str) -> Svg {
        let mut canvas = Canvas::new(width);
        let points = || {
            self.lines
                .iter()
                .flat_map(|line| &line.points)
                .filter(|point| point.x.is_finite() && point.y.is_finite())
        };
        let entries: Vec<(Tone, &str)> = self
            .lines
            .iter()
            .map(|line| (line.tone, line.name.as_str()))
            .collect();
        // room for the words of marks, which stand above the lines
        let top = legend(&mut canvas, 0.0, &entries, Sample::Line)
            + if self.marks.is_empty() {
                4.0
            } else {
                LINE * self.marks.len().min(3) as f64
            };
        let places = (top + HEIGHT, top);
        let highest = |point: &LinePoint| point.interval.map_or(point.y, |ends| ends.1);
        let y_scale = Scale::of_values(points().map(highest), places);
        let frame = Frame {
            left: y_axis_width(&y_scale, HEIGHT, self.y),
            right: width - 1.0,
            top,
            bottom: top + HEIGHT,
        };
        let xs = |better: fn(f64, f64) -> f64| points().map(|point| point.x).reduce(better);
        let ends = (xs(f64::min).unwrap_or(0.0), xs(f64::max).unwrap_or(1.0));
        let x_scale = Scale::new(self.scale, ends, (frame.left + 8.0, frame.right - 10.0));
        frame.y_axis(&mut canvas, &y_scale, self.y);
        frame.x_axis(&mut canvas, &x_scale, self.x);
        for (nth, mark) in self.marks.iter().enumerate() {
            let x = x_scale.place(mark.x);
            let y = frame.top - 4.0 - LINE * (nth % 3) as f64;
            canvas.line("change", (x, y), (x, frame.bottom));
            // to the left of its line where there is no room to the right
            let (left, anchor) = if x + 4.0 + width_of(&mark.words) <= width {
                (x + 4.0, Anchor::Start)
            } else {
                (x - 4.0, Anchor::End)
            };
            canvas.text("note alarm-text", (left, y), anchor, &mark.words);
        }
        for line in &self.lines {
            draw_line(&mut canvas, line, &x_scale, &y_scale, self.y);
        }
        canvas.finish(frame.bottom + AXIS, title, description)
    }
}

fn draw_line(canvas: &mut Canvas, line: &Line, x_scale: &Scale, y_scale: &Scale, axis: Axis) {
    let tone = tone_class(line.tone);
    let points: Vec<&LinePoint> = line
        .points
        .iter()
        .filter(|point| point.x.is_finite() && point.y.is_finite())
        .collect();
    let place = |point: &LinePoint| (x_scale.place(point.x), y_scale.place(point.y));
    let joined = |a: &&LinePoint, b: &&LinePoint| line.reach.is_none_or(|reach| b.x - a.x <= reach);
    for piece in points.chunk_by(joined) {
        let places: Vec<(f64, f64)> = piece.iter().map(|point| place(point)).collect();
        canvas.path(&format!("curve {tone}"), &places, false);
    }
    for point in &line.points {
        if let Some((low, high)) = point.interval {
            let x = x_scale.place(point.x);
            let (low, high) = (y_scale.place(low), y_scale.place(high));
            canvas.line("whisker", (x, low), (x, high));
        }
    }
    if points.len() <= DOTS {
        for point in points {
            let tip = format!("{}: {}", line.name, axis.label(point.y));
            // here the lines distinguish the shapes
            canvas.dot(line.tone, place(point), &tip);
        }
    }
}
