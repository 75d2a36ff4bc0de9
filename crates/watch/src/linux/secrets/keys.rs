//! Keys of TLS connections, as programs log them: read as they come, handed to the connection that
//! they belong to.
//!
//! They live in memory only, as briefly as possible: what was read is erased from a file of ours,
//! and lines of connections that are never seen are forgotten. Nothing in here is ever printed.

use super::{ExitHolds, SecretSearch};
use crate::config::KeyLogging;
use crate::platform::node_preload::{self, NODE_OPTIONS};
use intact_ledger::Caveat;
use intact_sys::secret_dir::{self, NoPlace, SecretDir, SecretFiles};
use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Connections whose lines wait for them to be seen; the oldest are forgotten first.
const MAX_UNCLAIMED: usize = 4096;
/// Lines that are kept of one connection.
const MAX_LINES: usize = 16;
/// The longest line: a label, 32 and 64 bytes in hex.
const MAX_LINE: usize = 512;
/// The most that is read at once, in bytes.
const MAX_READ: usize = 64 * 1024;

/// The files of the folder for secrets: the key log, and the script that Node loads.
const FILES: SecretFiles = SecretFiles {
    log: "keys",
    text: "preload.cjs",
};

/// What Node loads before the program: it logs the keys of TLS connections, and is silent whatever
/// happens.
const PRELOAD: &str = include_str!("preload.cjs");

/// A key log, and what is to be done about it.
pub(crate) struct Prepared {
    pub(crate) keys: Keys,
    /// Variables for the program.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Programs log no keys, for this reason.
    pub(crate) caveat: Option<Caveat>,
}

/// Reads a key log as it grows.
pub(crate) struct Keys {
    /// Where we made the file ourselves; it is erased as it is read.
    secret_dir: Option<SecretDir>,
    /// Absent where there is no place for a log.
    path: Option<PathBuf>,
    file: Option<File>,
    read: u64,
    cut: Vec<u8>,
    unclaimed: HashMap<[u8; 64], Vec<String>>,
    order: VecDeque<[u8; 64]>,
    /// Finds secrets that processes do not log; they are among the lines later, or never.
    pub(crate) seeker: SecretSearch,
}

impl Keys {
    /// Makes a key log for the program, or finds the end of its own; and what its environment must
    /// say. Where there is no place for a log, secrets are looked for in memory only.
    pub(crate) fn prepare(logging: &KeyLogging, holds: ExitHolds) -> Prepared {
        let mut prepared = Prepared {
            keys: Keys::of(logging.own_file.clone(), holds),
            environment: Vec::new(),
            caveat: None,
        };
        let keys = &mut prepared.keys;
        if keys.path.is_some() {
            keys.find_end();
            return prepared;
        }
        match SecretDir::make(FILES) {
            Ok((secret_dir, log)) => {
                prepared.environment = environment(&secret_dir, logging);
                keys.path = Some(secret_dir.path(FILES.log));
                keys.file = Some(log);
                keys.secret_dir = Some(secret_dir);
            }
            Err(no_place) => prepared.caveat = Some(not_logged(&no_place)),
        }
        prepared
    }

    /// Reads a key log that a program writes already, from its present end on. Other secrets are
    /// looked for in memory.
    pub(crate) fn follow(path: Option<PathBuf>, holds: ExitHolds) -> Keys {
        let mut keys = Keys::of(path, holds);
        keys.find_end();
        keys
    }

    fn of(path: Option<PathBuf>, holds: ExitHolds) -> Keys {
        Keys {
            secret_dir: None,
            path,
            file: None,
            read: 0,
            cut: Vec::new(),
            unclaimed: HashMap::new(),
            order: VecDeque::new(),
            seeker: SecretSearch::new(holds),
        }
    }

    /// What stands in the program's own file already is of earlier connections.
    fn find_end(&mut self) {
        if let Some(mut file) = self.open()
            && let Ok(end) = file.seek(SeekFrom::End(0))
        {
            self.read = end;
            self.file = Some(file);
        }
    }

    fn open(&self) -> Option<File> {
        self.path.as_ref().and_then(|path| open(path))
    }

    /// The lines of a connection that came since the last time.
    pub(crate) fn take(&mut self, client_random: &[u8; 32]) -> Vec<String> {
        self.read_on();
        self.unclaimed
            .remove(&hex(client_random))
            .unwrap_or_default()
    }

    /// Waits until then for secrets that are being looked for.
    pub(crate) fn settle(&mut self, until: Instant) {
        for line in self.seeker.settle(until) {
            self.keep(line.into_bytes());
        }
    }

    fn read_on(&mut self) {
        for line in self.seeker.found() {
            self.keep(line.into_bytes());
        }
        if self.file.is_none() {
            self.file = self.open();
        }
        let Some(file) = &mut self.file else { return };
        let mut chunk = [0; 4096];
        let mut left = MAX_READ;
        let mut lines = Vec::new();
        while left > 0
            && let Ok(count @ 1..) = file.read(&mut chunk)
        {
            left = left.saturating_sub(count);
            self.read += count as u64;
            for byte in &chunk[..count] {
                if *byte == b'\n' {
                    lines.push(std::mem::take(&mut self.cut));
                } else if self.cut.len() < MAX_LINE {
                    self.cut.push(*byte);
                }
            }
        }
        if left < MAX_READ && self.secret_dir.is_some() {
            secret_dir::erase(file, self.read);
        }
        for line in lines {
            self.keep(line);
        }
    }

    /// Keeps a line for the connection that its second word names.
    fn keep(&mut self, line: Vec<u8>) {
        let Ok(line) = String::from_utf8(line) else {
            return;
        };
        let random = line.split_ascii_whitespace().nth(1);
        let Some(mut random) = random.and_then(|word| <[u8; 64]>::try_from(word.as_bytes()).ok())
        else {
            return;
        };
        random.make_ascii_lowercase();
        let lines = self.unclaimed.entry(random).or_insert_with(|| {
            self.order.push_back(random);
            Vec::new()
        });
        if lines.len() < MAX_LINES {
            lines.push(line);
        }
        while self.order.len() > MAX_UNCLAIMED
            && let Some(oldest) = self.order.pop_front()
        {
            self.unclaimed.remove(&oldest);
        }
    }
}

/// Opens a key log, which is a regular file: a pipe makes its opener wait for a writer, and has a
/// reader already.
fn open(path: &Path) -> Option<File> {
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut options = File::options();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path);
    file.ok()
        .filter(|file| file.metadata().is_ok_and(|about| about.is_file()))
}

/// What the program's environment says about a key log in this folder.
fn environment(folder: &SecretDir, logging: &KeyLogging) -> Vec<(OsString, OsString)> {
    let path = folder.path(FILES.log);
    let mut environment = vec![("SSLKEYLOGFILE".into(), path.clone().into())];
    let preload = node_preload::filled(PRELOAD, "KEY_LOG_FILE", &path);
    if let (Some(options), Some(text)) = (&logging.node_options, preload)
        // without it Node logs no keys, and they are looked for in its memory
        && let Ok(preload) = folder.write_text(FILES.text, &text)
    {
        let options = node_preload::required(options.clone(), &preload);
        environment.push((NODE_OPTIONS.into(), options));
    }
    environment
}

/// The caveat on a run in which programs log no keys.
fn not_logged(why: &NoPlace) -> Caveat {
    let words = format!(
        "There is no place where programs could log the keys of TLS connections ({why}). Keys are looked for in their memory only; \
         requests on connections whose keys are not found are inferred"
    );
    Caveat::new("keys-not-logged", words)
}

fn hex(bytes: &[u8; 32]) -> [u8; 64] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 64];
    for (place, byte) in bytes.iter().enumerate() {
        text[place * 2] = DIGITS[usize::from(byte >> 4)];
        text[place * 2 + 1] = DIGITS[usize::from(byte & 15)];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn line(label: &str, random: u8) -> String {
        let random = [random; 32];
        format!(
            "{label} {} {}",
            String::from_utf8(hex(&random).to_vec()).unwrap(),
            "ab".repeat(32)
        )
    }

    fn program(environment: &[(OsString, OsString)]) -> File {
        let path = &environment[0].1;
        File::options().append(true).open(path).unwrap()
    }

    #[test]
    fn lines_reach_their_connection_and_leave_the_file() {
        let Prepared {
            mut keys,
            environment,
            ..
        } = Keys::prepare(&KeyLogging::default(), ExitHolds::default());
        let mut file = program(&environment);
        assert!(keys.take(&[1; 32]).is_empty());
        let (first, second) = (line("A", 1), line("B", 1));
        write!(
            file,
            "{first}\n# comment\n{}\n{}",
            line("A", 2),
            &second[..40]
        )
        .unwrap();
        assert_eq!(keys.take(&[1; 32]), [first]);
        writeln!(file, "{}", &second[40..]).unwrap();
        assert_eq!(keys.take(&[1; 32]), [second]);
        assert_eq!(keys.take(&[2; 32]).len(), 1);
        let left = std::fs::read(&environment[0].1).unwrap();
        assert!(left.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn lines_of_connections_that_never_come_are_forgotten() {
        let Prepared {
            mut keys,
            environment,
            ..
        } = Keys::prepare(&KeyLogging::default(), ExitHolds::default());
        let mut file = program(&environment);
        let mut text = String::new();
        for number in 0..MAX_UNCLAIMED as u32 + 10 {
            let mut random = [0; 32];
            random[..4].copy_from_slice(&number.to_be_bytes());
            let random = String::from_utf8(hex(&random).to_vec()).unwrap();
            text.push_str(&format!("L {random} 00\n"));
        }
        file.write_all(text.as_bytes()).unwrap();
        for _ in 0..text.len() / MAX_READ + 1 {
            keys.read_on();
        }
        assert_eq!(keys.unclaimed.len(), MAX_UNCLAIMED);
        assert!(keys.take(&[0; 32]).is_empty());
    }

    #[test]
    fn a_pipe_or_a_device_as_key_log_is_left_to_its_reader() {
        let name = format!("intact-key-log-{}", std::process::id());
        let pipe = std::env::temp_dir().join(name);
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for path in [pipe.clone(), "/dev/zero".into()] {
            let mut keys = Keys::follow(Some(path), ExitHolds::default());
            assert!(keys.take(&[1; 32]).is_empty() && keys.file.is_none());
        }
        std::fs::remove_file(pipe).unwrap();
    }

    #[test]
    fn a_node_that_has_options_keeps_them() {
        let logging = KeyLogging {
            own_file: None,
            node_options: Some("--max-old-space-size=100".into()),
        };
        let prepared = Keys::prepare(&logging, ExitHolds::default());
        let environment = &prepared.environment;
        let options = environment[1].1.to_str().unwrap();
        let preload = options
            .strip_prefix("--max-old-space-size=100 --require ")
            .unwrap();
        let text = std::fs::read_to_string(preload).unwrap();
        assert!(text.contains(environment[0].1.to_str().unwrap()));
    }
}
