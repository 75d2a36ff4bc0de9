//! The splits of a sequence into classes of neighbours that have the least squares inside: levels
//! in order of time, or tiers in order of size. Must not judge whether the classes differ.

use std::ops::Range;

/// The splits of a sequence into classes.
pub(crate) struct Splits {
    len: usize,
    /// For each number of classes from 2 on and each length, where the last class of that
    /// beginning starts.
    starts: Vec<Vec<usize>>,
}

impl Splits {
    /// Those into at most this number of classes that have the least squares inside, each class
    /// with `least_values` values at least.
    pub(crate) fn of(values: &[f64], most: usize, least_values: usize) -> Splits {
        let len = values.len();
        let inside = Squares::of(values);
        let mut least: Vec<f64> = (0..=len).map(|end| inside.of_class(0..end)).collect();
        let mut starts = Vec::new();
        for count in 2..=most {
            let best_of = |end: usize| {
                let last = end.saturating_sub(least_values);
                let cuts = (count - 1) * least_values..=last;
                let split = cuts.map(|cut| (cut, least[cut] + inside.of_class(cut..end)));
                split.fold((0, f64::INFINITY), |a, b| if b.1 < a.1 { b } else { a })
            };
            let best: Vec<(usize, f64)> = (0..=len).map(best_of).collect();
            starts.push(best.iter().map(|one| one.0).collect());
            least = best.iter().map(|one| one.1).collect();
        }
        Splits { len, starts }
    }

    /// The classes of the best split into `count`.
    pub(crate) fn classes(&self, count: usize) -> Vec<Range<usize>> {
        let mut end = self.len;
        let mut classes = Vec::new();
        for starts in self.starts[..count - 1].iter().rev() {
            classes.push(starts[end]..end);
            end = starts[end];
        }
        classes.push(0..end);
        classes.reverse();
        classes
    }
}

/// Running sums, from which the squares inside any class follow.
struct Squares {
    sums: Vec<(f64, f64)>,
}

impl Squares {
    fn of(values: &[f64]) -> Squares {
        let centre = mean(values);
        let mut sums = vec![(0.0, 0.0)];
        let (mut sum, mut squares) = (0.0, 0.0);
        for value in values {
            sum += value - centre;
            squares += (value - centre) * (value - centre);
            sums.push((sum, squares));
        }
        Squares { sums }
    }

    fn of_class(&self, class: Range<usize>) -> f64 {
        let ((from, from_squares), (to, to_squares)) =
            (self.sums[class.start], self.sums[class.end]);
        let sum = to - from;
        let within = to_squares - from_squares - sum * sum / class.len().max(1) as f64;
        within.max(0.0)
    }
}

/// The mean of values, of which there is one at least.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
