//! A bench while it runs, as lines of text: figures and latency of each variant so far. Draws
//! nothing itself.

use intact_ledger::Histogram;
use intact_units::foreign_text::escape;
use intact_units::number::{count, per_second, percent, time};
use intact_units::plural::counted;
use std::time::Duration;

const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns of the figures of a variant, after its name.
const FIGURES: usize = 56;
/// Lines in addition to those of variants: two headings, the scale, and the number of hidden
/// variants.
const OTHER_LINES: usize = 4;
/// Columns of the longest name.
const NAME: usize = 40;
/// Nanoseconds in a millisecond.
const MS: f64 = 1e6;

/// Where a bench is, and what it measured so far.
#[derive(Clone, Debug, Default)]
pub struct BenchState {
    /// What is measured, such as a URL.
    pub subject: String,
    /// The current round and the number of rounds; round 0 has the first requests.
    pub round: (u32, u32),
    /// Time until the end, if it can be estimated.
    pub left: Option<Duration>,
    /// Index of the variant that is measured now.
    pub running: usize,
    /// Whether the key q ends the run.
    pub has_keys: bool,
    /// The variants, in the run's order.
    pub variants: Vec<VariantState>,
}

/// A variant so far.
#[derive(Clone, Debug, Default)]
pub struct VariantState {
    /// Its name.
    pub name: String,
    /// Latency of complete requests.
    pub latency: Histogram,
    /// Measured requests, however they ended.
    pub requests: u64,
    /// Failed requests, those of warm-up included.
    pub failed: u64,
    /// Requests on a connection that was reused.
    pub reused: u64,
    /// Connections opened.
    pub opened: u64,
    /// Time measured, in nanoseconds.
    pub nanos: u64,
    /// Time that it will still be measured, if that can be estimated.
    pub left: Option<Duration>,
}

impl VariantState {
    /// Complete requests a second.
    fn rate(&self) -> Option<f64> {
        let seconds = self.nanos as f64 / 1e9;
        (seconds > 0.0).then(|| self.latency.count() as f64 / seconds)
    }
}

impl BenchState {
    /// Formats the state in at most `rows` lines of `columns` letters: the figures, then the
    /// latency distribution of each variant. Without room for all distributions, only that of the
    /// current variant.
    pub fn lines(&self, columns: usize, rows: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let scale = Scale::of(&self.variants, columns.saturating_sub(4));
        let all = self.shown(rows.saturating_sub(OTHER_LINES));
        let has_room = OTHER_LINES + 2 * all.len() <= rows;
        let heads = self.heads(columns).into_iter().map(|line| (None, line));
        for (index, line) in heads.chain(self.rows(columns, &all)) {
            lines.push(line);
            let Some(index) = index.filter(|index| has_room || *index == self.running) else {
                continue;
            };
            let latency = &self.variants[index].latency;
            let drawn = scale.as_ref().map(|scale| scale.draw(latency));
            lines.extend(
                drawn
                    .filter(|drawn| !drawn.is_empty())
                    .map(|drawn| format!("    {drawn}")),
            );
        }
        lines.extend(scale.map(|scale| format!("    {}", scale.axis())));
        lines.extend(self.hidden(all.len(), columns));
        lines.truncate(rows.max(1));
        lines
    }

    /// The figures alone.
    pub(crate) fn figure_lines(&self, columns: usize, rows: usize) -> Vec<String> {
        let all = self.shown(rows.saturating_sub(OTHER_LINES));
        let mut lines = self.heads(columns);
        lines.extend(self.rows(columns, &all).map(|(_, line)| line));
        lines.extend(self.hidden(all.len(), columns));
        lines
    }

    /// Indices of the variants that fit on this number of lines, including the current one.
    fn shown(&self, most: usize) -> Vec<usize> {
        let most = most.max(1);
        let from = (self.running + 1).saturating_sub(most);
        (0..self.variants.len()).skip(from).take(most).collect()
    }

    fn heads(&self, columns: usize) -> Vec<String> {
        let width = self.name_width(columns);
        let heads = format!("  {:width$}{HEADS}", "");
        vec![self.first_line(columns), cut(&heads, columns)]
    }

    fn rows(
        &self,
        columns: usize,
        shown: &[usize],
    ) -> impl Iterator<Item = (Option<usize>, String)> {
        let width = self.name_width(columns);
        shown.iter().map(move |&index| {
            let figures = self.figures(&self.variants[index], index == self.running, width);
            (Some(index), cut(&figures, columns))
        })
    }

    fn hidden(&self, shown: usize, columns: usize) -> Option<String> {
        let hidden = self.variants.len() - shown;
        let words = format!(
            "  {} in the report",
            counted(hidden as u64, "further variant")
        );
        (hidden > 0).then(|| cut(&words, columns))
    }

    /// `round 3 of 20, 12 s left, q stops and keeps what was measured`.
    fn first_line(&self, columns: usize) -> String {
        let mut words = match self.round {
            (0, _) => "first requests".to_owned(),
            (round, rounds) => format!("round {round} of {rounds}"),
        };
        if let Some(left) = self.left {
            words.push_str(&format!(", {:.0} s left", left.as_secs_f64()));
        }
        if self.has_keys {
            words.push_str("; q stops and keeps what was measured");
        }
        cut(&words, columns)
    }

    /// Columns of the names.
    fn name_width(&self, columns: usize) -> usize {
        let names = self.variants.iter().map(|one| one.name.chars().count());
        let room = columns.saturating_sub(FIGURES + 2).clamp(8, NAME);
        names.max().unwrap_or(0).min(room)
    }

    fn figures(&self, variant: &VariantState, is_running: bool, width: usize) -> String {
        let ms = |nanos: Option<f64>| nanos.map_or("-".to_owned(), |nanos| time(nanos / MS));
        let reuse = match variant.requests {
            0 => "-".to_owned(),
            all => percent(variant.reused as f64 / all as f64),
        };
        let left = variant
            .left
            .map_or(String::new(), |left| format!("{:.0} s", left.as_secs_f64()));
        format!(
            "{} {:width$}{:>9}{:>9}{:>9}{:>9}{:>7}{:>7}{left:>6}",
            if is_running { '>' } else { ' ' },
            cut(&escape(&variant.name), width),
            variant.rate().map_or("-".to_owned(), per_second),
            ms(variant.latency.median()),
            ms(variant.latency.supported_quantile(0.99)),
            count(variant.opened),
            reuse,
            count(variant.failed),
        )
    }
}

/// The heads of the figures.
const HEADS: &str = "    req/s      p50      p99   opened reused failed  left";

/// The latencies of all variants on one logarithmic scale.
pub(crate) struct Scale {
    low: f64,
    high: f64,
    columns: usize,
}

impl Scale {
    /// The scale for these variants; `None` where nothing was measured, or there is no room.
    pub(crate) fn of(variants: &[VariantState], columns: usize) -> Option<Scale> {
        let low = variants.iter().filter_map(|one| one.latency.min()).min()?;
        let high = variants.iter().filter_map(|one| one.latency.max()).max()?;
        (columns >= 10).then(|| Scale {
            low: low.max(1) as f64,
            high: high.max(low.max(1) + 1) as f64,
            columns: columns.min(100),
        })
    }

    /// Requests in each column.
    pub(crate) fn columns(&self, latency: &Histogram) -> Vec<u64> {
        let mut columns = vec![0; self.columns];
        let all = (self.high / self.low).ln();
        for (low, high, count) in latency.buckets() {
            let middle = (low as f64 + high as f64) / 2.0;
            let place = (middle.max(self.low) / self.low).ln() / all * self.columns as f64;
            columns[(place as usize).min(self.columns - 1)] += count;
        }
        columns
    }

    fn draw(&self, latency: &Histogram) -> String {
        let columns = self.columns(latency);
        let most = columns.iter().copied().max().unwrap_or(0).max(1);
        let letter = |count: u64| match count {
            0 => ' ',
            count => HEIGHTS[((count * 8).div_ceil(most) as usize).clamp(1, 8) - 1],
        };
        let drawn: String = columns.into_iter().map(letter).collect();
        drawn.trim_end().to_owned()
    }

    /// The ends of the scale.
    pub(crate) fn axis(&self) -> String {
        let (low, high) = (time(self.low / MS), time(self.high / MS));
        let room = self.columns.saturating_sub(low.chars().count());
        format!("{low}{high:>room$}")
    }
}

/// The text, shortened to `columns` letters with a mark if it is longer.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(columns.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(name: &str, latencies: &[u64]) -> VariantState {
        let mut variant = VariantState {
            name: name.to_owned(),
            opened: 58_312,
            requests: 4,
            failed: 2,
            reused: 1,
            nanos: 500_000_000,
            left: Some(Duration::from_secs(4)),
            ..VariantState::default()
        };
        for latency in latencies {
            variant.latency.record(*latency);
        }
        variant
    }

    fn state(variants: usize) -> BenchState {
        BenchState {
            round: (3, 20),
            left: Some(Duration::from_secs(12)),
            running: variants - 1,
            has_keys: true,
            variants: (0..variants)
                .map(|nth| {
                    variant(
                        &format!("keepalive=on http=1.1 c={nth}"),
                        &[40_000, 1_500_000],
                    )
                })
                .collect(),
            ..BenchState::default()
        }
    }

    #[test]
    fn a_variant_has_its_figures_and_its_distribution() {
        let lines = state(1).lines(100, 24);
        assert_eq!(
            lines[0],
            "round 3 of 20, 12 s left; q stops and keeps what was measured"
        );
        assert!(lines[1].ends_with("left"), "{lines:?}");
        let figures: Vec<&str> = lines[2].split_whitespace().collect();
        assert_eq!(figures[..4], [">", "keepalive=on", "http=1.1", "c=0"]);
        // a percentile without ten requests beyond it is none
        let wanted = ["-", "58,312", "25.0", "%", "2", "4", "s"];
        assert!(figures.ends_with(&wanted), "{figures:?}");
        assert!(
            lines[3].contains('█') && lines[4].ends_with("1.50 ms"),
            "{lines:?}"
        );
    }

    #[test]
    fn every_line_fits_and_the_present_variant_is_always_there() {
        for (columns, rows, variants) in [(80, 24, 2), (120, 24, 40), (40, 8, 3), (20, 5, 9)] {
            let state = state(variants);
            let lines = state.lines(columns, rows);
            let widest = lines.iter().map(|line| line.chars().count()).max();
            assert!(widest <= Some(columns), "{columns}: {lines:#?}");
            assert!(lines.iter().any(|line| line.starts_with('>')), "{lines:#?}");
            assert!(lines.len() <= rows, "{rows}: {lines:#?}");
        }
    }

    #[test]
    fn before_anything_was_measured_there_are_no_figures() {
        let mut state = state(1);
        state.round.0 = 0;
        state.variants = vec![VariantState::default()];
        let lines = state.lines(80, 24);
        assert!(lines[0].starts_with("first requests"), "{lines:?}");
        assert_eq!(lines.len(), 3, "{lines:?}");
    }
}
