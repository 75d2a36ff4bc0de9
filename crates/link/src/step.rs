//! The steps that make a link, each of which a system can forbid.

use intact_ledger::kinds;
use serde::{Deserialize, Serialize};

kinds! {
    /// A step of making a link.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum LinkStep, words {
        /// A user namespace, for those who are not root.
        UserNamespace = "making a user namespace",
        /// Being oneself in it.
        UserMap = "mapping our user into a user namespace",
        /// Three network namespaces.
        NetworkNamespace = "making network namespaces",
        /// Two pairs of devices between them.
        Devices = "making veth devices",
        /// Addresses and routes.
        Addresses = "setting addresses and routes",
        /// The congestion control that was asked for.
        Congestion = "choosing the congestion control",
        /// Packet sockets on the middle's devices.
        PacketSocket = "opening packet sockets",
        /// A process namespace.
        ProcessNamespace = "making a process namespace",
        /// Its own view of processes.
        ProcessMount = "mounting /proc for a process namespace",
        /// A mount namespace with the server's name.
        Names = "mounting a private /etc/hosts",
        /// A mount namespace with a resolv.conf.
        Resolver = "mounting a private /etc/resolv.conf",
        /// A process for the forwarder.
        Fork = "starting the forwarder",
        /// The check that packets arrive in time.
        Probe = "probing the link",
    }
}
