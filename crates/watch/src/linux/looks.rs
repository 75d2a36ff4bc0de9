//! How often the sockets of running programs were looked up.

use std::io;
use std::time::{Duration, Instant};

/// How the looks went.
#[derive(Default)]
pub(crate) struct Looks {
    /// When the last one began that gave a list.
    pub(crate) last: Option<Instant>,
    /// The longest time between two of them.
    pub(crate) longest: Duration,
    pub(crate) failed: u64,
    pub(crate) error: Option<io::Error>,
}

impl Looks {
    /// A look that began then has ended.
    pub(crate) fn end(&mut self, began: Instant, done: io::Result<()>) {
        match done {
            Ok(()) => {
                let before = self.last.replace(began);
                let since = before.map_or(Duration::ZERO, |before| began - before);
                self.longest = self.longest.max(since);
            }
            Err(error) => {
                self.failed += 1;
                self.error = Some(error);
            }
        }
    }
}
