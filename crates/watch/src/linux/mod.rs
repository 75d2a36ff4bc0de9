//! Watching on Linux: the supervisor answers calls, the relay carries data, `observe` reads the
//! data.

mod attach;
mod connect_trace;
mod filter;
mod inspection;
mod looks;
mod node_preload;
mod others;
mod program;
mod relay;
mod relay_command;
mod run;
mod run_context;
mod run_signals;
mod secrets;
mod sock_diag_tracker;
mod supervisor;

pub use attach::{Attached, Subjects, attach};
pub use intact_sys::signals::without_signals;
pub use run::run;
pub use run_signals::RunSignals;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use std::io;
use std::os::fd::AsRawFd;

/// The unit of CPU times in `/proc`.
pub(crate) fn ticks_per_second() -> Option<f64> {
    Some(rustix::param::clock_ticks_per_second() as f64)
}

/// Has a loop wait until a descriptor is readable.
fn wait_readable(registry: &Registry, source: &impl AsRawFd, token: Token) -> io::Result<()> {
    let source = source.as_raw_fd();
    registry.register(&mut SourceFd(&source), token, Interest::READABLE)
}

#[cfg(test)]
mod tests {
    use intact_sys::{seccomp, secret_dir};

    #[test]
    fn helpers_have_the_names_of_their_processes() {
        let names = [secret_dir::GUARD_NAME, seccomp::RESPONDER_NAME];
        let names = names.map(|name| format!("({})", name.to_str().unwrap()));
        assert_eq!(names, crate::HELPERS);
    }
}
