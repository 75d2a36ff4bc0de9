//! Code: its files, its location in a process, and the names of functions.

mod address_space;
mod image;
mod perf_map;

pub(crate) use address_space::{AddressSpace, CodeLocation};
pub(crate) use image::Images;
pub(crate) use perf_map::PerfMap;
