//! Links under the real kernel.
#![cfg(target_os = "linux")]

mod leftovers;
mod link;
mod sides;
mod stage;
