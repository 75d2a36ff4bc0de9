//! The catalogue of HTTP clients, proxies and servers: measured facts about their connections, and
//! the settings to use.
//!
//! Only data and lookup. The harness `cargo xtask clients` measures, and `report` writes the pages.

#[cfg(not(feature = "schema"))]
#[macro_use]
extern crate intact_schema;
#[cfg(feature = "schema")]
#[macro_use]
extern crate schemars;

mod advice;
mod articles;
mod catalogue;
mod egress;
mod facts;
mod faults;
mod find;
mod hops;

pub use advice::{Advice, HangLimit, LifeLimit, client_idle, fill_in};
pub use articles::{Article, Effect, Trial};
pub use catalogue::{Catalogue, CatalogueError, Client, Language, Library, Role, Variant};
pub use egress::{Egress, EgressError};
pub use facts::{
    ClientFacts, Cookies, Count, DnsCaching, Idle, KeepAliveHeader, LifetimeFacts, Load, Lookups,
    Measurement, RequestOutcome, RequestOutcomes, Stale, TcpKeepalive,
};
pub use faults::{CutBody, SilentWait, UnderFaults, UserTimeout};
pub use find::{FindError, Found};
pub use hops::{
    AcceptedFacts, AcceptedIdle, DrainFacts, Hop, HopKind, HopMeasurement, HopVariant, Hops,
    Release, RequestLimit, UpstreamFacts,
};
