//! The ledgers inside a bench's ledger: what a service sent and opened while it was benched, one
//! for each service and round.
//!
//! They are whole ledgers, each with a run of its own. Must not open them: [`super::Reader`] does.

use super::StoreError;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The folder of these ledgers, inside the bench's.
const FOLDER: &str = "outgoing";

/// Where the ledger of one service in one round is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outgoing {
    /// The variant of the bench, from 0.
    pub variant: u32,
    /// The round of the bench, from 1.
    pub round: u32,
}

impl Outgoing {
    /// Its path inside the bench's ledger, with `/`. Services count from 1 there.
    pub fn name(&self) -> String {
        let service = self.variant.saturating_add(1);
        format!("{FOLDER}/service-{service}-round-{}", self.round)
    }

    /// Its folder, inside the bench's.
    pub fn folder(&self, bench: &Path) -> PathBuf {
        bench.join(self.name())
    }

    /// Of the last part of its path.
    fn read(name: &str) -> Option<Outgoing> {
        let (service, round) = name.strip_prefix("service-")?.split_once("-round-")?;
        let service: u32 = service.parse().ok()?;
        Some(Outgoing {
            variant: service.checked_sub(1)?,
            round: round.parse().ok()?,
        })
    }
}

/// The ledgers inside a bench's ledger, by variant and round; none in other ledgers.
///
/// # Errors
/// Their folder cannot be listed.
pub fn outgoing(bench: &Path) -> Result<Vec<Outgoing>, StoreError> {
    let folder = bench.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io(&folder)(error)),
    };
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry.map_err(StoreError::io(&folder))?;
        all.extend(entry.file_name().to_str().and_then(Outgoing::read));
    }
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledgers_of_services_are_found_in_the_order_of_their_rounds() {
        let bench = tempfile::tempdir().unwrap();
        assert_eq!(outgoing(bench.path()).unwrap(), []);
        let of = |variant, round| Outgoing { variant, round };
        assert_eq!(of(0, 2).name(), "outgoing/service-1-round-2");
        let all = [of(0, 2), of(0, 10), of(1, 1)];
        for one in all.iter().rev() {
            fs::create_dir_all(one.folder(bench.path())).unwrap();
        }
        for other in ["service-0-round-1", "service-1", "notes"] {
            fs::create_dir(bench.path().join(FOLDER).join(other)).unwrap();
        }
        assert_eq!(outgoing(bench.path()).unwrap(), all);
    }
}
