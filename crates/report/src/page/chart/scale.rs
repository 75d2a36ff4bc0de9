//! From a value to a place, and the round values worth a tick.

use super::ScaleKind;

/// Above this ratio of the ends of its values a scale is logarithmic.
const WIDE: f64 = 40.0;

/// Maps values in `low..=high` to places in `from..=to`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    spread: ScaleKind,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// The scale of values: logarithmic if the largest is more than 40 times the smallest, else
    /// from zero.
    pub(super) fn of_values(values: impl Iterator<Item = f64>, places: (f64, f64)) -> Scale {
        let ends = values.fold((f64::MAX, 0.0), |(low, high): (f64, f64), value| {
            (low.min(value), high.max(value))
        });
        if ends.0 > 0.0 && ends.1 > ends.0 * WIDE {
            let ends = (ends.0 / 1.3, ends.1 * 1.3);
            return Scale::new(ScaleKind::Logarithmic, ends, places);
        }
        let ticks = ((places.0 - places.1).abs() / 28.0) as usize;
        Scale::from_zero(ends.1 * 1.03, places, ticks)
    }

    /// A scale over the places `from..=to`. Values that allow none (equal, not positive under a
    /// logarithm, no number) give a scale of width one.
    pub(super) fn new(spread: ScaleKind, values: (f64, f64), places: (f64, f64)) -> Scale {
        let (mut low, mut high) = values;
        if spread == ScaleKind::Logarithmic {
            low = low.max(1e-9);
        }
        if !(low.is_finite() && high.is_finite() && high > low) {
            low = if low.is_finite() { low } else { 0.0 };
            high = match spread {
                ScaleKind::Linear => low + 1.0,
                ScaleKind::Logarithmic => low * 10.0,
            };
        }
        Scale {
            spread,
            low,
            high,
            from: places.0,
            to: places.1,
        }
    }

    /// A linear scale from zero to the first round value at or above `high`.
    pub(super) fn from_zero(high: f64, places: (f64, f64), ticks: usize) -> Scale {
        let high = if high.is_finite() && high > 0.0 {
            high
        } else {
            1.0
        };
        let step = round_step(high, ticks);
        let top = (high / step - 1e-9).ceil().max(1.0) * step;
        Scale::new(ScaleKind::Linear, (0.0, top), places)
    }

    /// Where a value lies; one beyond the ends lies on the end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = match self.spread {
            ScaleKind::Linear => (value - self.low) / (self.high - self.low),
            ScaleKind::Logarithmic => {
                (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
            }
        };
        let share = if share.is_nan() { 0.0 } else { share };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Where the ends lie.
    pub(super) fn places(&self) -> (f64, f64) {
        (self.from, self.to)
    }

    pub(super) fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Round values inside the scale, about `wanted` of them at most.
    pub(super) fn ticks(&self, wanted: usize) -> Vec<f64> {
        match self.spread {
            ScaleKind::Linear => self.linear_ticks(wanted),
            ScaleKind::Logarithmic => {
                // even steps leave the lower half of a logarithmic axis empty: only a narrow range
                // takes them
                if self.high < self.low * 3.0 {
                    return self.linear_ticks(wanted);
                }
                // 1, 2, 5 of each power of ten; fewer when they would crowd
                for steps in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0], &[3.0], &[5.0]] {
                    let ticks = self.powers(steps, 1);
                    if ticks.len() <= wanted.max(2) && ticks.len() >= 2 {
                        return ticks;
                    }
                }
                let ones = self.powers(&[1.0], 1);
                let every = ones.len().div_ceil(wanted.max(1)) as i32;
                self.powers(&[1.0], every)
            }
        }
    }

    fn linear_ticks(&self, wanted: usize) -> Vec<f64> {
        let step = round_step(self.high - self.low, wanted);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last.min(first + 100))
            .map(|nth| nth as f64 * step)
            .collect()
    }

    fn powers(&self, steps: &[f64], every: i32) -> Vec<f64> {
        let (first, last) = (
            self.low.log10().floor() as i32,
            self.high.log10().ceil() as i32,
        );
        (first..=last)
            .filter(|power| power.rem_euclid(every) == 0)
            .flat_map(|power| steps.iter().map(move |step| step * power_of_ten(power)))
            .filter(|&value| value >= self.low * (1.0 - 1e-9) && value <= self.high * (1.0 + 1e-9))
            .collect()
    }
}

/// The smallest of 1, 2, 5 times a power of ten that cuts `span` into at most `wanted` steps.
pub(super) fn round_step(span: f64, wanted: usize) -> f64 {
    let raw = span.abs().max(1e-300) / wanted.max(1) as f64;
    let power = power_of_ten(raw.log10().floor() as i32);
    [1.0, 2.0, 5.0, 10.0]
        .iter()
        .map(|step| step * power)
        .find(|step| *step >= raw * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// Not `powi` of a negative power: its last digit depends on the system's library.
fn power_of_ten(power: i32) -> f64 {
    match power {
        0.. => 10f64.powi(power),
        ..0 => 1.0 / 10f64.powi(-power),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let scale = Scale::new(ScaleKind::Linear, (0.0, 123.0), (0.0, 500.0));
        assert_eq!(scale.ticks(5), [0.0, 50.0, 100.0]);
        let scale = Scale::new(ScaleKind::Logarithmic, (0.3, 40.0), (0.0, 500.0));
        assert_eq!(scale.ticks(8), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        let scale = Scale::new(ScaleKind::Logarithmic, (1e-3, 1e5), (0.0, 300.0));
        assert!(scale.ticks(5).len() <= 5);
        let scale = Scale::new(ScaleKind::Logarithmic, (0.007, 0.47), (96.0, 0.0));
        assert_eq!(scale.ticks(3), [0.01, 0.1]);
    }

    #[test]
    fn a_scale_from_zero_ends_on_a_tick() {
        let scale = Scale::from_zero(93.0, (0.0, 1.0), 5);
        assert_eq!(scale.ends(), (0.0, 100.0));
        assert_eq!(scale.ticks(5).last(), Some(&100.0));
    }

    #[test]
    fn nonsense_gives_places_all_the_same() {
        for values in [
            (5.0, 5.0),
            (f64::NAN, 1.0),
            (3.0, f64::INFINITY),
            (9.0, 1.0),
        ] {
            for spread in [ScaleKind::Linear, ScaleKind::Logarithmic] {
                let scale = Scale::new(spread, values, (10.0, 20.0));
                for value in [f64::NAN, -1.0, 0.0, 4.0, f64::INFINITY] {
                    let place = scale.place(value);
                    assert!((10.0..=20.0).contains(&place), "{values:?} {value} {place}");
                }
                assert!(scale.ticks(6).len() < 200);
            }
        }
    }
}
