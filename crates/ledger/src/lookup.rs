//! Name lookups.

use crate::connection::Owner;
use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::sync::Arc;

/// One lookup of a name, by the resolver at the vantage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lookup {
    /// Index into the run's variants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<u32>,
    /// The round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// The requested name; absent if only its duration was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// Start and end.
    pub span: Span,
    /// The addresses, or the resolver's error (`NXDOMAIN`, `ENOTFOUND`); absent if not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Result<Vec<IpAddr>, Arc<str>>>,
    /// The smallest TTL of the answer, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<u32>,
    /// The resolver (`getaddrinfo`, or an address).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolver: Option<Arc<str>>,
    /// The process that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
}
