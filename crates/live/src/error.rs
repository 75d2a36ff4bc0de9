//! Why there is no view.

use std::io;

/// Why the live view cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// Standard input or output is no terminal.
    #[error(
        "--live needs a terminal for standard input and output; do not pipe them, or omit --live"
    )]
    NoTerminal,
    /// The terminal cannot be taken over.
    #[error("--live: the terminal: {0}")]
    Terminal(io::Error),
    /// The program's pane cannot be opened.
    #[error("--live: a pseudo-terminal: {0}")]
    Pane(io::Error),
    /// The thread that draws cannot be started.
    #[error("--live: a thread: {0}")]
    Thread(io::Error),
}
