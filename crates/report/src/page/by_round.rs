//! The picture of a run round by round: a line for each variant.

use crate::svg::{self, Tone};
use intact_units::number::tick;

/// The line of the `nth` variant, by round and milliseconds.
pub(super) fn line(nth: usize, name: &str, rounds: impl Iterator<Item = (u32, f64)>) -> svg::Line {
    svg::Line {
        name: name.to_owned(),
        tone: Tone::Series(nth as u8),
        points: rounds
            .map(|(round, ms)| svg::LinePoint {
                x: f64::from(round),
                y: ms,
                interval: None,
            })
            .collect(),
        reach: None,
    }
}

/// The picture; `None` where no line has two rounds.
pub(super) fn picture(lines: Vec<svg::Line>, marks: Vec<svg::Mark>) -> Option<svg::Lines> {
    let has_any = lines.iter().any(|line| line.points.len() >= 2);
    has_any.then_some(svg::Lines {
        lines,
        marks,
        x_spread: svg::ScaleKind::Linear,
        x_label: |round| format!("{round:.0}"),
        y_label: tick,
    })
}
