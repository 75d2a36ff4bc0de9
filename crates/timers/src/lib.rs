//! Idle limits of the hops between a client and an application. They come from the user's text, the
//! defaults of products, and configuration files of nginx, HAProxy, Apache and Caddy.
//!
//! The caller reads files ([`Files`]). Must not do I/O, and must not judge which side needs the
//! shorter limit; that is a finding.

mod config;
mod hop;
mod product;

pub use config::{ConfigError, FileError, Files, MOST_BYTES, NotRead, read};
pub use hop::{Hop, HopError, HopSource, HopSpec, Idle, Place, Timer};
pub use product::{Product, Version};
