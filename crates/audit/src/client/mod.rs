//! Requests as the client's own tool tells them, without the packets: which connection carried which is told by the file, or worked
//! out from times for connecting.

mod assignment;
mod entry;
mod fields;

pub(crate) use assignment::{Source, tell};
pub(crate) use entry::{Entry, Timings};
pub(crate) use fields::{
    add_terms, closes, failure, nanos, nanos_of_ms, nanos_of_seconds, protocol, split,
};
