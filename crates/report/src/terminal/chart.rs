//! Charts in lines of letters: bars, stacked bars, distributions, single values and lines over a
//! few steps. Lines over time and timelines are for files.

use super::painted::{FAINT, PLAIN, Painted, Style};
use super::{TerminalOptions, escape, of_tone, shorten};
use crate::page::{Axis, Bars, ChartKind, Histogram, Lines, ScaleKind, Scatter, Tone};

const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Letters that a name gets at most.
const NAME: usize = 34;
/// Letters that a drawing needs next to its figures, and that it gets at most.
const DRAWING: (usize, usize) = (20, 100);
/// Letters that a bar gets at most.
const BAR: usize = 60;

/// The lines of a chart; none for a kind that needs a picture.
pub(super) fn draw(kind: &ChartKind, options: TerminalOptions) -> Vec<Painted> {
    match kind {
        ChartKind::Bars(bars) => draw_bars(bars, options),
        ChartKind::Histogram(histogram) => draw_histogram(histogram, options),
        ChartKind::Scatter(scatter) => draw_scatter(scatter, options),
        ChartKind::Lines(lines) => draw_steps(lines, options),
        ChartKind::Timeline(_) => Vec::new(),
    }
}

/// The beginning of a line: a name in a column of this width.
fn named(name: &str, width: usize) -> Painted {
    Painted::new(PLAIN, &format!("  {name:width$}  "))
}

/// The line with a letter of a drawing behind it.
fn drawn(line: Painted, (style, letter): (Style, char)) -> Painted {
    line.and(style, letter.encode_utf8(&mut [0; 4]))
}

/// A letter as high as `value` on a scale up to `most`.
fn height(value: f64, most: f64) -> char {
    HEIGHTS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1]
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> (Vec<String>, usize) {
    let names: Vec<String> = names.map(|name| shorten(&escape(name), NAME)).collect();
    let width = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0);
    (names, width)
}

fn draw_bars(bars: &Bars, options: TerminalOptions) -> Vec<Painted> {
    let (names, name_width) = names(bars.0.iter().map(|bar| &*bar.name));
    let words = bars.0.iter().map(|bar| bar.words.chars().count());
    let room = options
        .width
        .saturating_sub(name_width + words.max().unwrap_or(0) + 6);
    let room = room.clamp(10, BAR) as f64;
    let longest = bars.0.iter().map(|bar| bar.value()).fold(0.0, f64::max);
    let mut legend: Vec<(char, &str)> = Vec::new();
    let mut lines = Vec::new();
    for (bar, name) in bars.0.iter().zip(names) {
        let mut line = named(&name, name_width);
        for part in &bar.parts {
            let letter = letter(&mut legend, &part.name).to_string();
            let times = (part.value / longest.max(1e-9) * room).round() as usize;
            line = line.and(of_tone(part.tone), &letter.repeat(times));
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

/// A row per population on a common logarithmic scale, each to its own height.
fn draw_histogram(histogram: &Histogram, options: TerminalOptions) -> Vec<Painted> {
    let rows = histogram.populations().map(|(panel, one)| {
        let names = [panel.name.as_str(), one.name.as_str()];
        let names = names.into_iter().filter(|name| !name.is_empty());
        (names.collect::<Vec<&str>>().join(", "), one)
    });
    let rows: Vec<_> = rows.collect();
    let buckets = rows.iter().flat_map(|(_, one)| &one.buckets);
    let ends =
        buckets
            .filter(|bucket| bucket.2 > 0)
            .fold(None, |ends: Option<(f64, f64)>, bucket| {
                let (low, high) = (bucket.0.max(1e-4), bucket.1);
                Some(ends.map_or((low, high), |ends| (ends.0.min(low), ends.1.max(high))))
            });
    let Some((least, most)) = ends.filter(|ends| ends.1.is_finite()) else {
        return Vec::new();
    };
    let (names, name_width) = names(rows.iter().map(|(name, _)| name.as_str()));
    let words = rows.iter().map(|(_, one)| one.words.chars().count());
    let words_width = words.max().unwrap_or(0);
    let left = options.width.saturating_sub(name_width + words_width + 6);
    let fits = left >= DRAWING.0;
    let room = if fits {
        left
    } else {
        options.width.saturating_sub(name_width + 4)
    };
    let columns = room.clamp(DRAWING.0, DRAWING.1);
    let ratio = (most / least).ln().max(1e-9);
    let place = |ms: f64| {
        let share = (ms.max(least) / least).ln() / ratio;
        ((share * columns as f64) as usize).min(columns - 1)
    };
    let mut lines = Vec::new();
    for ((_, one), name) in rows.iter().zip(&names) {
        let mut counts = vec![0.0f64; columns];
        for &(low, high, count) in &one.buckets {
            counts[place(f64::midpoint(low, high))] += count as f64;
        }
        let tallest = counts.iter().copied().fold(0.0, f64::max);
        let letters = counts.into_iter().map(|count| {
            let is_empty = count == 0.0;
            let letter = if is_empty {
                ' '
            } else {
                height(count, tallest)
            };
            (of_tone(one.tone), letter)
        });
        let line = letters.fold(named(name, name_width), drawn);
        lines.push(if fits {
            line.and(PLAIN, &format!("  {}", one.words))
        } else {
            line
        });
    }
    lines.push(scale(
        name_width,
        columns,
        [least, (least * most).sqrt(), most],
    ));
    if !fits {
        let words = rows.iter().zip(&names);
        let words = words.map(|((_, one), name)| format!("  {name}: {}", one.words));
        lines.extend(words.map(|words| Painted::new(PLAIN, &words)));
    }
    lines
}

/// The line with the values at both ends and in the middle.
fn scale(indent: usize, columns: usize, values: [f64; 3]) -> Painted {
    let [left, middle, right] = values.map(|value| Axis::Time.label(value));
    let used: usize = [&left, &middle, &right]
        .map(|one| one.chars().count())
        .iter()
        .sum();
    let gap = columns.saturating_sub(used);
    let scale = format!(
        "{left}{:first$}{middle}{:second$}{right}",
        "",
        "",
        first = gap / 2,
        second = gap - gap / 2
    );
    named("", indent).and(FAINT, &scale)
}

/// Letters of a step, its value included.
const STEP: usize = 11;

/// A row of heights per line, a step for each place on the horizontal axis; only of lines over a
/// few steps of a logarithmic axis.
fn draw_steps(lines: &Lines, options: TerminalOptions) -> Vec<Painted> {
    let points = || lines.lines.iter().flat_map(|line| &line.points);
    let mut steps: Vec<f64> = points().map(|point| point.x).collect();
    steps.sort_by(f64::total_cmp);
    steps.dedup();
    let (names, name_width) = names(lines.lines.iter().map(|line| &*line.name));
    let fits = name_width + 4 + steps.len() * STEP <= options.width;
    let tallest = points().map(|point| point.y).fold(0.0, f64::max);
    if lines.scale != ScaleKind::Logarithmic || !fits || tallest <= 0.0 {
        return Vec::new();
    }
    let rows = lines.lines.iter().zip(names).map(|(line, name)| {
        let style = of_tone(line.tone);
        steps.iter().fold(named(&name, name_width), |row, step| {
            let point = line.points.iter().find(|point| point.x == *step);
            let (letter, value) = point.map_or((' ', String::new()), |point| {
                (height(point.y, tallest), lines.y.label(point.y))
            });
            let width = STEP - 2;
            drawn(row, (style, letter)).and(PLAIN, &format!(" {value:width$}"))
        })
    });
    let labels = steps.iter().fold(String::new(), |labels, step| {
        format!("{labels}{:STEP$}", lines.x.label(*step))
    });
    let axis = named("", name_width).and(FAINT, labels.trim_end());
    rows.chain([axis]).collect()
}

/// From how many times the 95th percentile on a value is far above the others.
const FAR: f64 = 3.0;

/// A letter per value in order, all series to one height.
fn draw_scatter(scatter: &Scatter, options: TerminalOptions) -> Vec<Painted> {
    let points = scatter.0.iter().flat_map(|series| &series.points);
    let Some((full, tallest)) = full_height(points.map(|point| point.y)) else {
        return Vec::new();
    };
    let (names, name_width) = names(scatter.0.iter().map(|series| &*series.name));
    let room = options.width.saturating_sub(name_width + 4).max(10);
    let mut lines = Vec::new();
    for (series, name) in scatter.0.iter().zip(names) {
        let points = series.points.iter().take(room);
        let letters = points.map(|point| {
            let letter = match point.tone {
                Tone::Alarm => '×',
                _ if point.y > full => '↑',
                _ => height(point.y, full),
            };
            (of_tone(point.tone), letter)
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
