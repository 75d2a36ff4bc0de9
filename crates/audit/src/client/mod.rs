//! Requests as the client's own tool tells them, without the packets: which connection carried which is told by the file, or worked
//! out from times for connecting.

mod assignment;
mod entries;
mod entry;
mod lookups;

pub(crate) use assignment::{Source, tell};
pub(crate) use entries::Entries;
pub(crate) use entry::{Entry, Timings};
