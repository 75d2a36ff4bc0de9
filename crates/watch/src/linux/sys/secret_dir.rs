//! A folder in memory for secrets, gone when we are, however we end: a child in a session of its own waits for that.
#![allow(
    unsafe_code,
    reason = "mkdtemp, fork for the guard, fallocate to erase"
)]

use super::checked;
use super::fallback_responder::close_from;
use std::ffi::{CString, OsStr};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where a file system in memory usually is; the last may be on a disk.
const PLACES: [&str; 3] = ["/dev/shm", "/run", "/tmp"];
/// All files that can be in there, so that the guard needs to allocate nothing.
const FILES: [&str; 2] = ["keys", "preload.cjs"];

/// A folder with secrets.
pub(crate) struct SecretDir {
    path: PathBuf,
    guard: libc::pid_t,
    /// Closed by the kernel when we end; the guard waits for that.
    alive: Option<OwnedFd>,
}

impl SecretDir {
    /// Makes one. Where we are root, programs that drop that can still write into the files that they are told of.
    pub(crate) fn make() -> io::Result<SecretDir> {
        let path = PLACES
            .iter()
            .find_map(|place| make_folder(place).ok())
            .ok_or(io::ErrorKind::PermissionDenied)?;
        if is_root() {
            fs::set_permissions(&path, Permissions::from_mode(0o711))?;
        }
        let (alive, guard) = set_guard(&path).inspect_err(|_| {
            let _ = fs::remove_dir(&path);
        })?;
        Ok(SecretDir {
            path,
            guard,
            alive: Some(alive),
        })
    }

    /// Makes the file that programs append keys to; we read and erase.
    pub(crate) fn make_key_log(&self) -> io::Result<(PathBuf, File)> {
        let path = self.path.join(FILES[0]);
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

    /// Writes what Node loads before the program.
    pub(crate) fn make_preload(&self, text: &str) -> io::Result<PathBuf> {
        let path = self.path.join(FILES[1]);
        fs::write(&path, text)?;
        let mode = if is_root() { 0o644 } else { 0o600 };
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        Ok(path)
    }
}

impl Drop for SecretDir {
    fn drop(&mut self) {
        drop(self.alive.take());
        // SAFETY: waits for the child that we started; somebody may have collected it already.
        unsafe { libc::waitpid(self.guard, std::ptr::null_mut(), 0) };
    }
}

/// Erases the first bytes of a file that others append to; their positions stay.
pub(crate) fn erase(file: &File, until: u64) {
    let Ok(until) = libc::off_t::try_from(until) else {
        return;
    };
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: takes plain numbers. Not every file system can; the folder's end erases all of it.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, 0, until) };
}

fn is_root() -> bool {
    // SAFETY: asks for a number.
    unsafe { libc::geteuid() == 0 }
}

fn make_folder(place: &str) -> io::Result<PathBuf> {
    let mut name = format!("{place}/intact-XXXXXX\0").into_bytes();
    // SAFETY: the bytes end in a NUL; only the X's are written over.
    let made = unsafe { libc::mkdtemp(name.as_mut_ptr().cast()) };
    if made.is_null() {
        return Err(io::Error::last_os_error());
    }
    name.pop();
    Ok(PathBuf::from(std::ffi::OsString::from_vec(name)))
}

fn set_guard(folder: &Path) -> io::Result<(OwnedFd, libc::pid_t)> {
    let name = |path: &OsStr| {
        CString::new(path.as_bytes()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
    };
    let files = FILES.map(|file| name(folder.join(file).as_os_str()));
    let [keys, preload] = files;
    let (keys, preload, folder) = (keys?, preload?, name(folder.as_os_str())?);
    let (waiting, alive) = io::pipe()?;
    let (waiting, alive) = (OwnedFd::from(waiting), OwnedFd::from(alive));
    // SAFETY: the child makes system calls only, on memory that was made before.
    let guard = checked(unsafe { libc::fork() })?;
    if guard != 0 {
        return Ok((alive, guard as libc::pid_t));
    }
    // SAFETY: as above; it never returns.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"intact-guard".as_ptr());
        let end = waiting.as_raw_fd();
        libc::dup2(end, 0);
        close_from(1);
        libc::close(alive.as_raw_fd());
        let mut byte = 0u8;
        while libc::read(0, (&raw mut byte).cast(), 1) != 0 {
            if *libc::__errno_location() != libc::EINTR {
                break;
            }
        }
        libc::unlink(keys.as_ptr());
        libc::unlink(preload.as_ptr());
        libc::rmdir(folder.as_ptr());
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_refuge_is_gone_with_its_owner() {
        let refuge = SecretDir::make().unwrap();
        let (keys, mut file) = refuge.make_key_log().unwrap();
        let preload = refuge.make_preload("// nothing").unwrap();
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
        let folder = refuge.path.clone();
        assert!(preload.exists());
        drop(refuge);
        assert!(!folder.exists());
    }
}
