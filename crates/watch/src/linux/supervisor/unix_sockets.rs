//! Connections to Unix sockets: they stay with the kernel, and only their names and numbers are
//! kept, so that a page does not read as if there were none. Must not delay a call.

use super::named_counts::NamedCounts;
use intact_ledger::Caveat;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::{Duration, Instant};

/// Services that libraries connect to for names, logs and the desktop: they carry no HTTP.
const SERVICES: [&str; 7] = [
    "/run/nscd/",
    "/run/systemd/",
    "/run/dbus/",
    "/var/run/nscd/",
    "/var/run/dbus/",
    "/dev/log",
    "@/tmp/.X11-unix/",
];

/// Names that wait for a look; further ones count without one.
const MOST_WAITING: usize = 1024;
/// How long the end of a run waits for the looks that are left. A file system of the program (FUSE)
/// may never respond; such names count.
const PATIENCE: Duration = Duration::from_millis(250);

/// The sockets that programs connected to.
#[derive(Default)]
pub(super) struct UnixSockets {
    connections: NamedCounts<String>,
    /// Sockets of ours that the program is given the names of.
    ours: Vec<String>,
    /// Started with the first name of a file.
    looks: Option<Looks>,
}

/// A thread that looks whether files are sockets: a look at a file of the program may block.
struct Looks {
    wanted: SyncSender<(OwnedFd, String)>,
    answers: Receiver<(String, bool)>,
    /// Names without an answer, and how often.
    waiting: HashMap<String, u64>,
}

impl UnixSockets {
    /// `ours` are not counted.
    pub(super) fn new(ours: Vec<String>) -> UnixSockets {
        UnixSockets {
            ours,
            ..UnixSockets::default()
        }
    }

    /// A `connect` of `thread` to a socket of this name; one that is not there is not counted.
    pub(super) fn connect(&mut self, thread: u32, name: String) {
        let is_service = SERVICES.iter().any(|service| name.starts_with(service));
        if is_service || self.ours.contains(&name) {
            return;
        }
        // abstract names are in no folder
        let folder = match name.starts_with('@') {
            true => None,
            false => folder_of(thread, &name),
        };
        self.take_answers();
        let asked = folder.is_some_and(|folder| {
            let looks = self.looks.get_or_insert_with(Looks::start);
            looks.ask(folder, &name)
        });
        if !asked {
            self.connections.add(name);
        }
    }

    fn take_answers(&mut self) {
        if let Some(looks) = &mut self.looks {
            while let Ok((name, is_socket)) = looks.answers.try_recv() {
                looks.answered(&name);
                if is_socket {
                    self.connections.add(name);
                }
            }
        }
    }

    /// The caveat on a run with such connections.
    pub(super) fn caveat(&mut self) -> Option<Caveat> {
        let until = Instant::now() + PATIENCE;
        while let Some(looks) = self
            .looks
            .as_mut()
            .filter(|looks| !looks.waiting.is_empty())
        {
            let left = until.saturating_duration_since(Instant::now());
            match looks.answers.recv_timeout(left) {
                Ok((name, is_socket)) => {
                    looks.answered(&name);
                    if is_socket {
                        self.connections.add(name);
                    }
                }
                Err(_) => break,
            }
        }
        for (name, times) in self
            .looks
            .take()
            .into_iter()
            .flat_map(|looks| looks.waiting)
        {
            for _ in 0..times {
                self.connections.add(name.clone());
            }
        }
        let names = self.connections.list()?;
        Some(Caveat::new(
            Caveat::UNIX_SOCKETS,
            format!("connections to Unix sockets are not watched: {names}"),
        ))
    }
}

impl Looks {
    /// Without a thread no look is asked for.
    fn start() -> Looks {
        let (wanted, asked) = mpsc::sync_channel::<(OwnedFd, String)>(MOST_WAITING);
        let (found, answers) = mpsc::channel();
        let look = move || {
            while let Ok((folder, name)) = asked.recv() {
                let is_socket = is_socket(&folder, &name);
                if found.send((name, is_socket)).is_err() {
                    return;
                }
            }
        };
        let _ = std::thread::Builder::new()
            .name("unix-sockets".to_owned())
            .spawn(look);
        Looks {
            wanted,
            answers,
            waiting: HashMap::new(),
        }
    }

    /// Returns whether there will be an answer.
    fn ask(&mut self, folder: OwnedFd, name: &str) -> bool {
        let is_asked = self.wanted.try_send((folder, name.to_owned())).is_ok();
        if is_asked {
            *self.waiting.entry(name.to_owned()).or_default() += 1;
        }
        is_asked
    }

    fn answered(&mut self, name: &str) {
        if let Some(times) = self.waiting.get_mut(name) {
            *times -= 1;
            if *times == 0 {
                self.waiting.remove(name);
            }
        }
    }
}

/// Where a thread looks for a name: its root or its folder, which is not asked for anything here.
fn folder_of(thread: u32, name: &str) -> Option<OwnedFd> {
    let start = if name.starts_with('/') { "root" } else { "cwd" };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(format!("/proc/{thread}/{start}"), flags, Mode::empty()).ok()
}

fn is_socket(folder: &OwnedFd, name: &str) -> bool {
    let path = name.trim_start_matches('/');
    let found = rustix::fs::statat(folder, path, AtFlags::empty());
    found.is_ok_and(|file| FileType::from_raw_mode(file.st_mode) == FileType::Socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_connection_counts_where_the_socket_is_there_and_neither_a_service_nor_ours() {
        let process = std::process::id();
        let folder = std::env::temp_dir().join(format!("intact-unix-sockets-{process}"));
        std::fs::create_dir(&folder).unwrap();
        let name = |file: &str| folder.join(file).to_str().unwrap().to_owned();
        let _listeners = ["theirs", "ours"].map(|file| UnixListener::bind(name(file)).unwrap());
        std::fs::write(name("file"), "").unwrap();
        let mut sockets = UnixSockets::new(vec![name("ours")]);
        for file in ["ours", "file", "missing"] {
            sockets.connect(process, name(file));
        }
        sockets.connect(process, "/dev/log".to_owned());
        assert_eq!(sockets.caveat(), None);
        let mut sockets = UnixSockets::new(vec![name("ours")]);
        for file in ["theirs", "theirs"] {
            sockets.connect(process, name(file));
        }
        for number in 0..3 {
            sockets.connect(process, format!("@{number}"));
        }
        let caveat = sockets.caveat().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let words = format!(
            "connections to Unix sockets are not watched: {} (2), @0 (1), @1 (1), others (1)",
            name("theirs")
        );
        assert_eq!((caveat.message, caveat.incomplete), (words, false));
    }
}
