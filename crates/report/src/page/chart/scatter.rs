//! Scatters: single values in their order.

use super::canvas::{Anchor, Canvas, Svg, fit, fit_bold, width_of};
use super::frame::{AXIS, Frame, LINE, y_axis_width};
use super::letters::{drawn, height, named, names};
use super::scale::Scale;
use super::{Axis, ChartKind, ScaleKind, Tone};
use crate::painted::{FAINT, Painted};

/// From how many times the 95th percentile on a value is far above the others.
const FAR: f64 = 3.0;

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

impl ChartKind for Scatter {
    fn is_empty(&self) -> bool {
        self.0.iter().all(|one| one.points.is_empty())
    }

    fn svg(&self, width: f64, title: &str, description: &str) -> Svg {
        let mut canvas = Canvas::new(width);
        let height = if self.0.len() == 1 { 190.0 } else { 96.0 };
        let points = || {
            let points = self.0.iter().flat_map(|series| &series.points);
            points.filter(|point| point.x.is_finite() && point.y.is_finite())
        };
        let y_scale = |places| Scale::of_values(points().map(|point| point.y), places);
        let left = y_axis_width(&y_scale((height, 0.0)), height, Axis::Time);
        let xs = |better: fn(f64, f64) -> f64| points().map(|point| point.x).reduce(better);
        let ends = (xs(f64::min).unwrap_or(0.0), xs(f64::max).unwrap_or(1.0));
        let x_scale = Scale::new(ScaleKind::Linear, ends, (left + 5.0, width - 6.0));
        let mut top = 0.0;
        for (nth, cloud) in self.0.iter().enumerate() {
            if !cloud.name.is_empty() {
                let name = fit_bold(&cloud.name, width);
                canvas.text("strong", (0.0, top + 12.0), Anchor::Start, &name);
                top += LINE + 8.0;
            }
            let frame = Frame {
                left,
                right: width - 1.0,
                top,
                bottom: top + height,
            };
            let scale = y_scale((frame.bottom, frame.top));
            frame.y_axis(&mut canvas, &scale, Axis::Time);
            if nth + 1 == self.0.len() {
                frame.x_axis(&mut canvas, &x_scale, Axis::Count);
            }
            draw_points(&mut canvas, cloud, &x_scale, &scale);
            for (level, words) in &cloud.levels {
                let y = scale.place(*level);
                canvas.line("level", (frame.left, y), (frame.right, y));
                let words = fit(words, frame.right - frame.left);
                let x = (frame.right - width_of(&words)).max(frame.left);
                let taken = |other: &(f64, String)| {
                    let distance = y - scale.place(other.0);
                    distance > 0.0 && distance < 26.0
                };
                let room_above = y - 14.0 > frame.top && !cloud.levels.iter().any(taken);
                let y = if room_above { y - 5.0 } else { y + 13.0 };
                canvas.text("note halo", (x, y), Anchor::Start, &words);
            }
            top = frame.bottom + 16.0;
        }
        canvas.finish(top - 16.0 + AXIS, title, description)
    }

    /// A letter per value in order, all series to one height.
    fn letters(&self, columns: usize) -> Vec<Painted> {
        let points = self.0.iter().flat_map(|series| &series.points);
        let Some((full, tallest)) = full_height(points.map(|point| point.y)) else {
            return Vec::new();
        };
        let (names, name_width) = names(self.0.iter().map(|series| &*series.name));
        let room = columns.saturating_sub(name_width + 4).max(10);
        let mut lines = Vec::new();
        for (series, name) in self.0.iter().zip(names) {
            let points = series.points.iter().take(room);
            let letters = points.map(|point| {
                let letter = match point.tone {
                    Tone::Alarm => '×',
                    _ if point.y > full => '↑',
                    _ => height(point.y, full),
                };
                (point.tone.style(), letter)
            });
            lines.push(letters.fold(named(&name, name_width), drawn));
        }
        let mut heights = format!("  full height: {}", Axis::Time.label(full));
        if tallest > full {
            heights.push_str(&format!("; ↑ more, up to {}", Axis::Time.label(tallest)));
        }
        lines.push(Painted::new(FAINT, &heights));
        lines
    }
}

fn draw_points(canvas: &mut Canvas, cloud: &Series, x: &Scale, y: &Scale) {
    for point in &cloud.points {
        let tip = format!(
            "{}: {}",
            Axis::Count.label(point.x),
            Axis::Time.label(point.y)
        );
        let at = (x.place(point.x), y.place(point.y));
        canvas.mark(point.tone, point.hollow, at, &tip);
    }
}

/// The value that fills a line, and the largest. A few values far above the others do not set the
/// height, or the others would look alike.
fn full_height(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut sorted: Vec<f64> = values.filter(|value| *value > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    let tallest = *sorted.last()?;
    let most = sorted[(sorted.len() - 1) * 19 / 20];
    let full = if tallest > FAR * most { most } else { tallest };
    Some((full, tallest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Point, Tone};

    fn scatter(count: usize) -> Scatter {
        Scatter(vec![Series {
            name: String::new(),
            points: (0..count)
                .map(|nth| Point {
                    x: nth as f64,
                    y: 10.0 + (nth * 7919 % 90) as f64,
                    tone: Tone::Reused,
                    hollow: false,
                })
                .collect(),
            levels: Vec::new(),
        }])
    }

    #[test]
    fn values_that_are_no_numbers_do_not_spoil_the_picture() {
        let mut scatter = scatter(3);
        scatter.0[0].points[1].y = f64::NAN;
        let svg = scatter.svg(300.0, "t", "d").to_string();
        assert!(!svg.contains("NaN\" "), "{svg}");
    }

    #[test]
    fn an_outlier_does_not_set_the_height_of_a_scatter() {
        let values = |outlier: f64| (0..99).map(|nth| 1.0 + f64::from(nth % 5)).chain([outlier]);
        assert_eq!(full_height(values(800.0)), Some((5.0, 800.0)));
        // values that are near each other fill the line
        assert_eq!(full_height(values(9.0)), Some((9.0, 9.0)));
        assert_eq!(full_height([0.0].into_iter()), None);
        // where a tenth of the values is high, that is the height
        let tiers = (0..100u32).map(|nth| if nth.is_multiple_of(10) { 40.0 } else { 1.0 });
        assert_eq!(full_height(tiers), Some((40.0, 40.0)));
    }
}
