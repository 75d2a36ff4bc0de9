//! Histograms: one panel per group over a common axis, its populations on one scale of counts, so
//! that heights can be compared.

use super::canvas::{Anchor, Canvas, Svg, fit, fit_bold, width_of};
use super::frame::{AXIS, Frame, LINE, y_axis_width};
use super::letters::{drawn, height, named, names};
use super::scale::Scale;
use super::{Axis, ChartKind, ChartTable, ScaleKind, Tone, row};
use crate::painted::{FAINT, PLAIN, Painted};
use intact_units::Quantity;

/// Width of a bar.
const BIN: f64 = 5.0;
/// Width that is taken off for labels of the heights when bars are counted.
const MARGIN: f64 = 30.0;
/// Share of the values at either end that may lie beyond the axis, where a note counts them.
const CUT: f64 = 0.002;
/// A bucket with fewer values is not spread over bars.
const FEW: u64 = 20;
/// Above this ratio of the ends the axis is logarithmic.
const WIDE: f64 = 12.0;
/// Letters that a drawing needs next to its figures, and that it gets at most.
const DRAWING: (usize, usize) = (20, 100);

/// Panels over one axis of time.
#[derive(Clone, Debug, Default)]
pub struct Histogram(pub Vec<Panel>);

impl Histogram {
    /// All populations, each with its panel.
    fn populations(&self) -> impl Iterator<Item = (&Panel, &Population)> {
        let panels = self.0.iter();
        panels.flat_map(|panel| panel.populations.iter().map(move |one| (panel, one)))
    }
}

/// Populations over the common axis.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What it is about; empty where there is one panel.
    pub name: String,
    /// The populations, each drawn over the ones before.
    pub populations: Vec<Population>,
    /// A marked range of values.
    pub band: Option<Band>,
}

/// A distribution.
#[derive(Clone, Debug)]
pub struct Population {
    /// What it is; empty where a panel has one.
    pub name: String,
    /// Its figures.
    pub words: String,
    /// What it stands for.
    pub tone: Tone,
    /// Low, high (milliseconds), count.
    pub buckets: Vec<(f64, f64, u64)>,
}

/// A marked range of values.
#[derive(Clone, Debug)]
pub struct Band {
    /// Its lower end.
    pub from: f64,
    /// Its upper end.
    pub to: f64,
    /// What it means.
    pub words: String,
}

/// Values above 0 that show a distribution; fewer are points.
const FEWEST: u64 = 8;

impl ChartKind for Histogram {
    fn is_empty(&self) -> bool {
        let buckets = self.populations().flat_map(|(_, one)| &one.buckets);
        let counts = buckets.filter(|bucket| bucket.1 > 0.0);
        counts.map(|bucket| bucket.2).sum::<u64>() < FEWEST
    }

    fn svg(&self, width: f64, title: &str, description: &str) -> Svg {
        let mut canvas = Canvas::new(width);
        let Some((ends, spread)) = self.ends() else {
            canvas.text("label", (0.0, LINE), Anchor::Start, "nothing to show");
            return canvas.finish(2.0 * LINE, title, description);
        };
        let panel_height = if self.0.len() == 1 { 150.0 } else { 72.0 };
        let bins = ((width - MARGIN) / BIN) as usize;
        let binned = |left: f64| -> (Scale, Vec<Bins<'_>>) {
            let scale = Scale::new(spread, ends, (left, width - 1.0));
            let panels = self.0.iter().map(|panel| Bins::of(panel, &scale, bins));
            (scale, panels.collect())
        };
        // the number of bars is fixed, so the margin that the labels need does not change the
        // heights
        let (_, panels) = binned(MARGIN);
        let labels = panels.iter().map(|bins| {
            let heights = bins.scale((panel_height, 0.0));
            y_axis_width(&heights, panel_height, Axis::Count)
        });
        let left = labels.fold(0.0, f64::max);
        let (scale, panels) = binned(left);
        let mut top = 0.0;
        for (nth, (panel, bins)) in self.0.iter().zip(&panels).enumerate() {
            top = draw_heading(&mut canvas, panel, top);
            let frame = Frame {
                left,
                right: width - 1.0,
                top,
                bottom: top + panel_height,
            };
            if let Some(band) = &panel.band {
                draw_band(&mut canvas, &frame, &scale, band);
            }
            if nth + 1 == self.0.len() {
                frame.x_axis(&mut canvas, &scale, Axis::Time);
            } else {
                canvas.line(
                    "axis",
                    (frame.left, frame.bottom),
                    (frame.right, frame.bottom),
                );
            }
            let heights = bins.scale((frame.bottom, frame.top));
            frame.y_axis(&mut canvas, &heights, Axis::Count);
            bins.draw(&mut canvas, &frame, &heights);
            if bins.beyond > 0 {
                let printed = format!("{} beyond →", Quantity::Count(bins.beyond));
                canvas.text(
                    "note",
                    (frame.right, frame.top + 10.0),
                    Anchor::End,
                    &printed,
                );
            }
            top = frame.bottom + 14.0;
        }
        canvas.finish(top - 14.0 + AXIS, title, description)
    }

    /// A row per population on a common logarithmic scale, each to its own height.
    fn letters(&self, columns: usize) -> Vec<Painted> {
        let rows = self.populations().map(|(panel, one)| {
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
        let left = columns.saturating_sub(name_width + words_width + 6);
        let fits = left >= DRAWING.0;
        let room = if fits {
            left
        } else {
            columns.saturating_sub(name_width + 4)
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
                (one.tone.style(), letter)
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

    fn table(&self) -> Option<ChartTable> {
        let buckets = self.populations().flat_map(|(panel, one)| {
            let buckets = one.buckets.iter();
            buckets.map(|(low, high, count)| {
                let count = [count.to_string(), String::new()];
                row([&panel.name, &one.name], [*low, *high], count)
            })
        });
        let head = ["panel", "population", "low_ms", "high_ms", "count", ""];
        Some((head, buckets.collect()))
    }
}

/// One population in bars.
struct Binned<'a> {
    population: &'a Population,
    bars: Vec<f64>,
}

/// The populations of a panel in bars.
struct Bins<'a> {
    populations: Vec<Binned<'a>>,
    /// Values beyond the right end of the axis.
    beyond: u64,
}

impl Histogram {
    /// The ends of the axis without the outliers, and how it is spread.
    fn ends(&self) -> Option<((f64, f64), ScaleKind)> {
        let mut buckets: Vec<(f64, f64, u64)> = self
            .0
            .iter()
            .flat_map(|panel| &panel.populations)
            .flat_map(|population| population.buckets.iter().copied())
            .filter(|(low, high, count)| *count > 0 && low.is_finite() && high.is_finite())
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total: u64 = buckets.iter().map(|bucket| bucket.2).sum();
        let edge = |share: f64| {
            let rank = (total as f64 * share) as u64;
            let mut seen = 0;
            buckets.iter().find(|bucket| {
                seen += bucket.2;
                seen > rank
            })
        };
        let low = edge(CUT)?.0;
        let high = edge(1.0 - CUT).or(buckets.last())?.1;
        let bands = || self.0.iter().filter_map(|panel| panel.band.as_ref());
        let low = bands().map(|band| band.from).fold(low, f64::min);
        let high = bands().map(|band| band.to).fold(high, f64::max);
        // without any duration there is nothing to compare
        if high <= 0.0 {
            return None;
        }
        if high > low.max(1e-9) * WIDE {
            return Some(((low.max(1e-6) / 1.1, high * 1.1), ScaleKind::Logarithmic));
        }
        let margin = (high - low) * 0.04;
        let from = if low < high * 0.3 { 0.0 } else { low - margin };
        Some(((from.max(0.0), high + margin), ScaleKind::Linear))
    }
}

/// Name and populations of a panel. Returns where the bars may begin.
fn draw_heading(canvas: &mut Canvas, panel: &Panel, top: f64) -> f64 {
    let mut y = top;
    if !panel.name.is_empty() {
        y += LINE;
        let name = fit_bold(&panel.name, canvas.width());
        canvas.text("strong", (0.0, y - 4.0), Anchor::Start, &name);
    }
    let mut x = 0.0;
    for (nth, population) in panel.populations.iter().enumerate() {
        let words = match population.name.as_str() {
            "" => population.words.clone(),
            name => format!("{name}: {}", population.words),
        };
        let wide = width_of(&words) + 30.0;
        if nth == 0 || x + wide > canvas.width() {
            y += LINE;
            x = 0.0;
        }
        let class = format!("fill {}", population.tone.class());
        canvas.rect(&class, (x, y - 13.0), (10.0, 10.0), "");
        let words = fit(&words, canvas.width() - 16.0);
        canvas.text("label", (x + 15.0, y - 4.0), Anchor::Start, &words);
        x += wide;
    }
    y + 10.0
}

fn draw_band(canvas: &mut Canvas, frame: &Frame, scale: &Scale, band: &Band) {
    let (from, to) = (scale.place(band.from), scale.place(band.to));
    let size = ((to - from).max(2.0), frame.bottom - frame.top);
    canvas.rect("band", (from, frame.top), size, &band.words);
    let (x, anchor) = if from > canvas.width() / 2.0 {
        (to, Anchor::End)
    } else {
        (from, Anchor::Start)
    };
    canvas.text(
        "note alarm-text",
        (x, frame.top + 10.0),
        anchor,
        &band.words,
    );
}

impl<'a> Bins<'a> {
    fn of(panel: &'a Panel, scale: &Scale, bins: usize) -> Bins<'a> {
        let (from, to) = scale.places();
        let width = (to - from) / bins as f64;
        let mut beyond = 0;
        let populations = panel.populations.iter().map(|population| {
            let mut bars = vec![0.0f64; bins];
            for &(low, high, count) in &population.buckets {
                if low > scale.ends().1 {
                    beyond += count;
                    continue;
                }
                // a bucket may be wider than a bar: its values are spread over what it covers,
                // unless they are so few that parts of them would show
                let bar_of = |value: f64| (scale.place(value) - from) / width;
                let (first, last) = (bar_of(low), bar_of(high).max(bar_of(low) + 1e-9));
                if count < FEW {
                    let middle = ((first + last) / 2.0) as usize;
                    bars[middle.min(bins - 1)] += count as f64;
                    continue;
                }
                for (bar, sum) in bars
                    .iter_mut()
                    .enumerate()
                    .skip(first as usize)
                    .take_while(|(bar, _)| (*bar as f64) < last)
                {
                    let covered = (last.min(bar as f64 + 1.0) - first.max(bar as f64)).max(0.0);
                    *sum += count as f64 * covered / (last - first);
                }
                if first as usize >= bins {
                    bars[bins - 1] += count as f64;
                }
            }
            Binned { population, bars }
        });
        Bins {
            populations: populations.collect(),
            beyond,
        }
    }

    /// The common height scale of the populations: values in a bar.
    fn scale(&self, places: (f64, f64)) -> Scale {
        let bars = self.populations.iter().flat_map(|binned| &binned.bars);
        let tallest = bars.copied().fold(0.0, f64::max).max(1.0);
        let ticks = ((places.0 - places.1) / 28.0).max(1.0) as usize;
        Scale::from_zero(tallest, places, ticks)
    }

    fn draw(&self, canvas: &mut Canvas, frame: &Frame, heights: &Scale) {
        for binned in &self.populations {
            let tone = binned.population.tone.class();
            let width = (frame.right - frame.left) / binned.bars.len() as f64;
            let mut outline = Vec::new();
            let mut flush = |outline: &mut Vec<(f64, f64)>| {
                canvas.path(&format!("mode {tone}"), outline, true);
                outline.clear();
            };
            for (nth, &count) in binned.bars.iter().enumerate() {
                if count <= 0.0 {
                    if !outline.is_empty() {
                        flush(&mut outline);
                    }
                    continue;
                }
                let x = frame.left + nth as f64 * width;
                // a single value among thousands must not vanish
                let y = heights.place(count).min(frame.bottom - 1.0);
                if outline.is_empty() {
                    outline.push((x, frame.bottom));
                } else {
                    outline.pop();
                }
                outline.extend([(x, y), (x + width, y), (x + width, frame.bottom)]);
            }
            if !outline.is_empty() {
                flush(&mut outline);
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Tone;

    fn histogram(buckets: &[Vec<(f64, f64, u64)>]) -> Histogram {
        Histogram(vec![Panel {
            name: String::new(),
            populations: buckets
                .iter()
                .map(|buckets| Population {
                    name: "all".to_owned(),
                    words: "requests".to_owned(),
                    tone: Tone::Reused,
                    buckets: buckets.clone(),
                })
                .collect(),
            band: None,
        }])
    }

    #[test]
    fn close_modes_share_a_linear_axis_and_far_ones_a_logarithmic_one() {
        let near = histogram(&[vec![(20.0, 21.0, 100)], vec![(110.0, 111.0, 100)]]);
        assert!(matches!(near.ends(), Some((_, ScaleKind::Linear))));
        let far = histogram(&[vec![(0.1, 0.11, 100)], vec![(40.0, 41.0, 100)]]);
        assert!(matches!(far.ends(), Some((_, ScaleKind::Logarithmic))));
    }

    #[test]
    fn a_few_outliers_are_counted_and_do_not_squeeze_the_rest() {
        let svg = histogram(&[vec![(20.0, 21.0, 5000), (9000.0, 9001.0, 2)]])
            .svg(500.0, "t", "d")
            .to_string();
        assert!(svg.contains("2 beyond"), "{svg}");
    }

    #[test]
    fn no_values_are_no_panic() {
        for buckets in [vec![], vec![vec![]], vec![vec![(f64::NAN, 1.0, 3)]]] {
            let svg = histogram(&buckets).svg(300.0, "t", "d").to_string();
            assert!(svg.contains("nothing to show"), "{svg}");
        }
    }
}
