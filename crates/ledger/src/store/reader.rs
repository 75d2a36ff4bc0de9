//! Reading a ledger folder, whole or cut off.

use super::{CARD, EVENTS, RUN, StoreError, TALLY};
use crate::card::Card;
use crate::event::{Caveat, Row};
use crate::run::{Run, SCHEMA};
use crate::tally::Tally;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The longest line that is taken for an event.
const LONGEST_LINE: u64 = 4 << 20;

/// A ledger folder opened for reading.
#[derive(Debug)]
pub struct Reader {
    folder: PathBuf,
    run: Run,
}

impl Reader {
    /// Opens a folder and reads the head of its ledger.
    pub fn open(folder: &Path) -> Result<Reader, StoreError> {
        let path = folder.join(RUN);
        let json = fs::read(&path).map_err(|_| StoreError::NotALedger(folder.to_owned()))?;
        let schema = serde_json::from_slice::<serde_json::Value>(&json)
            .ok()
            .and_then(|head| head.get("schema")?.as_str().map(str::to_owned))
            .ok_or_else(|| StoreError::NotALedger(folder.to_owned()))?;
        if schema != SCHEMA {
            return Err(StoreError::Schema {
                path: folder.to_owned(),
                schema,
            });
        }
        let run =
            serde_json::from_slice(&json).map_err(|source| StoreError::Json { path, source })?;
        Ok(Reader {
            folder: folder.to_owned(),
            run,
        })
    }

    /// The head of the ledger.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The last tally that was written, if any was.
    pub fn tally(&self) -> Result<Option<Tally>, StoreError> {
        self.whole(TALLY)
    }

    /// The card of the server that was checked, as far as the check had come; absent in other ledgers.
    pub fn card(&self) -> Result<Option<Card>, StoreError> {
        self.whole(CARD)
    }

    fn whole<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StoreError> {
        let path = self.folder.join(name);
        match fs::read(&path) {
            Ok(json) => serde_json::from_slice(&json)
                .map(Some)
                .map_err(|source| StoreError::Json { path, source }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::Io { path, source }),
        }
    }

    /// The events, as far as they can be read.
    pub fn events(&self) -> Result<Events, StoreError> {
        let path = self.folder.join(EVENTS);
        let file = File::open(&path).map_err(StoreError::io(&path))?;
        // a decoder takes a file without any frame for a cut one
        let empty = file.metadata().map_err(StoreError::io(&path))?.len() == 0;
        let lines: Box<dyn BufRead> = if empty {
            Box::new(std::io::empty())
        } else {
            let decoder = zstd::Decoder::new(file).map_err(StoreError::io(&path))?;
            Box::new(BufReader::new(decoder))
        };
        Ok(Events {
            lines,
            line: Vec::new(),
            unknown: 0,
            cut: false,
        })
    }
}

/// The events of a ledger in the order in which they were written. A cut tail ends the iteration and is told by [`Events::caveats`].
pub struct Events {
    lines: Box<dyn BufRead>,
    line: Vec<u8>,
    unknown: u64,
    cut: bool,
}

impl Events {
    /// What could not be read, once the iteration is over.
    pub fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        if self.cut {
            caveats.push(Caveat::incomplete(
                "cut-tail",
                "the ledger was cut off while it was written: the last second of events is missing",
            ));
        }
        if self.unknown > 0 {
            caveats.push(Caveat::incomplete(
                "unknown-events",
                format!(
                    "{} events were written by a newer intact, or are damaged, and were left out",
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
                Ok(0) => return None,
                Ok(_) if self.line.last() == Some(&b'\n') => {
                    match serde_json::from_slice(&self.line) {
                        Ok(row) => return Some(row),
                        Err(_) => self.unknown += 1,
                    }
                }
                Ok(_) | Err(_) => self.cut = true,
            }
        }
        None
    }
}
