//! A private folder on a disk, with whatever programs write into it. A guard process removes it
//! after this process has ended for any reason. Must not hold secrets: [`crate::secret_dir`] does.

use crate::guard::Guard;
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The name of the process that removes the folder, until it runs the shell.
const GUARD_NAME: &CStr = c"intact-guard";
/// Removes `$0`. A program that outlives us may still write there, and some tools leave folders
/// that may not be written, so it tries for 5 s.
const REMOVE: &CStr = c"exec >/dev/null 2>&1; n=0; \
    while [ -e \"$0\" ] && [ $n -lt 50 ]; do \
    rm -rf -- \"$0\" && exit; chmod -R u+rwX -- \"$0\"; n=$((n+1)); sleep 0.1; done";

/// A folder that is removed with all that is in it.
pub struct ScratchDir {
    path: PathBuf,
    guard: Guard,
}

impl ScratchDir {
    /// Creates a folder that only this user may enter, and its guard. The path has no symbolic
    /// links.
    ///
    /// # Errors
    /// Those of mkdir(2) in `parent`, and of fork(2).
    pub fn make(parent: &Path) -> io::Result<ScratchDir> {
        let parent = parent.canonicalize()?;
        let made = (0..).find_map(|nth| {
            let path = parent.join(format!("intact-{}-{nth}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => Some(Ok(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && nth < 1000 => None,
                Err(error) => Some(Err(error)),
            }
        });
        let path = made.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))?;
        match start_guard(&path) {
            Ok(guard) => Ok(ScratchDir { path, guard }),
            Err(error) => {
                let _ = fs::remove_dir(&path);
                Err(error)
            }
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // what this leaves is the guard's
        let _ = fs::remove_dir_all(&self.path);
        self.guard.finish();
    }
}

fn start_guard(path: &Path) -> io::Result<Guard> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let words = [
        c"sh".as_ptr(),
        c"-c".as_ptr(),
        REMOVE.as_ptr(),
        path.as_ptr(),
    ];
    let words = words.into_iter().chain([std::ptr::null()]);
    let words: Vec<*const libc::c_char> = words.collect();
    let remove = || {
        // SAFETY: the words end in NULs, and their list in a null pointer.
        unsafe { libc::execv(c"/bin/sh".as_ptr(), words.as_ptr()) };
    };
    // SAFETY: `remove` makes one system call, on memory that exists already.
    unsafe { Guard::start(GUARD_NAME, None, remove) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_scratch_dir_is_private_and_gone_with_its_owner() {
        let scratch = ScratchDir::make(&std::env::temp_dir()).unwrap();
        let path = scratch.path().to_owned();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
        let closed = path.join("a folder/that may not be written");
        fs::create_dir_all(&closed).unwrap();
        fs::write(closed.join("file"), "text").unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
        let other = ScratchDir::make(&std::env::temp_dir()).unwrap();
        assert_ne!(other.path(), path);
        drop(scratch);
        assert!(!path.exists());
        assert!(other.path().exists());
    }
}
