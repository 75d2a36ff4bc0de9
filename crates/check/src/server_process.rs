//! The interface to the process of the server that a drain measures. The caller starts and reaps
//! the process.

use std::io;

/// A signal that asks a server to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the signals")]
pub enum EndSignal {
    #[default]
    Term,
    Int,
    Quit,
    Hup,
    Usr1,
    Usr2,
    Winch,
}

impl EndSignal {
    /// All signals that can be sent.
    pub const ALL: [EndSignal; 7] = [
        EndSignal::Term,
        EndSignal::Int,
        EndSignal::Quit,
        EndSignal::Hup,
        EndSignal::Usr1,
        EndSignal::Usr2,
        EndSignal::Winch,
    ];

    /// The name, such as `SIGTERM`.
    pub fn name(self) -> &'static str {
        match self {
            EndSignal::Term => "SIGTERM",
            EndSignal::Int => "SIGINT",
            EndSignal::Quit => "SIGQUIT",
            EndSignal::Hup => "SIGHUP",
            EndSignal::Usr1 => "SIGUSR1",
            EndSignal::Usr2 => "SIGUSR2",
            EndSignal::Winch => "SIGWINCH",
        }
    }

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
