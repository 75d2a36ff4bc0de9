//! A connection against scripted servers on loopback.

mod rig;
mod tls;
mod unanswered;
mod verification;
