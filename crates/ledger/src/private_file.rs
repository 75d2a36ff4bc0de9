//! Files with permissions for their owner only: they hold traffic, or secrets of it. Must not
//! decide where a file is.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Creates a file, or empties an existing one.
///
/// # Errors
/// Those of open(2), or an existing file belongs to another user.
pub fn create(path: &Path) -> io::Result<File> {
    open(
        OpenOptions::new().write(true).create(true).truncate(true),
        path,
    )
}

/// Writes a file, or replaces the content of an existing one.
///
/// # Errors
/// Those of [`create`] and of write(2).
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(content.as_ref())
}

/// Creates a file, or opens an existing one to append to it.
///
/// # Errors
/// Those of [`create`].
pub fn append(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().append(true).create(true), path)
}

/// Creates a folder that only its owner may enter.
///
/// # Errors
/// Those of mkdir(2); it must not exist.
pub fn create_folder(path: &Path) -> io::Result<()> {
    folder_of_owner().create(path)
}

#[cfg(unix)]
fn folder_of_owner() -> DirBuilder {
    let mut builder = DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

#[cfg(not(unix))]
fn folder_of_owner() -> DirBuilder {
    DirBuilder::new()
}

#[cfg(unix)]
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let file = options.mode(0o600).open(path)?;
    // an existing file has kept its permissions; a device or a pipe has none of ours
    let about = file.metadata()?;
    if about.is_file() && about.permissions().mode() & 0o077 != 0 {
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

#[cfg(not(unix))]
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.open(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_new_file_and_an_existing_one_are_their_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new"), folder.path().join("old"));
        std::fs::write(&old, "rest").unwrap();
        std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o644)).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        drop((create(&new).unwrap(), append(&old).unwrap()));
        assert_eq!((mode(&new), mode(&old)), (0o600, 0o600));
        let inner = folder.path().join("inner");
        create_folder(&inner).unwrap();
        assert_eq!(mode(&inner), 0o700);
        assert!(create_folder(&inner).is_err(), "it may be another's");
        assert_eq!(std::fs::read(&old).unwrap(), b"rest");
        drop(create(&old).unwrap());
        assert_eq!(std::fs::read(&old).unwrap(), b"");
        assert!(create(Path::new("/dev/null")).is_ok());
    }
}
