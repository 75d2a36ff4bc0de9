//! What experiments found out: variants over rounds, differences with intervals, the verdict on a
//! change.
//!
//! One module for each experiment: `bench`, its search for a capacity and its scenarios, `compare`,
//! `lambda`. Must not run anything, print, or read a clock; random draws use a seed of the caller.

#[cfg(not(feature = "schema"))]
#[macro_use]
extern crate intact_schema;
#[cfg(feature = "schema")]
#[macro_use]
extern crate schemars;

pub mod bench;
pub mod capacity;
pub mod compare;
pub mod lambda;
pub mod likeness;

pub mod scenario;
pub mod time_difference;
pub mod traffic;
