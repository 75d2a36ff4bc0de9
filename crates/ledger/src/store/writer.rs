//! Writes a ledger folder.

use super::{END, EVENTS, End, PROFILE, RUN, StoreError, TALLY};
use crate::event::Event;
use crate::evidence::Evidence;
use crate::private_file;
use crate::run::Run;
use crate::server_profile::ServerProfile;
use crate::tally::Tally;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Bytes of JSON lines after which a frame is closed without a flush.
const FRAME: usize = 1 << 20;

/// Appends to a ledger folder. It has no clock: its owner calls [`Writer::flush`] every second.
pub struct Writer {
    folder: PathBuf,
    events: File,
    pending: Vec<u8>,
    appended: u64,
}

impl Writer {
    /// Creates the folder and writes the header of the ledger.
    pub fn create(folder: &Path, run: &Run) -> Result<Writer, StoreError> {
        create_folder(folder).map_err(StoreError::io(folder))?;
        if folder.join(RUN).exists() {
            return Err(StoreError::Exists(folder.to_owned()));
        }
        let path = folder.join(EVENTS);
        let events = private_file::append(&path).map_err(StoreError::io(&path))?;
        // hashes of identities stay in memory
        let mut run = run.clone();
        run.evidence = run.evidence.without(Evidence::Identities);
        replace(&folder.join(RUN), &run)?;
        Ok(Writer {
            folder: folder.to_owned(),
            events,
            pending: Vec::new(),
            appended: 0,
        })
    }

    /// Adds one event. It is written with the next flush, or after a megabyte of events.
    pub fn append(&mut self, event: Event<'_>) -> Result<(), StoreError> {
        let path = self.folder.join(EVENTS);
        serde_json::to_writer(&mut self.pending, &event).map_err(StoreError::json(&path))?;
        self.pending.push(b'\n');
        self.appended += 1;
        if self.pending.len() >= FRAME {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the pending events as a frame.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let path = self.folder.join(EVENTS);
        let frame = zstd::bulk::compress(&self.pending, 3).map_err(StoreError::io(&path))?;
        self.events
            .write_all(&frame)
            .map_err(StoreError::io(&path))?;
        self.pending.clear();
        Ok(())
    }

    /// Replaces the tally.
    pub fn replace_tally(&mut self, tally: &Tally) -> Result<(), StoreError> {
        replace(&self.folder.join(TALLY), tally)
    }

    /// Replaces the server profile.
    pub fn replace_profile(&mut self, profile: &ServerProfile) -> Result<(), StoreError> {
        replace(&self.folder.join(PROFILE), profile)
    }

    /// Writes the pending events, then the end mark: the run ended, and its ledger is complete.
    pub fn finish(mut self, ended: jiff::Timestamp) -> Result<(), StoreError> {
        self.flush()?;
        let end = End {
            ended: ended.to_string(),
            events: self.appended,
        };
        replace(&self.folder.join(END), &end)
    }
}

impl Drop for Writer {
    /// Writes the pending events without reporting an error; [`Writer::flush`] reports it.
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// Creates the folder and its parents. Only its owner may read it, unless it exists.
fn create_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        if let Some(above) = folder.parent() {
            fs::create_dir_all(above)?;
        }
        builder.mode(0o700);
    }
    builder.recursive(true).create(folder)
}

/// Writes a temporary file, then renames it, so that a reader sees the old or the new content.
fn replace(path: &Path, content: &impl serde::Serialize) -> Result<(), StoreError> {
    let temporary = path.with_extension("new");
    // in pieces: the tally of many rounds is large
    let file = private_file::create(&temporary).map_err(StoreError::io(&temporary))?;
    let mut file = BufWriter::new(file);
    let written = serde_json::to_writer(&mut file, content).map_err(std::io::Error::from);
    let written = written.and_then(|()| file.flush());
    written.map_err(StoreError::io(&temporary))?;
    fs::rename(&temporary, path).map_err(StoreError::io(path))
}
