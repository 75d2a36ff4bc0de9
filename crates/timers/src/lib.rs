//! Idle limits of the hops between a client and an application: from a person's text, from the defaults of products,
//! and from configuration files of nginx, HAProxy, Apache and Caddy.
//!
//! Files come from the caller ([`Files`]). Must not do I/O, and must not judge: which side should have the shorter limit is a finding.

mod config;
mod hop;
mod product;

pub use config::{ConfigError, FileError, Files, MOST_BYTES, NotRead, read};
pub use hop::{Hop, HopError, HopSource, HopSpec, Idle, Place, Timer};
pub use product::Product;
