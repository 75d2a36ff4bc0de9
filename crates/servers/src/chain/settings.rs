//! Limits to set: below a server's, above a client's, and one set for the whole chain. Must not
//! judge a hop.

use super::{HopFacts, IdleKind, Order};
use crate::check::below;
use intact_timers::Hop;
use serde::Serialize;

/// Which limit of a hop is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// That of the connections that it accepts.
    Accepts,
    /// That of the connections that it keeps to the next hop.
    Keeps,
    /// The one limit of both.
    Both,
}

/// A limit to set.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HopSetting {
    /// The hop.
    pub hop: String,
    /// Which of its limits.
    pub side: Side,
    /// The limit so far, in seconds; absent for none.
    pub from_s: Option<f64>,
    /// The limit to set, in seconds.
    pub to_s: f64,
}

/// A client's limit that is safe below that of a server, in seconds.
pub(super) fn below_s(server_s: f64) -> f64 {
    below(server_s) as f64 / 1e3
}

/// A server's limit that is safe above that of a client: 10 % more, at least a second, in whole
/// seconds.
pub(super) fn above_s(client_s: f64) -> f64 {
    (client_s + (client_s / 10.0).max(1.0)).ceil()
}

/// The limits that change so that every hop is in order. From the client on: the first limit is
/// lowered, the others are raised, since a lower limit in the middle of the chain would have to go
/// on to the client. Where nothing can be raised above, the client's side is lowered. None where a
/// limit is unknown.
pub(super) fn consistent(chain: &[Hop], hops: &[HopFacts]) -> Vec<HopSetting> {
    if hops.iter().any(|hop| hop.order == Order::Unknown) {
        return Vec::new();
    }
    let mut changes = Vec::new();
    // the limit of the connections that the client of the hop at hand keeps, where it was raised
    let mut raised: Option<f64> = None;
    for (nth, hop) in hops.iter().enumerate() {
        let client = raised.take().or(hop.client_idle.seconds);
        let server = hop.server_idle.seconds;
        let is_kept = hop.order != Order::NotKept && hop.server_idle.kind == IdleKind::After;
        let (Some(server), true) = (server, is_kept) else {
            continue;
        };
        if client.is_some_and(|client| client <= below_s(server) || client < server - 1.0) {
            continue;
        }
        // a limit of a few seconds cannot be undercut with room to spare
        let is_first = nth == 0 && below_s(server) >= 10.0;
        match client {
            Some(client) if !is_first => {
                let to_s = above_s(client);
                let next = &chain[nth + 1];
                changes.push(HopSetting {
                    hop: hop.server.clone(),
                    side: if next.is_coupled && nth + 1 < hops.len() {
                        raised = Some(to_s);
                        Side::Both
                    } else {
                        Side::Accepts
                    },
                    from_s: Some(server),
                    to_s,
                });
            }
            client => changes.push(HopSetting {
                hop: hop.client.clone(),
                side: Side::Keeps,
                from_s: client,
                to_s: below_s(server),
            }),
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::super::ChainFacts;
    use super::*;
    use intact_timers::Idle;
    use proptest::prelude::*;
    use std::time::Duration;

    fn given(limits: &[f64]) -> Vec<Hop> {
        let hops = (0..).zip(limits);
        let hop = |(nth, seconds): (usize, &f64)| {
            let idle = Idle::After(Duration::from_secs_f64(*seconds));
            Hop::given(&format!("h{nth}"), idle, idle, true)
        };
        hops.map(hop).collect()
    }

    #[test]
    fn the_client_is_lowered_and_the_application_is_raised() {
        let chain = given(&[60.0, 60.0, 75.0, 5.0]);
        let settings = ChainFacts::new(&chain, None).settings;
        let lines: Vec<(&str, Side, f64)> = settings
            .iter()
            .map(|one| (&*one.hop, one.side, one.to_s))
            .collect();
        assert_eq!(
            lines,
            [("h0", Side::Keeps, 54.0), ("h3", Side::Accepts, 83.0)]
        );
    }

    proptest! {
        #[test]
        fn the_settings_put_every_hop_in_order(limits in proptest::collection::vec(0.5_f64..600.0, 2..7)) {
            let mut chain = given(&limits);
            for change in ChainFacts::new(&chain, None).settings {
                let hop = chain.iter_mut().find(|hop| hop.name == change.hop).unwrap();
                let idle = Idle::After(Duration::from_secs_f64(change.to_s));
                if change.side != Side::Keeps {
                    hop.accepts[0].idle = idle;
                }
                if change.side != Side::Accepts {
                    hop.keeps[0].idle = idle;
                }
            }
            let after = ChainFacts::new(&chain, None);
            prop_assert_eq!(after.races.value(), Some(0.0), "{:?}", after.verdict);
        }
    }
}
