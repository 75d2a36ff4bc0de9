//! What `findings` promises, seen from outside.

mod coverage;
mod golden;
mod observe;
mod requirement;
