//! `intact watch`: a watched program behaves as an unwatched one, and its connections are counted
//! as its server counts them.

#![cfg(target_os = "linux")]

mod broken_reuse;
mod client_certificate;
mod clients;
mod closes;
mod container;
mod early_data;
mod fault_kinds;
mod faults;
mod full;
mod hostile;
mod large;
mod live;
pub(crate) mod names;
#[cfg(target_arch = "x86_64")]
mod narrow;
mod pinned;
mod places;
mod processor;
mod proxies;
mod refused;
mod resolver;
mod rights;
mod sampled;
mod semantics;
mod service;
mod service_losses;
mod service_rows;
mod tiers;
mod unread;
mod unseen;
mod windows;
mod wrapper;

use crate::program::intact;
use serde_json::Value;
use std::process::Output;

/// Runs a program under `watch`; what it gave, and the JSON document.
fn watch(options: &[&str], command: &[&str]) -> (Output, Value) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("watch.json");
    let json = format!("--json={}", path.display());
    let mut words = vec!["watch", "--quiet", &json];
    words.extend_from_slice(options);
    words.push("--");
    words.extend_from_slice(command);
    let out = intact(&words);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{command:?}: {error}: {out:?}"));
    (out, serde_json::from_str(&text).unwrap())
}
