//! Reads a ledger folder, complete or cut off.

use super::{END, EVENTS, End, PROFILE, RUN, StoreError, TALLY};
use crate::event::{Caveat, Row};
use crate::input_file;
use crate::run::{Run, SCHEMA};
use crate::server_profile::ServerProfile;
use crate::tally::Tally;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Longest line of an event, in bytes.
const LONGEST_LINE: u64 = 4 << 20;
/// Limit of a file that is read as a whole, in bytes: histograms of many variants and rounds.
const LARGEST: u64 = 256 << 20;
/// Limit of the header of a ledger, in bytes.
const LARGEST_HEAD: u64 = 16 << 20;
/// Limit of the sum of a tally's counts, so that a consumer can add them without a check.
const LARGEST_SUM: u64 = 1 << 62;
/// Limit of the window of a frame (RFC 8878 3.1.1.1.2), as a power of two; the writer's is smaller.
const LARGEST_WINDOW: u32 = 23;

/// The part of `run.json` that every schema has.
#[derive(Deserialize)]
struct Head {
    schema: String,
}

/// A ledger folder opened for reading.
#[derive(Debug)]
pub struct Reader {
    folder: PathBuf,
    run: Run,
}

impl Reader {
    /// Opens a folder and reads the header of its ledger.
    pub fn open(folder: &Path) -> Result<Reader, StoreError> {
        let path = folder.join(RUN);
        let json = input_file::read(&path, LARGEST_HEAD).map_err(|source| match source.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                StoreError::NotALedger(folder.to_owned())
            }
            _ => StoreError::io(&path)(source),
        })?;
        let Ok(Head { schema }) = serde_json::from_slice(&json) else {
            return Err(StoreError::NotALedger(folder.to_owned()));
        };
        if schema != SCHEMA {
            return Err(StoreError::Schema {
                path: folder.to_owned(),
                schema,
            });
        }
        let run = serde_json::from_slice(&json).map_err(StoreError::json(&path))?;
        Ok(Reader {
            folder: folder.to_owned(),
            run,
        })
    }

    /// The header of the ledger.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The last tally that was written, if any.
    pub fn tally(&self) -> Result<Option<Tally>, StoreError> {
        let tally: Option<Tally> = self.whole(TALLY)?;
        match tally {
            Some(tally) if tally.sum_of_counts() > LARGEST_SUM => {
                Err(StoreError::Counts(self.folder.join(TALLY)))
            }
            tally => Ok(tally),
        }
    }

    /// The server profile, up to where the check was; `None` in other ledgers.
    pub fn card(&self) -> Result<Option<ServerProfile>, StoreError> {
        self.whole(PROFILE)
    }

    fn whole<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StoreError> {
        let path = self.folder.join(name);
        match input_file::read(&path, LARGEST) {
            Ok(json) => serde_json::from_slice(&json)
                .map(Some)
                .map_err(StoreError::json(&path)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io(&path)(error)),
        }
    }

    /// The events that can be read.
    pub fn events(&self) -> Result<Events, StoreError> {
        let end: Option<End> = self.whole(END)?;
        let path = self.folder.join(EVENTS);
        let file = input_file::open(&path).map_err(StoreError::io(&path))?;
        // a decoder takes an empty file for a truncated one
        let empty = file.metadata().map_err(StoreError::io(&path))?.len() == 0;
        let lines: Box<dyn BufRead> = if empty {
            Box::new(io::empty())
        } else {
            let mut decoder = zstd::Decoder::new(file).map_err(StoreError::io(&path))?;
            decoder
                .window_log_max(LARGEST_WINDOW)
                .map_err(StoreError::io(&path))?;
            Box::new(BufReader::new(decoder))
        };
        Ok(Events {
            lines,
            line: Vec::new(),
            written: end.map(|end| end.events),
            read: 0,
            unknown: 0,
            first_unknown: None,
            over: false,
            cut: false,
        })
    }
}

/// The events of a ledger in the order in which they were written. A missing tail ends the
/// iteration; [`Events::caveats`] reports it.
pub struct Events {
    lines: Box<dyn BufRead>,
    line: Vec<u8>,
    /// Number of events according to the end mark; `None` if the run did not end.
    written: Option<u64>,
    read: u64,
    unknown: u64,
    /// The line of the first event that could not be read.
    first_unknown: Option<u64>,
    /// The file was read to its end.
    over: bool,
    cut: bool,
}

impl Events {
    /// Caveats for missing or unreadable events. Complete after the iteration.
    pub fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        if self.written.is_none() {
            caveats.push(Caveat::incomplete(
                "run-not-finished",
                "the run of this ledger did not come to its end: it was killed or is still running, so counts are lower bounds",
            ));
        }
        let lines = self.read + self.unknown;
        let missing = self.written.map_or(0, |all| all.saturating_sub(lines));
        if self.cut {
            caveats.push(Caveat::incomplete(
                "cut-tail",
                "the file of events was cut off: events after the cut are missing",
            ));
        } else if self.over && missing > 0 {
            caveats.push(Caveat::incomplete(
                "cut-tail",
                format!("events at the end of the ledger are missing from its file: {missing}"),
            ));
        }
        if let Some(line) = self.first_unknown {
            caveats.push(Caveat::incomplete(
                "unknown-events",
                format!(
                    "skipped {} events that are damaged or of a newer intact; the first is in line {line}",
                    self.unknown
                ),
            ));
        }
        caveats
    }
}

impl Iterator for Events {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        while !self.cut {
            self.line.clear();
            let mut limited = (&mut self.lines).take(LONGEST_LINE);
            match limited.read_until(b'\n', &mut self.line) {
                Ok(0) => {
                    self.over = true;
                    return None;
                }
                Ok(_) if self.line.last() == Some(&b'\n') => {
                    match serde_json::from_slice(&self.line) {
                        Ok(row) => {
                            self.read += 1;
                            return Some(row);
                        }
                        Err(_) => {
                            self.unknown += 1;
                            let line = self.read + self.unknown;
                            self.first_unknown.get_or_insert(line);
                        }
                    }
                }
                Ok(_) | Err(_) => self.cut = true,
            }
        }
        None
    }
}
