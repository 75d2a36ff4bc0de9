//! Files and folders that only their user may read: queues and stores hold header fields and what servers sent.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Makes an empty file that only its user may read; one that is there stays as it is. A failure is left to who opens the file.
pub(crate) fn make_file(path: &Path) {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = options.open(path);
}

/// Makes a folder and those above it, which only their user may enter; one that is there stays as it is.
///
/// # Errors
/// It cannot be made.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
