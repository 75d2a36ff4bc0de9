//! What the processes of a link say to each other.

use crate::middle::{Counts, Middle};
use crate::spec::{Change, Spec};
use crate::step::Step;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a link is made of; the first word to the keeper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) spec: Spec,
    /// Decides loss and jitter.
    pub(super) seed: u64,
    pub(super) isolation: Isolation,
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
    Change(Change),
    /// Is this port of the server listened on?
    Listening(u16),
    /// How did it go so far?
    Account,
}

/// What the keeper answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The link is there. Descriptors: see [`super::enter::Doors`], then the one for the certificate.
    Up(Box<Up>),
    /// It cannot be.
    Refused(Refusal),
    Done,
    Listening(bool),
    Account(Account),
}

/// A link that is there.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Up {
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
    pub(super) step: Step,
    /// The kernel's error number.
    pub(super) errno: i32,
}

/// What the keeper tells the forwarder.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Become this link, and count from here on.
    Begin(Spec),
    Change(Change),
    Account,
}

/// What the forwarder tells the keeper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Told {
    /// It forwards. Descriptors: mount namespace, process namespace, where there are such.
    Ready {
        real_time: bool,
        caveats: Vec<String>,
    },
    Refused(Refusal),
    Done,
    Account(Account),
}

/// SYN round trips to a closed port, measured before anything else ran on the link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// How many were measured.
    pub count: usize,
    /// The shortest, in ms.
    pub min_ms: f64,
    /// The median, in ms.
    pub p50_ms: f64,
    /// The longest, in ms.
    pub max_ms: f64,
}

/// How the forwarder did: the link is what it says as far as this is small.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// How late packets were released. `None`: none were.
    pub lateness: Option<Lateness>,
    /// Packets from client to server.
    pub up: Counts,
    /// Packets from server to client.
    pub down: Counts,
}

/// By how much packets were released after they were due.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Median, in us.
    pub p50_us: f64,
    /// 99th percentile, in us; `None`: fewer than ten packets lie beyond it.
    pub p99_us: Option<f64>,
    /// The worst, in us.
    pub max_us: f64,
}

impl Account {
    pub(super) fn of(middle: &Middle) -> Account {
        let [up, down] = middle.counts;
        let us = |ns: f64| ns / 1e3;
        let histogram = &middle.lateness;
        let lateness = histogram.quantile(0.5).zip(histogram.max());
        Account {
            lateness: lateness.map(|(p50, max)| Lateness {
                p50_us: us(p50),
                p99_us: histogram.supported_quantile(0.99).map(us),
                max_us: us(max as f64),
            }),
            up,
            down,
        }
    }
}
