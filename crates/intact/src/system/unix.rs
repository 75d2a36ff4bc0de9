//! Systems with signals, file descriptors and Unix sockets.

use intact_check::EndSignal;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::{Handle, Signals};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use std::os::unix::net::{UnixListener as Listener, UnixStream as Channel};

/// Calls `take` with each Ctrl-C, SIGQUIT, SIGTERM and SIGHUP, in a thread of its own.
pub(crate) fn on_each_ending_signal(take: impl FnMut(i32) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || signals.forever().for_each(take))?;
    Ok(())
}

/// Makes a write beyond the limit of a file's size (`ulimit -f`) fail with EFBIG. Programs that are
/// started from here keep the default, because a handler does not outlive execve(2).
pub(crate) fn survive_full_files() {
    // without the handler the signal ends the process, as it would any other
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Files that are made from here on are for their owner alone: stores of a campaign hold what
/// servers sent.
#[cfg(feature = "fleet")]
pub(crate) fn make_private_files() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

/// Makes a file and locks it until it is dropped; `None`: another process has it.
#[cfg(feature = "fleet")]
pub(crate) fn lock(path: &std::path::Path) -> io::Result<Option<File>> {
    use rustix::fs::{FlockOperation, flock};
    let file = File::create(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Standard input as a file; also the way back, where standard input is a socket.
pub(crate) fn standard_input() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// A channel to a process, and what becomes its standard input.
pub(crate) fn channel() -> io::Result<(Channel, Stdio)> {
    let (ours, theirs) = Channel::pair()?;
    Ok((ours, Stdio::from(OwnedFd::from(theirs))))
}

/// The signal that ended a process.
pub(crate) fn ended_by(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Whether a process can be asked to end by a signal.
pub(crate) const HAS_SIGNALS: bool = true;

/// Makes a command lead a process group of its own, which ends with us where the system can do
/// that.
pub(crate) fn lead_group(command: &mut Command) {
    command.process_group(0);
    #[cfg(target_os = "linux")]
    intact_sys::guard::end_with_us(command);
}

/// Makes the end of its parent end this process by SIGTERM, which a wrapper passes on: killed, it
/// leaves its program behind.
pub(crate) fn end_by_request() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    Ok(())
}

/// The number of a signal.
pub(crate) fn number(signal: EndSignal) -> i32 {
    named(signal).as_raw()
}

fn named(signal: EndSignal) -> Signal {
    match signal {
        EndSignal::Term => Signal::TERM,
        EndSignal::Int => Signal::INT,
        EndSignal::Quit => Signal::QUIT,
        EndSignal::Hup => Signal::HUP,
        EndSignal::Usr1 => Signal::USR1,
        EndSignal::Usr2 => Signal::USR2,
        EndSignal::Winch => Signal::WINCH,
    }
}

/// Sends a signal to a process that was not reaped, and not to its group.
pub(crate) fn send_signal(child: &Child, signal: EndSignal) -> io::Result<()> {
    Ok(kill_process(Pid::from_child(child), named(signal))?)
}

/// Sends this process what Ctrl-C would, where the terminal passes keys unprocessed.
#[cfg(feature = "live")]
pub(crate) fn interrupt_self() {
    // a process may send itself any signal
    let _ = kill_process(rustix::process::getpid(), Signal::INT);
}

/// Kills every process of the group that a process leads.
pub(crate) fn kill_group(leader: &Child) -> io::Result<()> {
    match kill_process_group(Pid::from_child(leader), Signal::KILL) {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        done => Ok(done?),
    }
}

/// Whether a process of the group that a process leads runs.
pub(crate) fn is_group_alive(leader: &Child) -> bool {
    #[cfg(target_os = "linux")]
    return intact_sys::process::is_group_alive(leader.id());
    #[cfg(not(target_os = "linux"))]
    return rustix::process::test_kill_process_group(Pid::from_child(leader)).is_ok();
}

/// Who gets the signals that reach a wrapper.
enum Recipient {
    /// The wrapper itself, which ends.
    Wrapper,
    /// A program that is about to start.
    Later(Vec<i32>),
    Program(Pid),
    /// The program has ended: its process id may be that of another.
    Ended,
}

/// The signals that a wrapper takes.
const TAKEN: [i32; 4] = [SIGINT, SIGQUIT, SIGTERM, SIGHUP];

/// The signals of a wrapper, until this value is dropped. They end the wrapper before its program
/// starts, and reach the program from then on.
pub(crate) struct WrapperSignals {
    handle: Handle,
    recipient: Arc<Mutex<Recipient>>,
    /// The last one that came.
    last: Arc<AtomicUsize>,
}

impl WrapperSignals {
    /// Takes them, for this process.
    pub(crate) fn take() -> io::Result<WrapperSignals> {
        let last = Arc::default();
        for number in TAKEN {
            signal_hook::flag::register_usize(number, Arc::clone(&last), number as usize)?;
        }
        let mut signals = Signals::new(TAKEN)?;
        let handle = signals.handle();
        let recipient = Arc::new(Mutex::new(Recipient::Wrapper));
        let theirs = recipient.clone();
        let has_terminal = File::open("/dev/tty").is_ok();
        std::thread::spawn(move || {
            for number in signals.forever() {
                match &mut *locked(&theirs) {
                    Recipient::Wrapper => signal_hook::low_level::exit(128 + number),
                    Recipient::Later(kept) => kept.push(number),
                    // a terminal sends these to the program as well
                    Recipient::Program(_)
                        if has_terminal && [SIGINT, SIGQUIT].contains(&number) => {}
                    Recipient::Program(pid) => pass_on(*pid, number),
                    Recipient::Ended => {}
                }
            }
        });
        Ok(WrapperSignals {
            handle,
            recipient,
            last,
        })
    }

    /// From here on signals wait for the program, so that what must be removed can be made.
    pub(crate) fn keep(&self) {
        let mut recipient = locked(&self.recipient);
        if matches!(*recipient, Recipient::Wrapper) {
            *recipient = Recipient::Later(Vec::new());
        }
    }

    /// The program has started: signals are its own.
    pub(crate) fn pass_to(&self, child: &Child) {
        let pid = Pid::from_child(child);
        let before = std::mem::replace(&mut *locked(&self.recipient), Recipient::Program(pid));
        if let Recipient::Later(kept) = before {
            kept.into_iter().for_each(|number| pass_on(pid, number));
        }
    }

    /// The program has ended.
    pub(crate) fn end(&self) {
        *locked(&self.recipient) = Recipient::Ended;
        self.handle.close();
    }
}

impl Drop for WrapperSignals {
    fn drop(&mut self) {
        // where it ended processes of ours too, their ends are no failure
        let last = self.last.load(Ordering::SeqCst);
        if last != 0 && matches!(*locked(&self.recipient), Recipient::Wrapper) {
            signal_hook::low_level::exit(128 + last as i32);
        }
        self.end();
    }
}

fn locked(recipient: &Mutex<Recipient>) -> MutexGuard<'_, Recipient> {
    recipient.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a signal to a program; one that has ended is no error.
fn pass_on(pid: Pid, number: i32) {
    if let Some(signal) = Signal::from_named_raw(number) {
        let _ = kill_process(pid, signal);
    }
}
