//! The savings of each remedy, alone and after connections are reused.

use crate::chain::{Chain, Http, Tls};
use crate::predict::{Counting, Reuse, predict};
use intact_ledger::kinds;
use serde::Serialize;
use std::collections::BTreeSet;

kinds! {
    /// A change to the chain.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Remedy, words {
        /// Every call reuses a connection.
        ReuseConnections = "reuse connections",
        /// TLS 1.3 in place of 1.2.
        Tls13 = "TLS 1.3 everywhere",
        /// New connections resume a session, with a ticket or a pre-shared key.
        ResumeSessions = "resume TLS sessions",
        /// TLS 1.3 with the request as early data.
        EarlyData = "TLS 1.3 early data",
        /// HTTP/3 in place of TLS over TCP.
        Http3 = "HTTP/3",
        /// Names are resolved once.
        CacheLookUps = "cache lookups",
        /// Services that call no other service are not called: fresh responses come from the
        /// client's cache.
        CacheResponses = "responses from a cache, all fresh",
        /// Responses carry no body, because the client's stored one is still valid (304).
        RevalidateResponses = "304 instead of bodies",
        /// Repeated sequential calls become concurrent.
        CallAtOnce = "repeated calls at once",
        /// Repeated calls become one call.
        CallOnce = "one call for many",
        /// Half the distance.
        HalveDistance = "half the distance",
        /// Services work twice as fast.
        HalveWork = "services twice as fast",
    }
}

impl Remedy {
    /// The risk of the remedy, or its condition.
    pub fn risk(self) -> Option<&'static str> {
        match self {
            Remedy::ReuseConnections => Some(
                "the client's idle limit below the server's; a maximum age where addresses change",
            ),
            Remedy::EarlyData => Some(
                "early data can be replayed: only for requests that are safe to repeat (RFC 8446 section 8)",
            ),
            Remedy::Http3 => Some("the network must not block UDP"),
            Remedy::CacheLookUps => Some("an old address is used until its TTL is over"),
            Remedy::CacheResponses => Some(
                "a bound: only for storable responses while they are fresh (RFC 9111 section 4.2); changes are not visible until they are stale",
            ),
            Remedy::RevalidateResponses => Some(
                "a bound: needs ETag or Last-Modified, and responses that have not changed (RFC 9110 section 13)",
            ),
            Remedy::CallAtOnce => Some("only if no call needs the response of another"),
            Remedy::CallOnce => Some("needs an API call for many items"),
            Remedy::Tls13 | Remedy::ResumeSessions | Remedy::HalveDistance | Remedy::HalveWork => {
                None
            }
        }
    }

    fn apply(self, chain: &mut Chain) {
        if self == Remedy::HalveWork {
            for service in chain.services.values_mut() {
                service.work_ms /= 2.0;
            }
        }
        let leaves: BTreeSet<String> = chain
            .services
            .iter()
            .filter(|(_, service)| service.calls.is_empty())
            .map(|(name, _)| name.clone())
            .collect();
        for call in chain.calls_mut() {
            match self {
                Remedy::ReuseConnections => call.reuse = 1.0,
                Remedy::Tls13 if call.tls == Tls::Tls12 => call.tls = Tls::Tls13,
                // the saved computation is unknown, and not counted
                Remedy::ResumeSessions if call.tls == Tls::Tls12 => call.tls = Tls::Tls12Resumed,
                Remedy::EarlyData if call.tls != Tls::None => call.tls = Tls::Tls13EarlyData,
                Remedy::Http3 if call.tls != Tls::None => {
                    call.http = Http::Quic;
                    if call.tls != Tls::Tls13EarlyData {
                        call.tls = Tls::Tls13;
                    }
                }
                Remedy::CacheLookUps => call.dns_ms = 0.0,
                Remedy::CacheResponses if leaves.contains(&call.to) => {
                    call.times = 0;
                    call.at_once = false;
                }
                Remedy::RevalidateResponses => call.answer_bytes = 0,
                Remedy::CallAtOnce => call.at_once = true,
                Remedy::CallOnce => call.times = 1,
                Remedy::HalveDistance => call.rtt_ms /= 2.0,
                _ => {}
            }
        }
    }
}

/// The savings of a remedy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WhatIf {
    /// The remedy.
    pub remedy: Remedy,
    /// Duration of one request with only this remedy, in milliseconds.
    pub total_ms: f64,
    /// Saving with only this remedy, in milliseconds.
    pub saves_ms: f64,
    /// Additional saving after all connections are reused, in milliseconds; `None` for that remedy
    /// itself.
    pub saves_when_reused_ms: Option<f64>,
}

/// Every remedy with an effect, ordered by saving.
pub fn what_if(chain: &Chain, counting: Counting) -> Vec<WhatIf> {
    let time = |chain: &Chain, reuse| predict(chain, counting, reuse).total_ms;
    let now = time(chain, Reuse::Configured);
    let reused = time(chain, Reuse::Always);
    let mut all: Vec<WhatIf> = Remedy::ALL
        .into_iter()
        .map(|remedy| {
            let mut changed = chain.clone();
            remedy.apply(&mut changed);
            let total_ms = time(&changed, Reuse::Configured);
            WhatIf {
                remedy,
                total_ms,
                saves_ms: now - total_ms,
                saves_when_reused_ms: (remedy != Remedy::ReuseConnections)
                    .then(|| reused - time(&changed, Reuse::Always)),
            }
        })
        .filter(|one| one.saves_ms > 0.0 || one.saves_when_reused_ms.is_some_and(|ms| ms > 0.0))
        .collect();
    all.sort_by(|a, b| b.saves_ms.total_cmp(&a.saves_ms));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::parse;

    #[test]
    fn a_cache_leaves_out_calls_that_lead_no_further_and_304_leaves_out_bodies() {
        let chain = parse(
            "[client]\ncalls = [{ to = \"a\", rtt = \"30ms\", reuse = false, answer = \"100kB\" }]\n[service.a]\nwork = \"2ms\"\n\
             calls = [{ to = \"b\", rtt = \"10ms\", times = 3, at-once = true }]\n[service.b]\nwork = \"5ms\"",
        )
        .unwrap();
        let all = what_if(&chain, Counting::Tcp);
        let of = |remedy| all.iter().find(|one| one.remedy == remedy).unwrap();
        // the three calls at once take a round trip and the work; a calls b, so it is called all
        // the same
        assert_eq!(of(Remedy::CacheResponses).saves_when_reused_ms, Some(15.0));
        // 14.6, 43.8 and 102.2 kB after one, two and three round trips
        assert_eq!(of(Remedy::RevalidateResponses).saves_ms, 60.0);
        assert_eq!(
            of(Remedy::RevalidateResponses).saves_when_reused_ms,
            Some(0.0)
        );
    }

    #[test]
    fn after_connections_are_reused_a_cheaper_handshake_saves_nothing() {
        let chain = parse(
            "[client]\ncalls = [{ to = \"a\", rtt = \"30ms\", dns = \"5ms\", tls = \"1.2\", reuse = false, times = 3 }]\n[service.a]\nwork = \"2ms\"",
        )
        .unwrap();
        let all = what_if(&chain, Counting::Tcp);
        let of = |remedy| all.iter().find(|one| one.remedy == remedy).unwrap();
        assert_eq!(of(Remedy::ReuseConnections).saves_ms, 3.0 * 95.0);
        assert_eq!(of(Remedy::Tls13).saves_ms, 3.0 * 30.0);
        assert_eq!(of(Remedy::Tls13).saves_when_reused_ms, Some(0.0));
        assert_eq!(of(Remedy::EarlyData).saves_ms, 3.0 * 60.0);
        assert_eq!(of(Remedy::CacheLookUps).saves_ms, 15.0);
        assert_eq!(of(Remedy::HalveDistance).saves_when_reused_ms, Some(45.0));
        assert!(all.windows(2).all(|two| two[0].saves_ms >= two[1].saves_ms));
    }
}
