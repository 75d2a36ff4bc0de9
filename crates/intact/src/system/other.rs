//! Systems without Unix signals and sockets. What needs them, a link and a watched program, does
//! not exist here: `link`, `watch` and `lambda` end before, with the command for a container.

use intact_check::EndSignal;
use signal_hook::consts::SIGINT;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// Calls `take` with each Ctrl-C, in a thread of its own.
pub(crate) fn on_each_ending_signal(mut take: impl FnMut(i32) + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut signals = runtime.block_on(async { tokio::signal::windows::ctrl_c() })?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            while runtime.block_on(signals.recv()).is_some() {
                take(SIGINT);
            }
        })?;
    Ok(())
}

/// A process ends with its parent as the system decides.
pub(crate) fn end_by_request() -> io::Result<()> {
    Ok(())
}

/// There is no limit of a file's size.
pub(crate) fn survive_full_files() {}

/// Files inherit the permissions of their folder.
#[cfg(feature = "fleet")]
pub(crate) fn make_private_files() {}

/// Makes a file that a second process cannot open for writing.
#[cfg(feature = "fleet")]
pub(crate) fn lock(path: &Path) -> io::Result<Option<File>> {
    const SHARING_VIOLATION: i32 = 32;
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, 0);
    match options.open(path) {
        Err(error) if error.raw_os_error() == Some(SHARING_VIOLATION) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Standard input as a file.
pub(crate) fn standard_input() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdin().as_handle().try_clone_to_owned()?))
}

/// A channel to a process on a link.
#[derive(Debug)]
pub(crate) enum Channel {}

/// Takes channels.
#[derive(Debug)]
pub(crate) enum Listener {}

impl Channel {
    /// Always an error.
    pub(crate) fn connect(_path: &Path) -> io::Result<Channel> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Listener {
    /// Always an error.
    pub(crate) fn bind(_path: &Path) -> io::Result<Listener> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The channels that come.
    pub(crate) fn incoming(&self) -> std::iter::Empty<io::Result<Channel>> {
        match *self {}
    }
}

impl Read for &Channel {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        match **self {}
    }
}

impl Write for &Channel {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        match **self {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match **self {}
    }
}

/// Always an error.
pub(crate) fn channel() -> io::Result<(Channel, Stdio)> {
    Err(io::ErrorKind::Unsupported.into())
}

/// No process ends by a signal.
pub(crate) fn ended_by(_status: ExitStatus) -> Option<i32> {
    None
}

/// Whether a process can be asked to end by a signal.
pub(crate) const HAS_SIGNALS: bool = false;

/// There are no process groups.
pub(crate) fn lead_group(_command: &mut Command) {}

/// No signal has a number.
pub(crate) fn number(_signal: EndSignal) -> i32 {
    0
}

/// Always an error.
pub(crate) fn send_signal(_child: &Child, _signal: EndSignal) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Always an error.
pub(crate) fn kill_group(_leader: &Child) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There are no process groups.
pub(crate) fn is_group_alive(_leader: &Child) -> bool {
    false
}

/// The console sends Ctrl-C to the program itself.
pub(crate) struct WrapperSignals;

impl WrapperSignals {
    /// Nothing has to be taken.
    pub(crate) fn take() -> io::Result<WrapperSignals> {
        Ok(WrapperSignals)
    }

    /// Nothing is kept.
    pub(crate) fn keep(&self) {}

    /// Nothing is passed on.
    pub(crate) fn pass_to(&self, _child: &Child) {}

    /// The program has ended.
    pub(crate) fn end(&self) {}
}
