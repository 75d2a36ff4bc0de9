//! What the processes of a link say to each other.

use crate::spec::{LinkChange, Spec};
use crate::stats::{LinkStats, RoundTrip};
use crate::step::LinkStep;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::PathBuf;

/// What a link is made of; the first word to the keeper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) spec: Spec,
    /// Decides loss and jitter.
    pub(super) seed: u64,
    pub(super) isolation: Isolation,
    /// The name server of commands on the link.
    pub(super) resolver: Option<IpAddr>,
}

/// What commands on the sides get besides a network of their own. Some containers refuse the first, some both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Isolation {
    /// A process namespace: nothing that was started outlives the link.
    pub(super) processes: bool,
    /// A mount namespace: the server's name.
    pub(super) names: bool,
}

/// What is asked of the keeper afterwards.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Switch something.
    Change(LinkChange),
    /// Is this port of the server listened on?
    Listening(u16),
    /// How did it go so far?
    Account,
}

/// What the keeper answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The link is there. Descriptors: see [`super::enter::NamespaceHandles`], then the one for the certificate.
    Up(Box<LinkReady>),
    /// It cannot be.
    Refused(Refusal),
    Done,
    Listening(bool),
    Account(LinkStats),
}

/// A link that is there.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LinkReady {
    pub(super) round_trip: RoundTrip,
    /// The congestion control of both ends.
    pub(super) congestion: String,
    /// Whether the forwarder runs ahead of ordinary processes.
    pub(super) real_time: bool,
    /// Whether there is IPv6.
    pub(super) v6: bool,
    /// Whether there is a user namespace among the doors.
    pub(super) user: bool,
    /// Where commands find what is written to the last descriptor.
    pub(super) certificate: PathBuf,
    /// What is not as it should be.
    pub(super) caveats: Vec<String>,
}

/// Why there is no link.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Refusal {
    pub(super) step: LinkStep,
    /// The kernel's error number.
    pub(super) errno: i32,
}

/// What the keeper sends to the forwarder.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ForwarderCommand {
    /// Become this link, and count from here on.
    Begin(Spec),
    Change(LinkChange),
    Account,
}

/// What the forwarder sends to the keeper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ForwarderReport {
    /// It forwards. Descriptors: mount namespace, process namespace, where there are such.
    Ready {
        real_time: bool,
        caveats: Vec<String>,
    },
    Refused(Refusal),
    Done,
    Account(LinkStats),
}
