//! Scatters: values in the order or at the time at which they happened. Above 5,000 points a grid of densities, so that a page stays
//! small and a crowd stays readable.

use super::canvas::{Anchor, Canvas, Rect, fit, fit_bold, width_of};
use super::frame::{AXIS, Frame, LINE, y_axis_width};
use super::scale::Scale;
use super::{Picture, Svg, tone_class};
use crate::page::{Axis, Point, ScaleKind, Scatter, Series};
use std::collections::BTreeMap;

/// From here on points are drawn as densities.
const CROWD: usize = 5_000;
/// Side of a cell of the density grid.
const CELL: f64 = 5.0;
/// Above this ratio of the values' ends the vertical axis is logarithmic.
const WIDE: f64 = 40.0;

trait Places {
    fn points(&self) -> impl Iterator<Item = &Point>;
    fn y_scale(&self, top: f64, bottom: f64) -> Option<Scale>;
}

impl Places for Scatter {
    fn points(&self) -> impl Iterator<Item = &Point> {
        self.0
            .iter()
            .flat_map(|cloud| &cloud.points)
            .filter(|point| point.x.is_finite() && point.y.is_finite())
    }

    /// The vertical scale of a panel between two places.
    fn y_scale(&self, top: f64, bottom: f64) -> Option<Scale> {
        let high = self.points().map(|point| point.y).reduce(f64::max)?;
        let low = self.points().map(|point| point.y).reduce(f64::min)?;
        if low > 0.0 && high > low * WIDE {
            let ends = (low / 1.3, high * 1.3);
            return Some(Scale::new(ScaleKind::Logarithmic, ends, (bottom, top)));
        }
        let ticks = ((bottom - top) / 28.0) as usize;
        Some(Scale::from_zero(high * 1.04, (bottom, top), ticks))
    }
}

impl Picture for Scatter {
    fn draw(&self, width: f64, title: &str, description: &str) -> Svg {
        let mut canvas = Canvas::new(width);
        let height = if self.0.len() == 1 { 190.0 } else { 96.0 };
        let Some(scale) = self.y_scale(0.0, height) else {
            canvas.text("label", (0.0, LINE), Anchor::Start, "nothing to show");
            return canvas.finish(2.0 * LINE, title, description);
        };
        let left = y_axis_width(&scale, height, Axis::Time);
        let xs = |better: fn(f64, f64) -> f64| self.points().map(|point| point.x).reduce(better);
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
            let Some(scale) = self.y_scale(frame.top, frame.bottom) else {
                continue;
            };
            frame.y_axis(&mut canvas, &scale, Axis::Time);
            if nth + 1 == self.0.len() {
                frame.x_axis(&mut canvas, &x_scale, Axis::Count);
            }
            if cloud.points.len() > CROWD {
                draw_densities(&mut canvas, cloud, &x_scale, &scale);
            } else {
                draw_points(&mut canvas, cloud, &x_scale, &scale);
            }
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

/// How often points fall into each cell; a cell has the colour of most of them.
fn draw_densities(canvas: &mut Canvas, cloud: &Series, x: &Scale, y: &Scale) {
    let mut cells: BTreeMap<(i32, i32), BTreeMap<String, u64>> = BTreeMap::new();
    for point in &cloud.points {
        let cell = (
            (x.place(point.x) / CELL) as i32,
            (y.place(point.y) / CELL) as i32,
        );
        *cells
            .entry(cell)
            .or_default()
            .entry(tone_class(point.tone))
            .or_default() += 1;
    }
    let fullest = cells
        .values()
        .map(|tones| tones.values().sum::<u64>())
        .max()
        .unwrap_or(1) as f64;
    for ((column, row), tones) in &cells {
        let count: u64 = tones.values().sum();
        let Some((tone, _)) = tones.iter().max_by_key(|(_, count)| **count) else {
            continue;
        };
        // five steps of the logarithm: one point must be seen beside ten thousand
        let step = ((count as f64 + 1.0).ln() / (fullest + 1.0).ln() * 5.0).ceil() as u8;
        let cell = Rect {
            x: f64::from(*column) * CELL,
            y: f64::from(*row) * CELL,
            width: CELL,
            height: CELL,
        };
        canvas.rect(&format!("fill {tone} d{}", step.clamp(1, 5)), cell, "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Tone;

    fn scatter(count: usize) -> Scatter {
        Scatter {
            series: vec![Series {
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
            }],
        }
    }

    #[test]
    fn a_crowd_is_drawn_as_densities_and_stays_small() {
        let few = scatter(CROWD).draw(560.0, "t", "d").to_string();
        assert!(few.contains("<circle"));
        let many = scatter(100_000).draw(560.0, "t", "d").to_string();
        assert!(!many.contains("<circle"));
        assert!(many.len() < 400_000, "{}", many.len());
    }

    #[test]
    fn values_that_are_no_numbers_do_not_spoil_the_picture() {
        let mut scatter = scatter(3);
        scatter.series[0].points[1].y = f64::NAN;
        let svg = scatter.draw(300.0, "t", "d").to_string();
        assert!(!svg.contains("NaN\" "), "{svg}");
    }
}
