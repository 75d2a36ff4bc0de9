//! Code: the files that it comes from, where it lies in a process, and how functions are called.

mod address_space;
mod image;
mod perf_map;

pub(crate) use address_space::{AddressSpace, CodeLocation};
pub(crate) use image::Images;
pub(crate) use perf_map::PerfMap;
