//! What is known of servers and of the connections to them: the profile of a check, the idle limits
//! along a chain of hops, what a program does under faults.
//!
//! Must not send anything, print, or read a clock.

#[cfg(not(feature = "schema"))]
#[macro_use]
extern crate intact_schema;
#[cfg(feature = "schema")]
#[macro_use]
extern crate schemars;

pub mod chain;
pub mod check;
pub mod fault;
