//! Pages as a person sees them, on wide and narrow paper.

mod bench;
mod catalogue;
mod observed;
