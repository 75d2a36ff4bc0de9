//! What a run loses other than the setup of avoidable connections: lookups and requests that
//! failed. Must not write sentences.

use super::figures::Figures;

/// The share from which on a loss is worth a sentence.
pub(super) const NOTEWORTHY: f64 = 0.05;

/// What is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Lookups that failed and that a request waited for, of all lookups.
    Lookups,
    /// Time of requests without a complete response, of the time of all requests.
    Time,
    /// Requests without a complete response, of all requests.
    Requests,
    /// Dials that failed, of all dials.
    Dials,
}

impl Loss {
    /// The share of it that was lost, 0 to 1.
    pub(super) fn share(self, totals: &Figures) -> f64 {
        let of = |part: u64, all: u64| part as f64 / all.max(1) as f64;
        match self {
            Loss::Lookups => of(totals.lookups_in_vain(), totals.lookups.seen),
            Loss::Time => totals.lost_share.unwrap_or(0.0),
            Loss::Requests => {
                let requests = &totals.counted.requests;
                of(requests.lost(), requests.total)
            }
            Loss::Dials => {
                let (failed, all) = totals.counted.connections.dials();
                of(failed, all)
            }
        }
    }
}

impl Figures {
    /// The largest loss, if it is worth a sentence and larger than the share of time that the setup
    /// of avoidable connections took.
    pub fn leading_loss(&self) -> Option<(Loss, f64)> {
        let all = [Loss::Lookups, Loss::Time, Loss::Requests, Loss::Dials];
        let all = all.map(|loss| (loss, loss.share(self)));
        let is_leading =
            |share: f64| share >= NOTEWORTHY && share > self.counted_wasted_share().unwrap_or(0.0);
        let leading = all.into_iter().filter(|(_, share)| is_leading(*share));
        leading.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}
