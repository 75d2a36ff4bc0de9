//! A folder in memory for secrets. A guard process removes it after this process has ended for any
//! reason.
//!
//! If this process is root, programs that drop root still need its files, so the permissions let
//! every user open them. To protect the files, the name of the inner folder is random, and no user
//! may list the outer folder.

use crate::guard::Guard;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::process::Resource;
use rustix::rand::GetRandomFlags;
use std::ffi::{CStr, CString};
use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The name of the process that removes the folder.
pub const GUARD_NAME: &CStr = c"intact-guard";

/// Folders that usually are in memory; the last one may be on a disk.
const PARENTS: [&str; 3] = ["/dev/shm", "/run", "/tmp"];
/// Bytes that are reserved after the end of the log, so that a program that logs never finds the
/// file system full.
const ROOM: u64 = 64 * 1024;
/// Smallest accepted limit of the size of files, in bytes: a lower one ends programs that append to
/// a log for long (SIGXFSZ).
const MIN_FILE_SIZE: u64 = 1 << 30;

/// A folder for secret files, whose names are known from the start: the guard must not allocate
/// memory.
pub struct SecretDir {
    path: PathBuf,
    guard: Guard,
}

/// The names of the files in the folder.
#[derive(Clone, Copy, Debug)]
pub struct SecretFiles {
    /// A log, which programs append to and we read.
    pub log: &'static str,
    /// A text, which programs read.
    pub text: &'static str,
}

/// No folder can hold secrets: the folders that were tried, with their errors.
#[derive(Debug)]
pub struct NoPlace(Vec<(&'static str, io::Error)>);

impl fmt::Display for NoPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (place, error)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(out, "{comma}{place}: {error}")?;
        }
        Ok(())
    }
}

impl SecretDir {
    /// Creates the folder, its guard and the log.
    ///
    /// # Errors
    /// If no file system is writable and has room, the size of files is limited, or the guard
    /// cannot be started.
    pub fn make(files: SecretFiles) -> Result<(SecretDir, File), NoPlace> {
        let limit = rustix::process::getrlimit(Resource::Fsize).current;
        if limit.is_some_and(|limit| limit < MIN_FILE_SIZE) {
            let error = io::Error::from_raw_os_error(libc::EFBIG);
            return Err(NoPlace(vec![("the limit of ulimit -f", error)]));
        }
        let mut tried = Vec::new();
        for parent in PARENTS {
            match SecretDir::make_in(parent, files) {
                Ok(made) => return Ok(made),
                Err(error) => tried.push((parent, error)),
            }
        }
        Err(NoPlace(tried))
    }

    /// The guard is there before the folders are, so that no end of this process leaves one.
    fn make_in(parent: &str, files: SecretFiles) -> io::Result<(SecretDir, File)> {
        let (shown, name) = (random_name()?, random_name()?);
        let outer = Path::new(parent).join(format!("intact-{}", &shown[..12]));
        let path = outer.join(&name);
        let guard = start_guard(&[&path, &outer], &[files.log, files.text])?;
        // dropped in vain, it removes what there is
        let made = SecretDir { path, guard };
        let log = made.fill(&outer, files.log)?;
        Ok((made, log))
    }

    fn fill(&self, outer: &Path, log: &str) -> io::Result<File> {
        for folder in [outer, &self.path] {
            fs::DirBuilder::new().mode(0o700).create(folder)?;
        }
        if is_root() {
            for folder in [&self.path, outer] {
                fs::set_permissions(folder, Permissions::from_mode(0o711))?;
            }
        }
        let log = create(&self.path.join(log), 0o622)?;
        reserve(&log, 0)?;
        Ok(log)
    }

    /// The path of a file with this name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes the text file with this name.
    ///
    /// # Errors
    /// Those of open(2) and write(2): the file exists already.
    pub fn write_text(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        use std::io::Write;
        let path = self.path(name);
        create(&path, 0o644)?.write_all(text.as_bytes())?;
        Ok(path)
    }
}

impl Drop for SecretDir {
    fn drop(&mut self) {
        self.guard.finish();
    }
}

/// Erases the first bytes of a log, and reserves room after its end; offsets stay valid. A file
/// system without holes keeps the bytes until the folder is removed.
pub fn erase(log: &File, until: u64) {
    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let _ = fallocate(log, mode, 0, until);
    // if the file system has become full, the remaining room must suffice
    let _ = reserve(log, until);
}

/// Reserves room from an offset on, without a change of the file's size.
fn reserve(log: &File, from: u64) -> io::Result<()> {
    match fallocate(log, FallocateFlags::KEEP_SIZE, from, ROOM) {
        // this file system reserves nothing
        Err(Errno::OPNOTSUPP) => Ok(()),
        reserved => Ok(reserved?),
    }
}

/// Creates a file for us, with these additional permissions for other users.
fn create(path: &Path, shared: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600);
    let file = file.open(path)?;
    if is_root() {
        file.set_permissions(Permissions::from_mode(shared))?;
    }
    Ok(file)
}

/// 128 random bits.
fn random_name() -> io::Result<String> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Starts the guard of these folders, of which the first has the files.
fn start_guard(folders: &[&Path], files: &[&str]) -> io::Result<Guard> {
    let name = |path: PathBuf| CString::new(path.into_os_string().into_vec());
    let files = files.iter().map(|file| name(folders[0].join(file)));
    let files: Vec<CString> = files.collect::<Result<_, _>>()?;
    let folders = folders.iter().map(|folder| name(folder.to_path_buf()));
    let folders: Vec<CString> = folders.collect::<Result<_, _>>()?;
    let remove = || {
        for file in &files {
            // SAFETY: the path ends in a NUL.
            unsafe { libc::unlink(file.as_ptr()) };
        }
        for folder in &folders {
            // SAFETY: the path ends in a NUL.
            unsafe { libc::rmdir(folder.as_ptr()) };
        }
    };
    // SAFETY: `remove` makes system calls only, on paths that exist already.
    unsafe { Guard::start(GUARD_NAME, None, remove) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::fs::MetadataExt;

    const FILES: SecretFiles = SecretFiles {
        log: "keys",
        text: "preload.cjs",
    };

    #[test]
    fn a_secret_dir_is_gone_with_its_owner() {
        let (secrets, mut log) = SecretDir::make(FILES).unwrap();
        let keys = secrets.path(FILES.log);
        let preload = secrets.write_text(FILES.text, "// nothing").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&keys) & 0o044, 0, "others may not read keys");
        let mut other = OpenOptions::new().append(true).open(&keys).unwrap();
        other.write_all(b"secret\n").unwrap();
        let mut text = String::new();
        log.read_to_string(&mut text).unwrap();
        assert_eq!(text, "secret\n");
        erase(&log, 7);
        other.write_all(b"more\n").unwrap();
        let all = fs::read(&keys).unwrap();
        assert_eq!(all, b"\0\0\0\0\0\0\0more\n");
        let inner = secrets.path.clone();
        let outer = inner.parent().unwrap();
        for folder in [&inner, outer] {
            assert_eq!(mode(folder) & 0o066, 0, "others may list nothing");
        }
        let name = inner.file_name().unwrap();
        assert_eq!(name.len(), 32, "others may not guess {name:?}");
        assert!(preload.exists());
        drop(secrets);
        assert!(!outer.exists());
    }

    #[test]
    fn a_folder_is_there_only_after_its_guard() {
        let parent = std::env::temp_dir().join(format!("intact-guarded-{}", std::process::id()));
        fs::create_dir(&parent).unwrap();
        let entries = || fs::read_dir(&parent).unwrap().count();
        for _ in 0..100 {
            std::thread::scope(|scope| {
                let path = parent.to_str().unwrap();
                let (seen, waits) = std::sync::mpsc::channel::<()>();
                let made = scope.spawn(move || {
                    let made = SecretDir::make_in(path, FILES);
                    // a child of a thread that ends is for a moment no child of any
                    let _ = waits.recv();
                    made
                });
                while entries() == 0 {}
                let processes = crate::process::descendants(vec![std::process::id()]);
                assert!(processes.count() > 1, "no guard would remove the folder");
                drop(seen);
                drop(made.join().unwrap().unwrap());
            });
            assert_eq!(entries(), 0);
        }
        fs::remove_dir(&parent).unwrap();
    }

    #[test]
    fn room_beyond_the_end_of_the_log_is_reserved() {
        let (secrets, log) = SecretDir::make(FILES).unwrap();
        let reserved = || log.metadata().unwrap().blocks() * 512;
        if reserved() == 0 {
            // this file system reserves nothing
            return;
        }
        assert!(reserved() >= ROOM);
        let keys = secrets.path(FILES.log);
        fs::write(keys, vec![b'x'; 100_000]).unwrap();
        erase(&log, 100_000);
        assert!(reserved() >= ROOM);
        assert_eq!(log.metadata().unwrap().len(), 100_000);
    }

    #[test]
    fn a_failure_names_the_folders_and_their_errors() {
        let full = io::Error::from_raw_os_error(libc::ENOSPC);
        let denied = io::Error::from_raw_os_error(libc::EACCES);
        let words = NoPlace(vec![("/dev/shm", full), ("/run", denied)]).to_string();
        assert!(words.starts_with("/dev/shm: No space left"), "{words}");
        assert!(words.contains(", /run: Permission denied"), "{words}");
    }
}
