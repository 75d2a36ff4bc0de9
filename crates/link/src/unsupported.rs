//! Systems without network namespaces: there is no link, and saying so is all that can be done.

use crate::{LinkChange, LinkEnd, LinkError, LinkFacts, LinkStats, Spec};
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

/// An emulated link, of which there is none on this system.
#[derive(Debug)]
pub enum Link {}

impl Link {
    /// Always [`LinkError::Platform`].
    pub fn start(_: &Spec, _: Option<IpAddr>, _: impl Fn() -> Command) -> Result<Link, LinkError> {
        Err(LinkError::Platform)
    }

    /// What was asked for.
    pub fn spec(&self) -> &Spec {
        match *self {}
    }

    /// What was measured and found at its start.
    pub fn facts(&self) -> &LinkFacts {
        match *self {}
    }

    /// Whether the server's name can be looked up.
    pub fn has_names(&self) -> bool {
        match *self {}
    }

    /// Makes `command` start on a side.
    pub fn enter(&self, _: LinkEnd, _: &mut Command) {
        match *self {}
    }

    /// Puts a certificate where commands on the link find it.
    pub fn share_certificate(&self, _: &str) -> io::Result<&Path> {
        match *self {}
    }

    /// Whether something listens on this port of the server.
    pub fn is_listening(&self, _: u16) -> Result<bool, LinkError> {
        match *self {}
    }

    /// Switches a running link.
    pub fn change(&self, _: &LinkChange) -> Result<(), LinkError> {
        match *self {}
    }

    /// The packets so far by their outcome.
    pub fn account(&self) -> Result<LinkStats, LinkError> {
        match *self {}
    }
}

/// Always [`LinkError::Platform`].
pub fn use_resolver(_: IpAddr) -> Result<Vec<&'static str>, LinkError> {
    Err(LinkError::Platform)
}

/// Always an error: there is nothing to keep.
pub fn keep() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
