//! What the lines of a chart on a terminal are made of.

use crate::painted::{PLAIN, Painted, Style, shorten};
use intact_units::foreign_text::escape;

const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Letters that a name gets at most.
const NAME: usize = 34;

/// The beginning of a line: a name in a column of this width.
pub(super) fn named(name: &str, width: usize) -> Painted {
    Painted::new(PLAIN, &format!("  {name:width$}  "))
}

/// The line with a letter of a drawing behind it.
pub(super) fn drawn(line: Painted, (style, letter): (Style, char)) -> Painted {
    line.and(style, letter.encode_utf8(&mut [0; 4]))
}

/// A letter as high as `value` on a scale up to `most`.
pub(super) fn height(value: f64, most: f64) -> char {
    HEIGHTS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1]
}

pub(super) fn names<'a>(names: impl Iterator<Item = &'a str>) -> (Vec<String>, usize) {
    let names: Vec<String> = names.map(|name| shorten(&escape(name), NAME)).collect();
    let width = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0);
    (names, width)
}
