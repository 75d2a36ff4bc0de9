//! Connections to Unix sockets: they stay with the kernel, and only their names and numbers are
//! kept, so that a page does not read as if there were none. Must not delay a call.

use super::named_counts::NamedCounts;
use intact_ledger::Caveat;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

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

/// The sockets that programs connected to.
#[derive(Default)]
pub(super) struct UnixSockets {
    connections: NamedCounts<String>,
    /// Sockets of ours that the program is given the names of.
    ours: Vec<String>,
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
        if is_service || self.ours.contains(&name) || !exists(thread, &name) {
            return;
        }
        self.connections.add(name);
    }

    /// The caveat on a run with such connections.
    pub(super) fn caveat(&self) -> Option<Caveat> {
        let names = self.connections.list()?;
        Some(Caveat::new(
            Caveat::UNIX_SOCKETS,
            format!("connections to Unix sockets are not watched: {names}"),
        ))
    }
}

/// Whether there is such a socket where the thread looks for it. Abstract names are in no folder.
fn exists(thread: u32, name: &str) -> bool {
    if name.starts_with('@') {
        return true;
    }
    let (start, rest) = match name.strip_prefix('/') {
        Some(rest) => ("root", rest),
        None => ("cwd", name),
    };
    let path = Path::new("/proc")
        .join(thread.to_string())
        .join(start)
        .join(rest);
    std::fs::metadata(path).is_ok_and(|file| file.file_type().is_socket())
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
        for file in ["theirs", "theirs"] {
            sockets.connect(process, name(file));
        }
        for number in 0..3 {
            sockets.connect(process, format!("@{number}"));
        }
        std::fs::remove_dir_all(&folder).unwrap();
        let caveat = sockets.caveat().unwrap();
        let words = format!(
            "connections to Unix sockets are not watched: {} (2), @0 (1), @1 (1), others (1)",
            name("theirs")
        );
        assert_eq!((caveat.message, caveat.incomplete), (words, false));
    }
}
