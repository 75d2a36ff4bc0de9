//! Moments of a run up to which the record is complete: for a caller that judges a part of the run
//! before its end.
//!
//! The caller asks for a mark with [`Marker::request`]. The relay then reads what waits in its
//! sockets, waits for TLS keys that are searched, records the connections that are still silent,
//! and calls [`WatchSink::mark`](crate::WatchSink::mark). Concludes nothing.

use intact_ledger::Nanos;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A moment up to which the record is complete, apart from what it names itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The number of the request.
    pub number: u64,
    /// When, on the run's clock.
    pub at: Nanos,
    /// Requests that have begun and are not in the record.
    pub unfinished: Vec<Unfinished>,
    /// Connections that the kernel has made without a relay; `None` where it makes all of them.
    pub not_relayed: Option<u64>,
}

/// Requests of one connection that are not in the record yet: they have no complete response, or
/// their TLS was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The process that opened the connection.
    pub process: Option<u32>,
    /// How many; one where that is unknown.
    pub requests: u64,
}

type Request = dyn Fn(u64) + Send + Sync;

/// Requests marks of a run, from any thread.
#[derive(Clone, Default)]
pub struct Marker(Arc<OnceLock<Box<Request>>>);

impl Marker {
    /// Requests a mark with this number. Without effect before the program starts and after it has
    /// ended.
    pub fn request(&self, number: u64) {
        if let Some(request) = self.0.get() {
            request(number);
        }
    }

    /// The run begins: requests go there. A marker is for one run.
    pub(crate) fn attach(&self, request: impl Fn(u64) + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(request));
    }
}

impl fmt::Debug for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Marker")
            .field(&self.0.get().is_some())
            .finish()
    }
}
