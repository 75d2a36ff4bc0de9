//! How a link is made on Linux: network namespaces, veth devices, packet sockets.
//!
//! Processes: the *owner* (the process with a [`Link`]), the *keeper* (its child, an exec of the helper), the *forwarder* (the keeper's
//! child, first process of a process namespace), and the commands with their proxies. Each notices the end of the one
//! before it by a closed socket or a death signal, so that `kill -9` of any leaves nothing behind.

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
