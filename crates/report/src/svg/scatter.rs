//! Scatters: single values in their order.

use super::Svg;
use super::canvas::{Anchor, Canvas, fit, fit_bold, width_of};
use super::frame::{AXIS, Frame, LINE, y_axis_width};
use super::scale::Scale;
use crate::page::{Axis, ScaleKind, Scatter, Series};

impl Scatter {
    pub(super) fn draw(&self, width: f64, title: &str, description: &str) -> Svg {
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
        let svg = scatter.draw(300.0, "t", "d").to_string();
        assert!(!svg.contains("NaN\" "), "{svg}");
    }
}
