//! A thread dump of HotSpot through its attach interface: the one that `jcmd` uses.
//!
//! The interface is opened by a file and SIGQUIT. Where attaching is turned off, or nothing handles
//! the signal, that would print or end the program. So the program's own statement about itself is
//! read before, and the signal is sent once at most.

use crate::process::{file_of, inner_id};
use intact_sys::process::send_quit;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often the interface is looked for after the signal, and how long after one another.
const TRIES: usize = 60;
const BETWEEN: Duration = Duration::from_millis(5);
/// How long the next part of a dump may take.
const PART: Duration = Duration::from_millis(300);
/// The largest dump that is read.
const MAX_DUMP: u64 = 8 << 20;
/// The largest file of counters that is read.
const MAX_COUNTERS: u64 = 1 << 20;
/// Version 1 of the protocol, the command, three arguments.
const REQUEST: &[u8] = b"1\0threaddump\0\0\0\0";
/// The bit of SIGQUIT in a set of signals.
const QUIT: u64 = 1 << 2;

/// Opens the attach interface of a process, unless that is not safe.
pub(super) fn open(process: u32) -> Option<PathBuf> {
    let inner = inner_id(process)?;
    let folder = file_of(process, "/tmp");
    let socket = folder.join(format!(".java_pid{inner}"));
    // whose file it is, the JVM checks too; another user may have made one with this name
    let user = status(process, "Uid:", 2, 10)?;
    let is_own = |made: fs::Metadata| u64::from(made.uid()) == user;
    if let Ok(made) = fs::symlink_metadata(&socket) {
        return is_own(made).then_some(socket);
    }
    is_safe(process, &folder, inner).then_some(())?;
    let file = folder.join(format!(".attach_pid{inner}"));
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&file)
        .ok()?;
    let is_ours = made.metadata().is_ok_and(is_own);
    let sent = is_ours && send_quit(process).is_ok();
    let is_open = sent
        && (0..TRIES).any(|_| {
            std::thread::sleep(BETWEEN);
            fs::symlink_metadata(&socket).is_ok_and(is_own)
        });
    let _ = fs::remove_file(&file);
    is_open.then_some(socket)
}

/// A dump of all threads.
pub(super) fn dump(socket: &Path) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(PART)).ok()?;
    stream.set_write_timeout(Some(PART)).ok()?;
    stream.write_all(REQUEST).ok()?;
    let mut bytes = Vec::new();
    stream.take(MAX_DUMP).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.strip_prefix("0\n").map(str::to_owned)
}

/// Whether a process handles SIGQUIT, and says that it can be attached to.
fn is_safe(process: u32, folder: &Path, inner: u32) -> bool {
    let handles = |set: u64| set & QUIT != 0;
    let is_handled = status(process, "SigCgt:", 1, 16).is_some_and(handles)
        && !status(process, "SigIgn:", 1, 16).is_none_or(handles);
    let counters = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut counters = counters
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with("hsperfdata_")
        })
        .filter_map(|entry| File::open(entry.path().join(inner.to_string())).ok());
    is_handled
        && counters.next().is_some_and(|file| {
            let mut bytes = Vec::new();
            let read = file.take(MAX_COUNTERS).read_to_end(&mut bytes);
            read.is_ok() && can_attach(&bytes) == Some(true)
        })
}

/// A number of the status of a process.
fn status(process: u32, name: &str, word: usize, radix: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    u64::from_str_radix(line.split_ascii_whitespace().nth(word)?, radix).ok()
}

/// What the counters of a JVM say of attaching: the first letter of its capabilities.
pub(super) fn can_attach(counters: &[u8]) -> Option<bool> {
    let half = |at: usize| {
        let bytes = counters.get(at..at.checked_add(4)?)?.first_chunk()?;
        usize::try_from(u32::from_le_bytes(*bytes)).ok()
    };
    // magic number, little-endian, version 2
    counters
        .starts_with(&[0xca, 0xfe, 0xc0, 0xc0, 1, 2])
        .then_some(())?;
    let (mut at, count) = (half(24)?, half(28)?);
    for _ in 0..count.min(counters.len() / 20) {
        let (length, name, data) = (half(at)?, half(at + 4)?, half(at + 16)?);
        let name = counters.get(at.checked_add(name)?..)?;
        if name.starts_with(b"sun.rt.jvmCapabilities\0") {
            return Some(*counters.get(at.checked_add(data)?)? == b'1');
        }
        at = at.checked_add(length.max(20))?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counters(capabilities: &[u8]) -> Vec<u8> {
        let entry = |name: &[u8], data: &[u8]| {
            let size = 20 + 24 + data.len() as u32;
            let mut bytes: Vec<u8> = [size, 20, data.len() as u32, 0, 44]
                .iter()
                .flat_map(|one| one.to_le_bytes())
                .collect();
            bytes.extend(name);
            bytes.resize(44, 0);
            bytes.extend(data);
            bytes
        };
        let mut bytes = vec![0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1];
        bytes.resize(24, 0);
        bytes.extend(32u32.to_le_bytes());
        bytes.extend(2u32.to_le_bytes());
        bytes.extend(entry(b"sun.rt.other", b"12345"));
        bytes.extend(entry(b"sun.rt.jvmCapabilities", capabilities));
        bytes
    }

    #[test]
    fn a_jvm_says_whether_it_can_be_attached_to() {
        assert_eq!(can_attach(&counters(b"1100")), Some(true));
        assert_eq!(can_attach(&counters(b"0100")), Some(false));
        assert_eq!(can_attach(&counters(b"1")[..60]), None);
        assert_eq!(can_attach(b""), None);
    }

    #[test]
    fn a_process_without_a_handler_is_left_alone() {
        let this = std::process::id();
        assert_eq!(open(this), None);
    }

    proptest! {
        #[test]
        fn any_counters_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = can_attach(&bytes);
            let _ = can_attach(&[&counters(b"1")[..32], &*bytes].concat());
        }
    }
}
