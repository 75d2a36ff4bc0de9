//! What is known of servers and of the connections to them: the profile of a check, the idle limits
//! along a chain of hops, what a program does under faults.
//!
//! Must not send anything, print, or read a clock.

pub mod chain;
pub mod check;
pub mod fault;
