//! Code: the files that it comes from, where it lies in a process, and how functions are called.

mod image;
mod perf_map;
mod address_space;

pub(crate) use image::Images;
pub(crate) use perf_map::PerfMap;
pub(crate) use address_space::{CodeLocation, AddressSpace};
