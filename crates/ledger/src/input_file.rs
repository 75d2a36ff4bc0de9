//! Files that are read as input. Must not read a file that may block or never end: a pipe without a
//! writer, a device.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Opens a regular file. A descriptor of this process (`/dev/fd/3`, as a shell's `<(command)` names
/// it) may be a pipe, because its other end exists.
///
/// # Errors
/// Those of open(2), or the file is a pipe, a device or a socket.
pub fn open(path: &Path) -> io::Result<File> {
    if !is_descriptor(path) {
        // checked first: opening a pipe waits for a writer
        check(std::fs::metadata(path)?.file_type().is_file())?;
    }
    let file = File::open(path)?;
    if !is_descriptor(path) {
        check(file.metadata()?.is_file())?;
    }
    Ok(file)
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// Those of [`open`], or the file is longer.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    Bounded::open(path, most)?.read_to_end(&mut content)?;
    Ok(content)
}

/// A regular file of at most `most` bytes, which is read in pieces. A longer one is an error.
pub struct Bounded {
    file: File,
    most: u64,
    left: u64,
}

impl Bounded {
    /// Opens the file.
    ///
    /// # Errors
    /// Those of [`open`], or the file is longer.
    pub fn open(path: &Path, most: u64) -> io::Result<Bounded> {
        let file = open(path)?;
        if file.metadata()?.len() > most {
            return Err(too_large(most));
        }
        let left = most;
        Ok(Bounded { file, most, left })
    }
}

impl Read for Bounded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        // a pipe has no length
        let left = self.left.checked_sub(read as u64);
        self.left = left.ok_or_else(|| too_large(self.most))?;
        Ok(read)
    }
}

fn too_large(most: u64) -> io::Error {
    let megabytes = most.div_ceil(1 << 20);
    io::Error::new(
        ErrorKind::FileTooLarge,
        format!("larger than {megabytes} MiB, the most that is read"),
    )
}

/// Like [`read`], for text.
///
/// # Errors
/// Those of [`read`], or the content is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let content = read(path, most)?;
    String::from_utf8(content)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "not text in UTF-8"))
}

fn is_descriptor(path: &Path) -> bool {
    ["/dev/fd", "/proc/self/fd"]
        .iter()
        .any(|folder| path.starts_with(folder))
        || path == Path::new("/dev/stdin")
}

fn check(is_file: bool) -> io::Result<()> {
    if is_file {
        return Ok(());
    }
    Err(io::Error::new(
        ErrorKind::InvalidInput,
        "not a regular file: only those are read",
    ))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), "four");
        assert_eq!(read(&path, 3).unwrap_err().kind(), ErrorKind::FileTooLarge);
        for odd in [Path::new("/dev/zero"), folder.path()] {
            assert_eq!(read(odd, 4).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        assert_eq!(read(&link, 4).unwrap_err().kind(), ErrorKind::InvalidInput);
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(
            read_text(&path, 4).unwrap_err().kind(),
            ErrorKind::InvalidData
        );
    }
}
