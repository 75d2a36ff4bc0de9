//! Locks that keep two harnesses in one tree from overwriting each other's installed packages and
//! results.

use super::environment::cache;
use anyhow::Context;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};

/// A lock that one harness holds until this value is dropped.
pub(super) struct Lock {
    // the system releases it when the file is closed, also after a crash
    _file: File,
}

/// What a lock protects.
#[derive(Clone, Copy)]
pub(super) enum Of {
    /// The folders of clients while something is installed or built there.
    Folders,
    /// `measured.json` from reading to writing.
    Measured,
}

impl Lock {
    /// Waits until no other process has it.
    pub(super) fn take(of: Of) -> anyhow::Result<Lock> {
        let name = match of {
            Of::Folders => "folders.lock",
            Of::Measured => "measured.lock",
        };
        fs::create_dir_all(cache())?;
        let path = cache().join(name);
        let file = File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(&path)
            .with_context(|| path.display().to_string())?;
        while let Err(error) = flock(&file, FlockOperation::LockExclusive) {
            if error != rustix::io::Errno::INTR {
                return Err(error).with_context(|| path.display().to_string());
            }
        }
        Ok(Lock { _file: file })
    }
}
