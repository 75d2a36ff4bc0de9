//! What happens around a frozen function, outside of it.

use std::io;

/// What is closed around a frozen function: on a link, nothing passes.
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
