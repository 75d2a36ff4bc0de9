//! A real round trip on one machine: a client side and a server side in network namespaces of their own, and between them a
//! forwarder that delays, loses and forgets. TCP on both ends is the kernel's own, so SYN, TLS and slow start cost what they cost.
//!
//! An instrument: it starts links and puts commands on their sides. It draws no conclusions.

mod spec;

pub use spec::{Blocked, Change, Congestion, Forgotten, Nat, Spec, SpecError};
