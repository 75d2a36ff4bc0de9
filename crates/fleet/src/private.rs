//! Files and folders with permissions for their owner only: queues and stores hold header fields
//! and responses.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Creates an empty file for its owner only; an existing file stays as it is. A failure shows when
/// the file is opened.
pub(crate) fn make_file(path: &Path) {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = options.open(path);
}

/// Creates a folder and its parents for their owner only; an existing folder stays as it is.
///
/// # Errors
/// If it cannot be created.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
