//! Watching on Linux: the supervisor answers calls, the relay carries data, observers read what passes.

mod attach;
mod observe;
mod others;
mod relay;
mod relay_command;
mod run;
mod secrets;
mod sock_diag_tracker;
mod supervisor;
mod sys;

pub use attach::{Subjects, follow};
pub use run::run;
pub use sys::signals::without_signals;
