//! Writing a ledger folder.

use super::{CARD, END, EVENTS, End, RUN, StoreError, TALLY};
use crate::event::Event;
use crate::private_file;
use crate::run::Run;
use crate::server_profile::ServerProfile;
use crate::tally::Tally;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Bytes of JSON lines after which a frame is closed without being asked.
const FRAME: usize = 1 << 20;

/// Appends to a ledger folder. It has no clock: its owner calls [`Writer::flush`] every second.
pub struct Writer {
    folder: PathBuf,
    events: File,
    pending: Vec<u8>,
    appended: u64,
}

impl Writer {
    /// Makes the folder and writes the head of the ledger.
    pub fn create(folder: &Path, run: &Run) -> Result<Writer, StoreError> {
        create_folder(folder).map_err(StoreError::io(folder))?;
        if folder.join(RUN).exists() {
            return Err(StoreError::Exists(folder.to_owned()));
        }
        let path = folder.join(EVENTS);
        let events = private_file::append(&path).map_err(StoreError::io(&path))?;
        replace(&folder.join(RUN), run)?;
        Ok(Writer {
            folder: folder.to_owned(),
            events,
            pending: Vec::new(),
            appended: 0,
        })
    }

    /// Adds one event; it reaches the file with the next flush, or when a megabyte has gathered.
    pub fn append(&mut self, event: Event<'_>) -> Result<(), StoreError> {
        let path = self.folder.join(EVENTS);
        serde_json::to_writer(&mut self.pending, &event).map_err(|source| StoreError::Json {
            path: path.clone(),
            source,
        })?;
        self.pending.push(b'\n');
        self.appended += 1;
        if self.pending.len() >= FRAME {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes what is pending as a frame of its own.
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

    /// Replaces the card of the server that is checked.
    pub fn replace_card(&mut self, card: &ServerProfile) -> Result<(), StoreError> {
        replace(&self.folder.join(CARD), card)
    }

    /// Writes what is pending, then the end mark: the run came to its end, and its ledger is complete.
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
    /// What is pending is worth a last try; who needs to know whether it worked calls [`Writer::flush`].
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// Makes the folder, and those above it. Only its owner may read it, unless it exists.
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

/// Writes beside the file, then renames over it, so that a reader sees the old or the new one.
fn replace(path: &Path, content: &impl serde::Serialize) -> Result<(), StoreError> {
    let beside = path.with_extension("new");
    let json = serde_json::to_vec(content).map_err(|source| StoreError::Json {
        path: path.to_owned(),
        source,
    })?;
    let mut file = private_file::create(&beside).map_err(StoreError::io(&beside))?;
    file.write_all(&json).map_err(StoreError::io(&beside))?;
    drop(file);
    fs::rename(&beside, path).map_err(StoreError::io(path))
}
