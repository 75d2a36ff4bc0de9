//! A hook that cuts a frozen function off from its network.

use std::io;

/// Called around each freeze. On a link, its implementation drops all packets of a frozen function.
pub trait FreezeHook {
    /// The function has been stopped.
    fn close(&mut self) -> io::Result<()>;
    /// It is about to go on.
    fn open(&mut self) -> io::Result<()>;
}

/// The kernel goes on answering for a frozen function.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoGate;

impl FreezeHook for NoGate {
    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn open(&mut self) -> io::Result<()> {
        Ok(())
    }
}
