//! Scenarios: simulated clients that arrive, go through the steps of a session, and leave.
//!
//! A [`intact_scenario::Plan`] becomes a [`Script`] once, before anything is sent: formatted
//! requests and flat steps. Each engine thread has [`Clients`], which picks the sessions of those
//! that arrive, and each slot of the engine one [`Client`]. A client is a new environment: it
//! begins without a connection, and no other client uses those that it opens.

mod client;
mod error;
mod limits;
mod run;
mod script;

pub(crate) use client::{Client, Clients, Todo};
pub use error::ScenarioConfigError;
pub use limits::Arrival;
pub use run::{Scenario, ScenarioSize};
