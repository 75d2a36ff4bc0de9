//! Pauses before answers: always the same, or drawn.

use intact_experiment::Rng;
use intact_units::duration::{DurationError, or_seconds};
use std::str::FromStr;
use std::time::Duration;

/// The longest pause that is drawn, in means: the exponential distribution has no end, a test must
/// have one.
const LONGEST: f64 = 20.0;

/// How long the server waits before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Delay {
    /// Always as long.
    Fixed(Duration),
    /// Exponentially distributed with this mean: many short pauses, a few long ones.
    Exponential(Duration),
}

impl Default for Delay {
    fn default() -> Delay {
        Delay::Fixed(Duration::ZERO)
    }
}

impl Delay {
    /// One pause.
    pub(crate) fn draw(self, rng: &mut Rng) -> Duration {
        match self {
            Delay::Fixed(pause) => pause,
            // 1 - unit lies in (0, 1], so the logarithm is finite
            Delay::Exponential(mean) => {
                mean.mul_f64((-(1.0 - rng.unit()).ln()).clamp(0.0, LONGEST))
            }
        }
    }
}

impl FromStr for Delay {
    type Err = DurationError;

    /// Reads `20ms`, `1.5s`, or `exp:` before either.
    fn from_str(text: &str) -> Result<Delay, DurationError> {
        match text.strip_prefix("exp:") {
            Some(mean) => or_seconds(mean).map(Delay::Exponential),
            None => or_seconds(text).map(Delay::Fixed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_read_as_they_are_written() {
        assert_eq!("20ms".parse(), Ok(Delay::Fixed(Duration::from_millis(20))));
        assert_eq!(
            "exp:1.5s".parse(),
            Ok(Delay::Exponential(Duration::from_millis(1500)))
        );
        for bad in ["", "ms", "20 parsecs", "exp:", "-1s", "nans"] {
            assert!(bad.parse::<Delay>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn drawn_delays_have_the_mean_that_was_asked_for_and_repeat_by_their_seed() {
        let delay = Delay::Exponential(Duration::from_millis(20));
        let draws = |seed| {
            let mut rng = Rng::seeded(seed);
            (0..20_000)
                .map(|_| delay.draw(&mut rng).as_secs_f64())
                .collect::<Vec<_>>()
        };
        let first = draws(7);
        let mean = first.iter().sum::<f64>() / first.len() as f64;
        assert!((mean - 0.02).abs() < 0.001, "{mean}");
        assert_eq!(first, draws(7));
        assert_ne!(first, draws(8));
    }
}
