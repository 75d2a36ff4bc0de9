//! Requests as the client's own tool tells them, without the packets: which connection carried which is told by the file, or worked
//! out from times for connecting.

mod assignment;
mod entry;

pub(crate) use assignment::{Source, tell};
pub(crate) use entry::{Entry, MAX_ENTRIES, Timings};
