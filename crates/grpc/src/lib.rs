//! Messages of gRPC from JSON. The types come from a descriptor set or from server reflection.
//!
//! [`Types`] turns JSON into the message of a method. [`reflection::Query`] asks a server for the
//! types, and [`reflection::reply`] is the server's side. Both are sans-IO: the caller carries the
//! bytes. Descriptors are foreign bytes, so their size and number are limited.

pub mod reflection;

mod types;

pub use types::{MOST_DESCRIPTOR_BYTES, Types, TypesError, UnaryMethod, file_of_json};
