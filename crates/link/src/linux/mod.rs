//! How a link is made on Linux: network namespaces, veth devices, packet sockets.
//!
//! The processes of a link form a chain. The *owner* has a [`Link`]. Its child is the *keeper*, an
//! exec of the helper. The keeper's child is the *forwarder*, the first process of a process
//! namespace. Commands run under proxies. A closed socket or a death signal ends each process when
//! the one before it ends. So `kill -9` of any process leaves nothing behind.

mod channel;
mod devices;
mod forwarder;
mod hosts_file;
mod keeper;
mod link;
mod message;
mod network;
mod private_files;
mod resolver;
mod step_error;

pub use link::{Link, keep};
pub use resolver::use_resolver;
