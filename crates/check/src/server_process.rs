//! The interface to the process of the server that a drain measures. The caller starts and reaps
//! the process.

use intact_ledger::kinds;
use std::io;

kinds! {
    /// A signal that asks a server to end.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the names are the signals")]
    pub enum EndSignal, name {
        #[default]
        Term = "SIGTERM",
        Int = "SIGINT",
        Quit = "SIGQUIT",
        Hup = "SIGHUP",
        Usr1 = "SIGUSR1",
        Usr2 = "SIGUSR2",
        Winch = "SIGWINCH",
    }
}

impl EndSignal {
    /// Parses `TERM` and `SIGTERM`.
    pub fn read(text: &str) -> Option<EndSignal> {
        let bare = |name: &'static str| name.trim_start_matches("SIG");
        EndSignal::ALL
            .into_iter()
            .find(|one| text == one.name() || text == bare(one.name()))
    }
}

/// The state of a server's process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessState {
    /// The end of the command, such as `exit code 0` or `signal 15`; absent while it runs.
    pub ended: Option<String>,
    /// Whether a process of its process group is left.
    pub is_left: bool,
}

/// The process of a server that the caller started, in a process group of its own.
pub trait ServerProcess {
    /// Sends a signal to the command and not to its children, as a container runtime does.
    fn ask_to_end(&mut self, signal: EndSignal) -> io::Result<()>;

    /// The current state.
    fn state(&mut self) -> io::Result<ProcessState>;

    /// Kills every process of its process group.
    fn kill(&mut self) -> io::Result<()>;
}
