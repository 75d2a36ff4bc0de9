//! A ledger on disk: a folder with `run.json`, `events.jsonl.zst` and `tally.json`.
//!
//! The events are appended in compressed frames that each stand for themselves, so that whatever a `kill -9` leaves
//! behind can be read up to the last whole line; `tally.json` is replaced atomically. A check has a `card.json` beside them,
//! replaced in the same way after every probe.

mod reader;
mod writer;

pub use reader::{Events, Reader};
pub use writer::Writer;

use std::path::{Path, PathBuf};

const RUN: &str = "run.json";
const EVENTS: &str = "events.jsonl.zst";
const TALLY: &str = "tally.json";
const CARD: &str = "card.json";

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
        /// What it says.
        schema: String,
    },
    /// A file is not what it should be.
    #[error("{path}: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
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
}
