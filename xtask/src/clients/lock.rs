//! Locks that keep two harnesses in one tree, and two threads of one harness, from overwriting each
//! other's installed packages and results.

use super::environment::cache;
use anyhow::Context;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};

/// The lock of the folders of clients while something is installed or built there.
pub(super) const FOLDERS: &str = "folders.lock";
/// The lock of `measured.json` from reading to writing.
pub(super) const MEASURED: &str = "measured.lock";

/// Waits until no other holder has the lock. The system releases it when the file is closed, also
/// after a crash.
pub(super) fn take(name: &str) -> anyhow::Result<File> {
    fs::create_dir_all(cache())?;
    let path = cache().join(name);
    let lock = || {
        let file = File::options().create(true).append(true).open(&path)?;
        rustix::io::retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
        anyhow::Ok(file)
    };
    lock().with_context(|| path.display().to_string())
}
