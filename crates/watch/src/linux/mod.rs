//! Watching on Linux: the supervisor answers calls, the relay carries data, observers read what passes.

mod attach;
mod observe;
mod relay_command;
mod others;
mod sock_diag_tracker;
mod relay;
mod run;
mod secrets;
mod supervisor;
mod sys;

pub use attach::{Subjects, follow};
pub use run::run;
pub use sys::signals::without_signals;
