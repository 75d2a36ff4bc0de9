//! The shell around the libraries.

fn main() {}
