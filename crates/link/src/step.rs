//! The steps that make a link, each of which a system can forbid.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A step of making a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkStep {
    /// A user namespace, for those who are not root.
    UserNamespace,
    /// Being oneself in it.
    UserMap,
    /// Three network namespaces.
    NetworkNamespace,
    /// Two pairs of devices between them.
    Devices,
    /// Addresses and routes.
    Addresses,
    /// The congestion control that was asked for.
    Congestion,
    /// Packet sockets on the middle's devices.
    PacketSocket,
    /// A process namespace.
    ProcessNamespace,
    /// Its own view of processes.
    ProcessMount,
    /// A mount namespace with the server's name.
    Names,
    /// A mount namespace with a resolv.conf.
    Resolver,
    /// A process for the forwarder.
    Fork,
    /// The check that packets arrive in time.
    Probe,
}

impl fmt::Display for LinkStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LinkStep::UserNamespace => "making a user namespace",
            LinkStep::UserMap => "mapping our user into a user namespace",
            LinkStep::NetworkNamespace => "making network namespaces",
            LinkStep::Devices => "making veth devices",
            LinkStep::Addresses => "setting addresses and routes",
            LinkStep::Congestion => "choosing the congestion control",
            LinkStep::PacketSocket => "opening packet sockets",
            LinkStep::ProcessNamespace => "making a process namespace",
            LinkStep::ProcessMount => "mounting /proc for a process namespace",
            LinkStep::Names => "mounting a private /etc/hosts",
            LinkStep::Resolver => "mounting a private /etc/resolv.conf",
            LinkStep::Fork => "starting the forwarder",
            LinkStep::Probe => "probing the link",
        })
    }
}
