//! Plans, store, workers and merging, without any server.

mod campaign;
mod plans;
mod rig;
