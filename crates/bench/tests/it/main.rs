//! The engine against scripted peers and real servers: what it counts is what they saw.

mod back_ends;
mod cache;
mod connection_life;
mod counting;
mod early_data;
mod failures;
mod fault_kinds;
mod hostile;
mod http2;
mod http3;
mod open_loop;
mod rig;
mod routes;
mod scenario;
mod scripted;
#[path = "../../../../fixtures/tests/skip.rs"]
mod skip;
mod targets;
