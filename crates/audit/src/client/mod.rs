//! Requests as the client's own tool tells them, without the packets: which connection carried which is told by the file, or worked
//! out from times for connecting.

mod entry;
mod layout;
mod words;

pub(crate) use entry::{Entry, Timings};
pub(crate) use layout::{Source, tell};
pub(crate) use words::{
    add_terms, closes, failure, nanos, nanos_of_ms, nanos_of_seconds, protocol, split,
};
