//! The messages between the processes of a link.

use crate::spec::{LinkChange, Spec};
use crate::stats::LinkFacts;
use crate::step::LinkStep;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::PathBuf;

/// The setup of a link, the first message to the keeper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) spec: Spec,
    /// Decides loss and jitter.
    pub(super) seed: u64,
    pub(super) isolation: Isolation,
    /// The name server of commands on the link.
    pub(super) resolver: Option<IpAddr>,
}

/// The namespaces of commands in addition to the network. Some containers refuse the first, some
/// refuse both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Isolation {
    /// A process namespace: nothing that was started outlives the link.
    pub(super) processes: bool,
    /// A mount namespace: the server's name.
    pub(super) names: bool,
}

/// Later requests to the keeper. Each has a reply of its own type.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Switch something. The reply is `()`.
    Change(LinkChange),
    /// Whether a process listens on this port of the server. The reply is a `bool`.
    Listening(u16),
    /// The counts so far. The reply is a `LinkStats`.
    Account,
}

/// The keeper's reply to a [`Setup`]. Descriptors of a link that is there: see
/// [`super::enter::NamespaceHandles`], then the one for the certificate.
pub(super) type SetupReply = Result<Box<LinkReady>, Refusal>;

/// A link that is there.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LinkReady {
    pub(super) facts: LinkFacts,
    /// Whether there is a user namespace among the doors.
    pub(super) user: bool,
    /// Where commands find what is written to the last descriptor.
    pub(super) certificate: PathBuf,
}

/// Why there is no link.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Refusal {
    pub(super) step: LinkStep,
    /// The kernel's error number.
    pub(super) errno: i32,
}

/// What the keeper sends to the forwarder. The replies are those to a [`Request`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ForwarderCommand {
    /// Switch to this link and reset the counts.
    Begin(Spec),
    Change(LinkChange),
    Account,
}

/// A forwarder that forwards. Descriptors: mount namespace, process namespace, where there are
/// such.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ForwarderReady {
    pub(super) real_time: bool,
    pub(super) caveats: Vec<String>,
}
