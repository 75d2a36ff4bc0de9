//! Servers that only tests start: [`TestServer`] on a thread of its own, a [`Hostile`] one as a
//! file of `fixtures/hostile/` describes it, and a [`ScriptedServer`] that sends the bytes of a
//! script.
//!
//! The product does not contain this crate.

mod hostile;
mod script;
mod scripted_server;
mod test_server;

pub use hostile::{Expect, Hostile, HostileError, ValueError, in_parallel};
pub use script::Script;
pub use scripted_server::ScriptedServer;
pub use test_server::TestServer;
