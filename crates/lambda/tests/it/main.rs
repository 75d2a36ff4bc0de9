//! The platform against runtime clients that behave and that do not.

mod platform;
mod runtime;
