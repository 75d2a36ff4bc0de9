//! A folder in memory for secrets. A guard process removes it once we have ended, however we end.

use crate::guard::Guard;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The name of the process that removes the folder.
pub const GUARD_NAME: &CStr = c"intact-guard";

/// Folders that usually are file systems in memory; the last may be on a disk.
const PARENTS: [&str; 3] = ["/dev/shm", "/run", "/tmp"];

/// A folder for secret files, whose names are known from the start: the guard must not allocate memory.
pub struct SecretDir<const FILES: usize> {
    path: PathBuf,
    names: [&'static str; FILES],
    guard: Guard,
}

impl<const FILES: usize> SecretDir<FILES> {
    /// Makes the folder and its guard. If we are root, programs that drop that right can still reach files in the folder.
    ///
    /// # Errors
    /// No file system in memory can be written to, or the guard cannot be started.
    pub fn make(names: [&'static str; FILES]) -> io::Result<SecretDir<FILES>> {
        let path = PARENTS
            .iter()
            .find_map(|parent| make_folder(parent).ok())
            .ok_or(io::ErrorKind::PermissionDenied)?;
        if is_root() {
            fs::set_permissions(&path, Permissions::from_mode(0o711))?;
        }
        let guard = start_guard(&path, names).inspect_err(|_| {
            let _ = fs::remove_dir(&path);
        })?;
        Ok(SecretDir { path, names, guard })
    }

    /// Creates the file of that index, which programs append to and we read. If we are root, every user may append.
    ///
    /// # Errors
    /// Those of open(2): the file exists already.
    pub fn create_log(&self, index: usize) -> io::Result<(PathBuf, File)> {
        let path = self.path.join(self.names[index]);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        if is_root() {
            file.set_permissions(Permissions::from_mode(0o622))?;
        }
        Ok((path, file))
    }

    /// Writes the file of that index, which programs read. If we are root, every user may read it.
    ///
    /// # Errors
    /// Those of open(2) and write(2).
    pub fn write_text(&self, index: usize, text: &str) -> io::Result<PathBuf> {
        let path = self.path.join(self.names[index]);
        fs::write(&path, text)?;
        let mode = if is_root() { 0o644 } else { 0o600 };
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        Ok(path)
    }
}

impl<const FILES: usize> Drop for SecretDir<FILES> {
    fn drop(&mut self) {
        self.guard.finish();
    }
}

/// Erases the first bytes of a file that others append to; offsets stay valid. A file system without holes keeps the bytes
/// until the folder is removed.
pub fn erase(file: &File, until: u64) {
    let Ok(until) = libc::off_t::try_from(until) else {
        return;
    };
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: takes plain numbers.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, 0, until) };
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn make_folder(parent: &str) -> io::Result<PathBuf> {
    let mut name = format!("{parent}/intact-XXXXXX\0").into_bytes();
    // SAFETY: the bytes end in a NUL; only the X's are written over.
    let made = unsafe { libc::mkdtemp(name.as_mut_ptr().cast()) };
    if made.is_null() {
        return Err(io::Error::last_os_error());
    }
    name.pop();
    Ok(PathBuf::from(OsString::from_vec(name)))
}

fn start_guard<const FILES: usize>(folder: &Path, names: [&str; FILES]) -> io::Result<Guard> {
    let name = |path: &OsStr| {
        CString::new(path.as_bytes()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
    };
    let mut files = Vec::with_capacity(FILES);
    for file in names {
        files.push(name(folder.join(file).as_os_str())?);
    }
    let folder = name(folder.as_os_str())?;
    let remove = || {
        for file in &files {
            // SAFETY: the path ends in a NUL.
            unsafe { libc::unlink(file.as_ptr()) };
        }
        // SAFETY: the path ends in a NUL.
        unsafe { libc::rmdir(folder.as_ptr()) };
    };
    // SAFETY: `remove` makes system calls only, on paths that exist already.
    unsafe { Guard::start(GUARD_NAME, None, remove) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_secret_dir_is_gone_with_its_owner() {
        let secrets = SecretDir::make(["keys", "preload.cjs"]).unwrap();
        let (keys, mut file) = secrets.create_log(0).unwrap();
        let preload = secrets.write_text(1, "// nothing").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&keys) & 0o044, 0, "others may not read keys");
        let mut other = OpenOptions::new().append(true).open(&keys).unwrap();
        other.write_all(b"secret\n").unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "secret\n");
        erase(&file, 7);
        other.write_all(b"more\n").unwrap();
        let all = fs::read(&keys).unwrap();
        assert_eq!(all, b"\0\0\0\0\0\0\0more\n");
        let folder = secrets.path.clone();
        assert!(preload.exists());
        drop(secrets);
        assert!(!folder.exists());
    }
}
