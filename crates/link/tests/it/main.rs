//! Links under the real kernel.
#![cfg(target_os = "linux")]

mod leftovers;
mod link;
mod sides;
#[path = "../../../../fixtures/tests/skip.rs"]
mod skip;
mod stage;
