//! Name lookups.

use crate::connection::Owner;
use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::sync::Arc;

/// One lookup of a name, by the resolver at the vantage.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lookup {
    /// Index into the run's variants.
    pub variant: Option<u32>,
    /// The round.
    pub round: Option<u32>,
    /// The requested name; absent if only its duration was observed.
    pub name: Option<Arc<str>>,
    /// Start and end.
    pub span: Span,
    /// The addresses, or the resolver's error (`NXDOMAIN`, `ENOTFOUND`); absent if not observed.
    pub answer: Option<Result<Vec<IpAddr>, Arc<str>>>,
    /// The smallest TTL of the answer, in seconds.
    pub ttl_s: Option<u32>,
    /// The resolver (`getaddrinfo`, or an address).
    pub resolver: Option<Arc<str>>,
    /// The process that asked.
    pub owner: Option<Owner>,
}
