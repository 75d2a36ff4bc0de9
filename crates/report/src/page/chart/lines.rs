//! Lines over time, rounds or concurrency, with intervals where there are some and marks where
//! something changed.

use super::canvas::{Anchor, Canvas, Svg, width_of};
use super::frame::{AXIS, Frame, LINE, Sample, legend, y_axis_width};
use super::letters::{drawn, height, named, names};
use super::scale::Scale;
use super::{Axis, ChartKind, ChartTable, ScaleKind, Tone, ends, row};
use crate::painted::{FAINT, PLAIN, Painted};

const HEIGHT: f64 = 190.0;
/// With more points than this a line goes without dots.
const DOTS: usize = 60;
/// Letters of a step, its value included.
const STEP: usize = 11;

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

impl ChartKind for Lines {
    fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.points.len() < 2)
    }

    fn svg(&self, width: f64, title: &str, description: &str) -> Svg {
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

    /// A row of heights per line, a step for each place on the horizontal axis; only of lines over
    /// a few steps of a logarithmic axis.
    fn letters(&self, columns: usize) -> Vec<Painted> {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let mut steps: Vec<f64> = points().map(|point| point.x).collect();
        steps.sort_by(f64::total_cmp);
        steps.dedup();
        let (names, name_width) = names(self.lines.iter().map(|line| &*line.name));
        let fits = name_width + 4 + steps.len() * STEP <= columns;
        let tallest = points().map(|point| point.y).fold(0.0, f64::max);
        if self.scale != ScaleKind::Logarithmic || !fits || tallest <= 0.0 {
            return Vec::new();
        }
        let rows = self.lines.iter().zip(names).map(|(line, name)| {
            let style = line.tone.style();
            steps.iter().fold(named(&name, name_width), |row, step| {
                let point = line.points.iter().find(|point| point.x == *step);
                let (letter, value) = point.map_or((' ', String::new()), |point| {
                    (height(point.y, tallest), self.y.label(point.y))
                });
                let width = STEP - 2;
                drawn(row, (style, letter)).and(PLAIN, &format!(" {value:width$}"))
            })
        });
        let labels = steps.iter().fold(String::new(), |labels, step| {
            format!("{labels}{:STEP$}", self.x.label(*step))
        });
        let axis = named("", name_width).and(FAINT, labels.trim_end());
        rows.chain([axis]).collect()
    }

    fn table(&self) -> Option<ChartTable> {
        let points = self.lines.iter().flat_map(|line| {
            let points = line.points.iter();
            points.map(|one| row([&line.name, ""], [one.x, one.y], ends(one.interval)))
        });
        let head = ["line", "", "x", "y", "low", "high"];
        Some((head, points.collect()))
    }
}

fn draw_line(canvas: &mut Canvas, line: &Line, x_scale: &Scale, y_scale: &Scale, axis: Axis) {
    let tone = line.tone.class();
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
