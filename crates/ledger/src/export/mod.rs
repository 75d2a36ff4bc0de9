//! Ledgers in the formats of other tools. One file per format.

pub mod csv;
pub mod har;
pub mod hdr;
