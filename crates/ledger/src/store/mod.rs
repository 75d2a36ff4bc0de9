//! A ledger on disk: a folder with `run.json`, `events.jsonl.zst`, `tally.json` and `end.json`.
//!
//! Events are appended in compressed frames, each complete in itself. After a `kill -9` the file
//! can be read up to its last complete line. `tally.json` is replaced atomically. A check also has
//! a `server-profile.json`, replaced in the same way after every probe. `end.json` is written last:
//! a ledger without it belongs to a run that did not end. A bench of services also has a folder
//! `outgoing` with a ledger for each service and round.

mod outgoing;
mod reader;
mod writer;

pub use outgoing::{Outgoing, outgoing};
pub use reader::{Events, Reader};
pub use writer::Writer;

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const RUN: &str = "run.json";
const EVENTS: &str = "events.jsonl.zst";
const TALLY: &str = "tally.json";
const PROFILE: &str = "server-profile.json";
const END: &str = "end.json";

/// Whether a folder holds a ledger, whole or not.
pub fn is_ledger(folder: &Path) -> bool {
    folder.join(RUN).is_file()
}

/// The end mark of a ledger.
#[derive(Debug, Serialize, Deserialize)]
struct End {
    /// Wall time of the mark (RFC 3339, UTC).
    ended: String,
    /// Number of events that were written.
    events: u64,
}

/// Why a ledger could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder holds a ledger already.
    #[error("{0} holds a ledger already: name an empty or new folder")]
    Exists(PathBuf),
    /// The folder holds no ledger.
    #[error("{0} is no ledger: it has no readable run.json")]
    NotALedger(PathBuf),
    /// The ledger was written in a format that this version does not know.
    #[error("{path} has the schema {schema}, this version reads {ours}: use a newer intact", ours = crate::run::SCHEMA)]
    Schema {
        /// The folder.
        path: PathBuf,
        /// The schema in the file.
        schema: String,
    },
    /// A file has other content than expected.
    #[error("{path}: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// The error.
        source: serde_json::Error,
    },
    /// Its counts are larger than those of any run.
    #[error("{0}: the counts add up to more than 2^62: the file is damaged")]
    Counts(PathBuf),
    /// A system call on a file failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

impl StoreError {
    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> StoreError + '_ {
        move |source| StoreError::Io {
            path: path.to_owned(),
            source,
        }
    }

    fn json(path: &Path) -> impl FnOnce(serde_json::Error) -> StoreError + '_ {
        move |source| StoreError::Json {
            path: path.to_owned(),
            source,
        }
    }
}
