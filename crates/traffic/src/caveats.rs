//! The caveats of a run, each once. Bounded memory.

use intact_ledger::Caveat;

/// Caveats that are kept.
const CAVEATS: usize = 256;

/// The caveats so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Caveats {
    kept: Vec<Caveat>,
    /// Those beyond the limit, and whether one of them reports missing traffic.
    more: u64,
    more_is_missing: bool,
}

impl Caveats {
    pub(super) fn add(&mut self, caveat: &Caveat) {
        if self.kept.contains(caveat) {
            return;
        }
        if self.kept.len() < CAVEATS {
            self.kept.push(caveat.clone());
        } else {
            self.more += 1;
            self.more_is_missing |= caveat.incomplete;
        }
    }

    /// The caveats, and how many more there are.
    pub(super) fn all(&self) -> Vec<Caveat> {
        let mut all = self.kept.clone();
        if self.more > 0 {
            let message = format!("{} more caveats are not listed", self.more);
            all.push(Caveat {
                incomplete: self.more_is_missing,
                ..Caveat::new("many-caveats", message)
            });
        }
        all
    }
}
