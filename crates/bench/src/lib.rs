//! Measures what each way of connecting costs: variants, rounds and the load engine.
//!
//! [`Bench::new`] checks a [`Config`] and makes the variants. [`Bench::run`] measures them in
//! interleaved rounds, and passes each event to a [`BenchObserver`]. A producer: it writes the
//! ledger's events and draws no conclusions.

mod closed_loop;
mod config;
mod connection_checks;
mod crew;
mod default_length;
mod endpoint;
mod engine;
mod inquiry;
mod io_backend;
mod load_steps;
mod observer;
mod open_loop;
mod pace;
mod preparation;
mod processors;
mod recorder;
mod recording;
mod response_cache;
mod rounds;
mod scenario;
mod targets;
mod validation;
mod variant_plan;
mod windows;

pub mod machine;

pub use config::{
    Coalesce, Config, ConfigError, GrpcCall, IoChoice, Length, RowPolicy, Target, Targets,
};
pub use engine::{Gauge, Progress, Pulse};
pub use inquiry::{Inquiry, InquiryError, InquiryReply};
pub use io_backend::IoUnavailable;
pub use load_steps::LoadTurn;
pub use observer::{BenchError, BenchObserver, Position};
pub use rounds::{Bench, Place};
pub use scenario::{Arrival, Scenario, ScenarioConfigError, ScenarioSize};
pub use windows::LoadWindow;
