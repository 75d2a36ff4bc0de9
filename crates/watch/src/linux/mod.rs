//! Watching on Linux: the supervisor answers calls, the relay carries data, observers read what passes.

mod follow;
mod observe;
mod order;
mod others;
mod outside;
mod relay;
mod run;
mod secrets;
mod supervisor;
mod sys;

pub use follow::{Subjects, follow};
pub use run::run;
pub use sys::signals::without_signals;
