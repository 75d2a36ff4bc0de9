//! The specification of a link, such as `rtt=30ms,jitter=2ms,loss=0.1%,rate=100mbit`.
//!
//! Only parses. [`crate::Link`] measures whether the machine achieves it.

mod change;
mod read;

pub use change::LinkChange;
pub use read::SpecError;

use intact_ledger::kinds;
use intact_units::{bit_rate, duration, share};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A link from a client side to a server side. The default does nothing to packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// One-way delay from client to server.
    pub up: Duration,
    /// One-way delay from server to client.
    pub down: Duration,
    /// Each packet's delay varies uniformly by up to this, either way.
    pub jitter: Duration,
    /// Whether jitter may change the order of the packets of a flow.
    pub reorder: bool,
    /// Packets lost of a million, independent, in each direction.
    pub loss_ppm: u32,
    /// Bits per second in each direction; absent: as fast as the kernel goes.
    pub rate: Option<u64>,
    /// The direction in which everything is dropped.
    pub drop: Blocked,
    /// A middle box that forgets idle flows.
    pub nat: Option<Nat>,
    /// TCP's congestion control on both ends.
    pub congestion: Congestion,
}

kinds! {
    json
    /// Where everything is dropped.
    #[derive(Default)]
    pub enum Blocked, name {
        /// Nowhere.
        #[default]
        None = "none",
        /// From client to server.
        Up = "up",
        /// From server to client.
        Down = "down",
        /// In both directions, as around a frozen machine.
        Both = "both",
    }
}

/// A box in the middle that knows flows and forgets those that idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nat {
    /// Idle time after which a flow is forgotten.
    pub idle: Duration,
    /// What happens to packets of a flow that it does not know.
    pub forgotten: Forgotten,
}

kinds! {
    json
    /// What a middle box does with packets of a forgotten flow.
    pub enum Forgotten, name {
        /// Answers with a reset, as AWS NAT gateways and network load balancers do.
        Rst = "rst",
        /// Drops them without a word.
        Silent = "silent",
    }
}

/// Which congestion control TCP uses on the link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// Cubic, whatever the host's default: a pacing one (bbr) delays requests on reused
    /// connections.
    #[default]
    Cubic,
    /// The host's default.
    Host,
    /// A named one, which the kernel must have loaded.
    Named(String),
}

impl Spec {
    /// The round trip without jitter and queues.
    pub fn round_trip(&self) -> Duration {
        self.up + self.down
    }
}

impl fmt::Display for Spec {
    /// The canonical text, which parses to the same spec.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.up == self.down {
            parts.push(format!("rtt={}", duration::write(self.round_trip())));
        } else {
            parts.push(format!("up={}", duration::write(self.up)));
            parts.push(format!("down={}", duration::write(self.down)));
        }
        if !self.jitter.is_zero() {
            parts.push(format!("jitter={}", duration::write(self.jitter)));
        }
        if self.reorder {
            parts.push("reorder=yes".to_owned());
        }
        if self.loss_ppm > 0 {
            parts.push(format!("loss={}", share::write(self.loss_ppm)));
        }
        if let Some(rate) = self.rate {
            parts.push(format!("rate={}", bit_rate::write(rate)));
        }
        if self.drop != Blocked::None {
            parts.push(format!("drop={}", self.drop));
        }
        if let Some(nat) = self.nat {
            let idle = duration::write(nat.idle);
            parts.push(format!("nat-idle={idle}:{}", nat.forgotten));
        }
        match &self.congestion {
            Congestion::Cubic => {}
            Congestion::Host => parts.push("cc=host".to_owned()),
            Congestion::Named(name) => parts.push(format!("cc={name}")),
        }
        f.write_str(&parts.join(","))
    }
}
