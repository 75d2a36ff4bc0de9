//! The settings that findings advise, of clients, proxies and servers, and how each is recognised.
//!
//! All of it is data: `clients/advice.toml`, next to the catalogue of what clients do. A document
//! that names a setting takes it from here. Must not know a rule or a document.

mod client;
mod server;

pub use client::{Client, IdleSetting, Remedy, clients, named, unrecognised};
pub use server::{Server, ServerLimit, server_line};

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    any_client: BTreeMap<Remedy, String>,
    any_server: BTreeMap<ServerLimit, String>,
    client: Vec<Client>,
    server: Vec<Server>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let text = include_str!("../../../clients/advice.toml");
        toml::from_str(text).expect("a test reads clients/advice.toml")
    })
}
