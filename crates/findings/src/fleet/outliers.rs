//! Workers that stand out in a campaign: a cold function, a noisy host.

use serde::Serialize;
use std::collections::BTreeMap;

/// Messages of one kind from which there is a "usual".
const ENOUGH: usize = 8;
/// How many scaled median absolute deviations from the median are far off.
const FAR: f64 = 5.0;
/// And by what factor at least, so that a very quiet campaign does not name everyone.
const FACTOR: f64 = 1.25;

/// The mean latency that one worker measured for one message.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The worker.
    pub worker: String,
    /// What it may be compared with: target, label and variant.
    pub kind: (String, String, u32),
    /// Mean latency, in milliseconds.
    pub mean_ms: f64,
}

/// A worker whose figures are far from those of the others.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Outlier {
    /// The worker.
    pub worker: String,
    /// Its messages that are far above the median of their kind.
    pub far: u64,
    /// Its messages that could be compared.
    pub messages: u64,
    /// The median over the far ones of their mean divided by the median of their kind.
    pub factor: f64,
}

/// Workers of which at least half of the messages are far above the median of their kind (median
/// absolute deviation, scaled to a normal's standard deviation).
pub fn outliers(measured: &[Measured]) -> Vec<Outlier> {
    let mut kinds: BTreeMap<&(String, String, u32), Vec<&Measured>> = BTreeMap::new();
    for one in measured {
        kinds.entry(&one.kind).or_default().push(one);
    }
    let mut workers: BTreeMap<&str, (u64, Vec<f64>)> = BTreeMap::new();
    for messages in kinds.values().filter(|messages| messages.len() >= ENOUGH) {
        let mut means: Vec<f64> = messages.iter().map(|one| one.mean_ms).collect();
        let usual = median(&mut means);
        let mut distances: Vec<f64> = means.iter().map(|mean| (mean - usual).abs()).collect();
        let spread = median(&mut distances) * 1.4826;
        for one in messages {
            let worker = workers.entry(&one.worker).or_default();
            worker.0 += 1;
            if one.mean_ms > usual + FAR * spread && one.mean_ms > usual * FACTOR {
                worker.1.push(one.mean_ms / usual);
            }
        }
    }
    let mut outliers: Vec<Outlier> = workers
        .into_iter()
        .filter(|(_, (messages, far))| !far.is_empty() && far.len() as u64 * 2 >= *messages)
        .map(|(worker, (messages, mut far))| Outlier {
            worker: worker.to_owned(),
            far: far.len() as u64,
            messages,
            factor: median(&mut far),
        })
        .collect();
    outliers.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    outliers
}

/// The median; the upper of the two in the middle. Sorts.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(worker: &str, mean_ms: f64) -> Measured {
        Measured {
            worker: worker.to_owned(),
            kind: ("t".to_owned(), "l".to_owned(), 0),
            mean_ms,
        }
    }

    #[test]
    fn a_slow_worker_is_named_and_an_ordinary_one_is_not() {
        let mut all: Vec<Measured> = (0..20)
            .map(|n| one(&format!("w{}", n % 4), 10.0 + f64::from(n) * 0.01))
            .collect();
        all.push(one("slow", 30.0));
        all.push(one("slow", 31.0));
        let found = outliers(&all);
        assert_eq!(found.len(), 1);
        assert_eq!((&*found[0].worker, found[0].far), ("slow", 2));
        assert!((found[0].factor - 3.1).abs() < 0.1);
    }

    #[test]
    fn one_slow_message_among_many_makes_no_outlier() {
        let mut all: Vec<Measured> = (0..20).map(|_| one("w", 10.0)).collect();
        all.push(one("w", 50.0));
        assert_eq!(outliers(&all), []);
    }

    #[test]
    fn too_few_messages_have_no_usual() {
        let all: Vec<Measured> = (0..7)
            .map(|n| one("w", if n == 0 { 99.0 } else { 1.0 }))
            .collect();
        assert_eq!(outliers(&all), []);
    }
}
