//! Connections to Unix sockets: they stay with the kernel, and only their names and numbers are
//! kept, so that a page does not read as if there were none. Must not delay a call.

use super::named_counts::NamedCounts;
use intact_ledger::Caveat;

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

/// Whether a socket has this name, or that of this file in another folder: the kernel lists names
/// as they were bound. The file itself is not looked at: its file system may be one of the program
/// (FUSE) that never responds, and then the program's own call would wait for ours. Abstract names
/// are in no folder.
fn exists(thread: u32, name: &str) -> bool {
    let lists = [
        format!("/proc/{thread}/net/unix"),
        "/proc/self/net/unix".to_owned(),
    ];
    name.starts_with('@')
        || lists.iter().any(|list| {
            let list = std::fs::read(list).unwrap_or_default();
            has_file(&String::from_utf8_lossy(&list), name)
        })
}

/// Whether a list of the kernel (/proc/net/unix) has a socket with the file of this name.
fn has_file(list: &str, name: &str) -> bool {
    let file = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let wanted = file(name);
    // seven fields, and a path, which may have blanks
    let path = |line| {
        (0..7).try_fold(line, |rest: &str, _| {
            Some(rest.trim_start().split_once(' ')?.1)
        })
    };
    let mut paths = list.lines().skip(1).filter_map(path);
    paths.any(|path| file(path) == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_name_is_found_by_its_file() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            00000000e964c75c: 00000003 00000000 00000000 0001 03    27\n\
            000000001a3141d6: 00000002 00000000 00010000 0001 01   640 /run/my app.sock\n\
            000000001a3141d7: 00000002 00000000 00010000 0001 01 1406370 @abstract\n";
        for (name, is_there) in [
            ("/var/run/my app.sock", true),
            ("my app.sock", true),
            ("/run/app.sock", false),
            ("/run/", false),
        ] {
            assert_eq!(has_file(list, name), is_there, "{name}");
        }
    }

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
        let caveat = sockets.caveat().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let words = format!(
            "connections to Unix sockets are not watched: {} (2), @0 (1), @1 (1), others (1)",
            name("theirs")
        );
        assert_eq!((caveat.message, caveat.incomplete), (words, false));
    }
}
