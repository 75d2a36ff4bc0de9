//! The faults of a server. Each has a name, and is chosen per request by probability or by path.
//!
//! This module has the names, and the outcome that a careful client records. `http1::faults` and
//! `http2::faults` write the bytes.

use crate::named_variants::{NamedVariants, UnknownChoice, choices, find};
use intact_experiment::Rng;
use intact_ledger::{Failure, Protocol};
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::time::Duration;

/// Between two bytes of a trickle.
pub(crate) const TRICKLE: Duration = Duration::from_millis(50);
/// How much of something endless goes at a time, in repetitions.
pub(crate) const REPEAT: usize = 100;

choices! {
    /// One way to answer badly.
    #[non_exhaustive]
    Fault, "fault";
    Stall "stall" "reads the request and never answers",
    StallMidBody "stall-mid-body" "sends half of the body and no more",
    Trickle "trickle" "sends the body a byte at a time, 50 ms apart",
    ResetMidBody "reset-mid-body" "sends half of the body, then a RST (HTTP/2: RST_STREAM)",
    TruncatedBody "truncated-body" "sends half of the body, then a FIN",
    CloseAfterHead "close-after-head" "sends the header section of a response with a body, then a FIN",
    Garbage "garbage" "sends bytes that are no HTTP, then a FIN",
    BadChunk "bad-chunk" "breaks the framing of the body: a chunk size that is no number (HTTP/2: padding longer than its frame)",
    EndlessInterim "endless-interim" "sends 1xx responses without end",
    EndlessHead "endless-head" "sends a header section without end (HTTP/2: CONTINUATION frames)",
    TwoAnswers "two-answers" "sends one response more than there were requests",
    CloseBeforeAnswer "close-before-answer" "reads the request, then ends the connection",
    ResetBeforeAnswer "reset-before-answer" "reads the request, then resets the connection",
    KeepAliveThenClose "keep-alive-then-close" "announces a kept connection, and closes it after that response",
}

impl Fault {
    /// The failure that a careful client counts; `None` where the answer is good and only the
    /// connection is not.
    pub fn failure(self, protocol: Protocol) -> Option<Failure> {
        Some(match self {
            Fault::Stall | Fault::StallMidBody | Fault::Trickle => Failure::Timeout,
            Fault::ResetMidBody if protocol.has_streams() => Failure::StreamReset,
            // the second answer stands where only trailers may be
            Fault::TwoAnswers if protocol == Protocol::Http3 => Failure::Malformed,
            Fault::ResetMidBody | Fault::ResetBeforeAnswer => Failure::Reset,
            Fault::TruncatedBody | Fault::CloseAfterHead => Failure::Truncated,
            Fault::Garbage | Fault::BadChunk => Failure::Malformed,
            Fault::EndlessInterim | Fault::EndlessHead => Failure::TooLarge,
            Fault::CloseBeforeAnswer => Failure::Closed,
            Fault::TwoAnswers | Fault::KeepAliveThenClose => return None,
        })
    }
}

/// Why faults could not be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FaultError {
    /// No fault has that name.
    #[error(transparent)]
    Unknown(#[from] UnknownChoice),
    /// No probability.
    #[error("{0:?} is no probability: write a fault as NAME=0.1, with a number from 0 to 1")]
    Probability(String),
    /// More than certain.
    #[error("the probabilities add up to {0}: at most 1 is possible")]
    Sum(f64),
}

/// Which faults happen, how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Faults<T = Fault>(Vec<(T, f64)>);

impl<T> Default for Faults<T> {
    fn default() -> Faults<T> {
        Faults(Vec::new())
    }
}

impl<T: Copy> Faults<T> {
    /// Whether this request gets one, and which.
    pub(crate) fn draw(&self, rng: &mut Rng) -> Option<T> {
        if self.0.is_empty() {
            return None;
        }
        let mut left = rng.unit();
        for &(fault, probability) in &self.0 {
            if left < probability {
                return Some(fault);
            }
            left -= probability;
        }
        None
    }
}

impl<T: NamedVariants> FromStr for Faults<T> {
    type Err = FaultError;

    /// Reads `stall=0.1,garbage=0.05`; a name alone is certain.
    fn from_str(text: &str) -> Result<Faults<T>, FaultError> {
        let mut faults = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (id, probability) = part.split_once('=').unwrap_or((part, "1"));
            let probability = probability
                .parse()
                .ok()
                .filter(|number| (0.0..=1.0).contains(number))
                .ok_or_else(|| FaultError::Probability(part.to_owned()))?;
            faults.push((find(id)?, probability));
        }
        let sum: f64 = faults.iter().map(|(_, probability)| probability).sum();
        // a little more than 1 is how thirds add up
        if sum > 1.0 + 1e-9 {
            return Err(FaultError::Sum(sum));
        }
        Ok(Faults(faults))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_fault_reads_back_from_its_id() {
        for fault in Fault::ALL {
            assert_eq!(fault.id().parse(), Ok(fault));
        }
    }

    #[test]
    fn probabilities_are_kept_to() {
        let faults: Faults = "stall=0.1,garbage=0.3".parse().unwrap();
        let mut rng = Rng::seeded(1);
        let draws: Vec<_> = (0..10_000).map(|_| faults.draw(&mut rng)).collect();
        let share = |wanted| draws.iter().filter(|&&fault| fault == wanted).count();
        assert!((900..1100).contains(&share(Some(Fault::Stall))));
        assert!((2800..3200).contains(&share(Some(Fault::Garbage))));
        assert!((5800..6200).contains(&share(None)));
    }

    #[test]
    fn an_invalid_fault_is_refused_and_the_names_are_printed() {
        let refused = |text: &str| text.parse::<Faults>().unwrap_err().to_string();
        assert!(refused("tsall=0.1").contains("stall-mid-body"));
        assert!(refused("stall=2").contains("from 0 to 1"));
        assert!(refused("stall=0.6,garbage=0.6").contains("1.2"));
        assert_eq!("stall".parse::<Faults>(), "stall=1".parse::<Faults>());
    }
}
