//! Requests as the client's own tool recorded them, without packets.
//!
//! The file names the connection of each request, or times for connecting show which requests
//! shared one.

mod assignment;
mod document;
mod entries;
mod entry;
mod lookups;
mod places;

pub(crate) use assignment::{Source, record};
pub use document::DocumentFormat;
pub(crate) use document::{Recording, cut, detect, read, syntax};
pub(crate) use entries::Entries;
pub(crate) use entry::{Entry, Timings};
