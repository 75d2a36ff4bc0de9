//! Bytes in, events out: the protocols that `intact` speaks and overhears, without sockets, clocks or threads.
//!
//! Each module is a push parser: the caller hands over whatever bytes it has, is told how many were used and gets
//! at most one event a call, so any split of the bytes gives the same events. Time enters only where a caller
//! supplies it. Every byte is foreign: memory is bounded, and no input panics.

pub mod http1;
