//! Folders with permissions for their owner only: stores hold responses.

use std::fs::DirBuilder;
use std::io;
use std::path::Path;

/// Creates a folder and its parents for their owner only; an existing folder stays as it is.
///
/// # Errors
/// If it cannot be created.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
