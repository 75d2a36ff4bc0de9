//! The catalogue of HTTP clients: what each does with its connections, measured, and what to set.
//!
//! Data and lookup only: it runs nothing (the harness is `cargo xtask clients`) and prints nothing (`report` lays pages out).

mod advice;
mod articles;
mod catalogue;
mod facts;
mod faults;
mod find;

pub use advice::{Advice, HangLimit, LifeLimit, client_idle, fill_in};
pub use articles::{Article, Effect, Trial};
pub use catalogue::{Catalogue, CatalogueError, Client, Language, Role, Variant};
pub use facts::{
    ClientFacts, Cookies, Count, DnsCaching, Idle, KeepAliveHeader, LifetimeFacts, Load, Lookups,
    Measurement, RequestOutcome, RequestOutcomes, Stale, TcpKeepalive,
};
pub use faults::{CutBody, SilentWait, UnderFaults, UserTimeout};
pub use find::{FindError, Found};
