//! Compares the catalogue with a new measurement.

use intact_fix::{
    AcceptedFacts, AcceptedIdle, ClientFacts, Count, DnsCaching, DrainFacts, HopMeasurement, Idle,
    KeepAliveHeader, LifetimeFacts, Load, Lookups, Measurement, SilentWait, UnderFaults,
    UpstreamFacts,
};
use std::fmt::Debug;
use std::time::Duration;

/// The seconds by which an idle limit may differ from run to run: clients that sweep do so once a
/// second.
const SLACK_S: f64 = 1.1;
/// How long after the idle limit the next use may come that finds the connection discarded.
const SLACK_NEXT_USE_S: f64 = 3.0;
/// By how many connections a burst may differ from run to run: it varies whether two requests
/// overlap.
const SLACK_BURST: u64 = 3;

/// Whether both are of the same variant in the same versions.
pub(crate) fn is_of(one: &Measurement, other: &Measurement) -> bool {
    (&one.client, &one.variant, &one.versions) == (&other.client, &other.variant, &other.versions)
}

/// One line per claim that the measurement contradicts. It watched idle connections for `idle_for`.
pub(crate) fn differences(
    claimed: &Measurement,
    found: &Measurement,
    idle_for: Duration,
) -> Vec<String> {
    let mut lines = Differences(Vec::new());
    lines.of("snippet", &claimed.snippet, &found.snippet, |a, b| a == b);
    // destructured so that the compiler requires a comparison of each new fact
    let ClientFacts {
        connection_field,
        plain,
        tls,
        idle,
        keep_alive_header: hint,
        stale,
        unread_small,
        unread_large,
        not_found,
        tcp_keepalive,
        cookies,
        lookups,
        life,
        faults,
    } = &claimed.facts;
    let now = &found.facts;
    lines.of(
        "connection field",
        connection_field,
        &now.connection_field,
        Option::eq,
    );
    lines.of("plain", plain, &now.plain, both(is_load));
    lines.of("tls", tls, &now.tls, both(is_load));
    lines.of("idle", idle, &now.idle, |a, b| is_idle(*a, *b, idle_for));
    let found_hint = &now.keep_alive_header;
    lines.of("hint", hint, found_hint, |a, b| is_hint(*a, *idle, *b));
    lines.of("stale", stale, &now.stale, |a, b| a == b);
    let (small, large) = (&now.unread_small, &now.unread_large);
    lines.of("unread, small", unread_small, small, both(is_burst));
    lines.of("unread, large", unread_large, large, both(is_burst));
    lines.of("not found", not_found, &now.not_found, Option::eq);
    lines.of("probes", tcp_keepalive, &now.tcp_keepalive, Option::eq);
    lines.of("cookies", cookies, &now.cookies, Option::eq);
    lines.of("lookups", lookups, &now.lookups, both(is_lookups));
    lines.of("life", life, &now.life, both(is_life));
    // not every client was put under faults
    lines.of("under faults", faults, &now.faults, |claimed, found| {
        claimed.is_none() || both(is_under_faults)(claimed, found)
    });
    lines.0
}

/// The same for a proxy or a server. Which of its processes takes a connection is chance.
pub(crate) fn hop_differences(
    claimed: &HopMeasurement,
    found: &HopMeasurement,
    idle_for: Duration,
) -> Vec<String> {
    let mut lines = Differences(Vec::new());
    lines.of("snippet", &claimed.snippet, &found.snippet, |a, b| a == b);
    let is_upstream = |claimed: &UpstreamFacts, found: &UpstreamFacts| {
        is_burst(&claimed.one_client, &found.one_client)
            && is_burst(&claimed.new_clients, &found.new_clients)
            && is_burst(&claimed.at_once, &found.at_once)
            && is_idle(Some(claimed.idle), Some(found.idle), idle_for)
            && (&claimed.connection_field, claimed.race, &claimed.watch)
                == (&found.connection_field, found.race, &found.watch)
    };
    let (one, other) = (&claimed.upstream, &found.upstream);
    lines.of("upstream", one, other, both(is_upstream));
    let is_accepted = |claimed: &AcceptedFacts, found: &AcceptedFacts| {
        let seconds = |idle| match idle {
            AcceptedIdle::NotKept => Watched::Ended(0.0),
            AcceptedIdle::Closed { after_s } => Watched::Ended(after_s),
            AcceptedIdle::Kept { for_s } => Watched::Lasted(for_s),
        };
        // how many requests are lost depends on when each is sent
        let is_drain = |(one, other): (&DrainFacts, &DrainFacts)| {
            (&one.signal, one.ended) == (&other.signal, other.ended)
        };
        seconds(claimed.idle).is_confirmed_by(seconds(found.idle))
            && claimed.requests == found.requests
            && claimed.drains.iter().zip(&found.drains).all(is_drain)
    };
    let (one, other) = (&claimed.accepted, &found.accepted);
    lines.of("accepted", one, other, both(is_accepted));
    lines.0
}

/// The claims that do not hold, a line each.
struct Differences(Vec<String>);

impl Differences {
    fn of<T: Debug>(
        &mut self,
        what: &str,
        claimed: &T,
        found: &T,
        is_same: impl Fn(&T, &T) -> bool,
    ) {
        if !is_same(claimed, found) {
            let line = format!("{what}: {claimed:?} in the catalogue, {found:?} measured");
            self.0.push(line);
        }
    }
}

/// Compares values that a client need not have: both are absent, or `is_same`.
fn both<T>(is_same: impl Fn(&T, &T) -> bool) -> impl Fn(&Option<T>, &Option<T>) -> bool {
    move |claimed, found| match (claimed, found) {
        (Some(claimed), Some(found)) => is_same(claimed, found),
        (claimed, found) => claimed.is_none() && found.is_none(),
    }
}

fn is_load(claimed: &Load, found: &Load) -> bool {
    claimed.sequential == found.sequential && both(is_burst)(&claimed.concurrent, &found.concurrent)
}

/// Compares counts of connections that depend on timing.
fn is_burst(claimed: &Count, found: &Count) -> bool {
    // how many of them resume a session depends on timing, too
    let (claims, finds) = (claimed.range(), found.range());
    claims.start().saturating_sub(SLACK_BURST) <= *finds.end()
        && *finds.start() <= claims.end() + SLACK_BURST
        && (claimed.failed, &claimed.http) == (found.failed, &found.http)
}

/// As with idle limits, a short observation confirms only that nothing happened during it.
fn is_lookups(claimed: &Lookups, found: &Lookups) -> bool {
    let seconds = |remembered: &DnsCaching| match *remembered {
        DnsCaching::Until { after_s } => Watched::Ended(after_s),
        DnsCaching::Throughout { for_s } => Watched::Lasted(for_s),
    };
    let is_remembered = |claimed: &_, found: &_| seconds(claimed).is_confirmed_by(seconds(found));
    // a connection may come back to its pool just after the next request has looked for it
    let is_kept = claimed.kept.abs_diff(found.kept) <= 1;
    is_kept
        && claimed.closed == found.closed
        && both(is_remembered)(&claimed.dns_cached, &found.dns_cached)
}

fn is_life(claimed: &LifetimeFacts, found: &LifetimeFacts) -> bool {
    let seconds = |life: &LifetimeFacts| match *life {
        LifetimeFacts::Ended { after_s } => Watched::Ended(after_s),
        LifetimeFacts::Unlimited { for_s } => Watched::Lasted(for_s),
    };
    seconds(claimed).is_confirmed_by(seconds(found))
}

/// Results are the same, and a client's limit ends a wait at about the same time.
fn is_under_faults(claimed: &UnderFaults, found: &UnderFaults) -> bool {
    let is_wait = |claimed: Option<SilentWait>, found: Option<SilentWait>| match (claimed, found) {
        (
            Some(SilentWait::Ended { after_s, outcome }),
            Some(SilentWait::Ended {
                after_s: now,
                outcome: then,
            }),
        ) => (after_s - now).abs() <= SLACK_S && outcome == then,
        (
            Some(SilentWait::Endless { outcome, .. }),
            Some(SilentWait::Endless { outcome: then, .. }),
        ) => outcome == then,
        (claimed, found) => claimed == found,
    };
    let UnderFaults {
        silent_get,
        silent_post,
        silent_http2,
        reset,
        cut,
        user_timeout,
    } = *claimed;
    is_wait(silent_get, found.silent_get)
        && is_wait(silent_post, found.silent_post)
        && is_wait(silent_http2, found.silent_http2)
        && (reset, cut, user_timeout) == (found.reset, found.cut, found.user_timeout)
}

/// The result of an observation, in seconds.
#[derive(Clone, Copy)]
enum Watched {
    Ended(f64),
    Lasted(f64),
}

impl Watched {
    fn is_confirmed_by(self, found: Watched) -> bool {
        match (self, found) {
            (Watched::Ended(claimed), Watched::Ended(found)) => (claimed - found).abs() <= SLACK_S,
            (Watched::Ended(claimed) | Watched::Lasted(claimed), Watched::Lasted(found)) => {
                claimed >= found - SLACK_S
            }
            (Watched::Lasted(_), Watched::Ended(_)) => false,
        }
    }
}

/// If the client's own limit is just above the pause, a busy machine may not show the difference.
fn is_hint(
    claimed: Option<KeepAliveHeader>,
    idle: Option<Idle>,
    found: Option<KeepAliveHeader>,
) -> bool {
    let limit = match idle {
        Some(Idle::Closed { after_s: limit } | Idle::DiscardedAtNextUse { within_s: limit }) => {
            limit
        }
        _ => f64::INFINITY,
    };
    claimed == found || limit < 6.0 && (claimed.is_none() || found.is_none())
}

/// A short observation confirms only that a connection was kept during it.
fn is_idle(claimed: Option<Idle>, found: Option<Idle>, idle_for: Duration) -> bool {
    match (claimed, found) {
        // a connection that is never used again and is closed later
        (Some(Idle::Closed { after_s }), Some(Idle::Abandoned)) => after_s > idle_for.as_secs_f64(),
        (Some(Idle::Closed { after_s: claimed }), Some(Idle::Closed { after_s: found })) => {
            (claimed - found).abs() <= SLACK_S
        }
        (Some(Idle::Closed { after_s }), Some(Idle::Kept { for_s })) => after_s > for_s - SLACK_S,
        (
            Some(Idle::DiscardedAtNextUse { within_s: claimed } | Idle::Kept { for_s: claimed }),
            Some(Idle::Kept { for_s: found }),
        ) => claimed >= found - SLACK_S,
        (
            Some(Idle::DiscardedAtNextUse { within_s: claimed }),
            Some(Idle::DiscardedAtNextUse { within_s: found }),
        ) => (claimed - found).abs() <= SLACK_S,
        // the connection is not used past the limit in either state. In the JDK both occur: its
        // cleaner starts the timer of a connection with an unread error body
        // (`java-httpurlconnection/error-unread`: 3 of 4 runs discarded it)
        (
            Some(Idle::Closed { after_s: limit }),
            Some(Idle::DiscardedAtNextUse { within_s: watched }),
        )
        | (
            Some(Idle::DiscardedAtNextUse { within_s: watched }),
            Some(Idle::Closed { after_s: limit }),
        ) => (limit - SLACK_S..=limit + SLACK_NEXT_USE_S).contains(&watched),
        (claimed, found) => claimed == found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_fix::RequestOutcome;

    #[test]
    fn a_short_watch_confirms_what_it_can_see() {
        let is_idle = |claimed, found| is_idle(claimed, found, Duration::from_secs(7));
        let kept = |for_s| Some(Idle::Kept { for_s });
        let closed = |after_s| Some(Idle::Closed { after_s });
        assert!(is_idle(kept(130.0), kept(7.0)));
        assert!(is_idle(closed(60.0), kept(7.0)));
        assert!(is_idle(closed(4.0), closed(4.6)));
        assert!(!is_idle(closed(4.0), kept(7.0)));
        assert!(!is_idle(kept(130.0), closed(4.0)));
        assert!(!is_idle(Some(Idle::NotKept), kept(7.0)));
        let left = |within_s| Some(Idle::DiscardedAtNextUse { within_s });
        assert!(is_idle(closed(5.1), left(7.0)) && is_idle(left(7.0), closed(5.1)));
        assert!(!is_idle(closed(5.1), left(3.0)));
        // per-call clients of Go: 90 s
        assert!(is_idle(closed(90.1), Some(Idle::Abandoned)));
        assert!(!is_idle(closed(4.0), Some(Idle::Abandoned)));
        assert!(!is_idle(Some(Idle::Abandoned), closed(90.1)));
    }

    #[test]
    fn a_count_that_varies_is_confirmed_by_one_within_its_range() {
        let of = |connections, connections_at_most| {
            Some(Count {
                requests: 10,
                failed: 0,
                connections,
                connections_at_most,
                resumed: None,
                http: "1.1".to_owned(),
            })
        };
        let is_same = both(is_burst);
        let varied = of(1, Some(5));
        assert!(is_same(&varied, &of(8, None)));
        assert!(is_same(&of(2, None), &of(4, Some(9))));
        assert!(!is_same(&varied, &of(10, None)));
        assert!(!is_same(&of(10, None), &of(1, Some(6))));
        // what was repeated has the range of all
        let counts = [of(4, None), of(2, None), of(7, None)].map(Option::unwrap);
        let [first, second, third] = &counts;
        let all = first.clone().repeated(second).repeated(third);
        assert_eq!(all.range(), 2..=7);
        assert_eq!(first.clone().repeated(first), *first);
    }

    #[test]
    fn a_wait_may_vary_by_a_second_and_its_end_must_be_the_same() {
        let of = |silent_get| UnderFaults {
            silent_get: Some(silent_get),
            ..UnderFaults::default()
        };
        let outcome = RequestOutcome::Error;
        let ended = |after_s| of(SilentWait::Ended { after_s, outcome });
        let endless = of(SilentWait::Endless {
            for_s: 20.0,
            outcome,
        });
        assert!(is_under_faults(&ended(5.0), &ended(5.6)));
        assert!(!is_under_faults(&ended(5.0), &ended(7.0)));
        assert!(is_under_faults(&endless, &endless));
        assert!(!is_under_faults(&ended(20.0), &endless));
        assert!(!is_under_faults(&endless, &UnderFaults::default()));
    }

    #[test]
    fn a_claim_changed_by_hand_does_not_hold() {
        let idle_for = Duration::from_secs(130);
        let catalogue = intact_fix::Catalogue::embedded().unwrap();
        for one in &catalogue.measured {
            assert_eq!(differences(one, one, idle_for), Vec::<String>::new());
            let mut changed = one.clone();
            if let Some(load) = &mut changed.facts.plain {
                load.sequential.connections += 1;
            }
            assert_eq!(differences(&changed, one, idle_for).len(), 1);
            let mut changed = one.clone();
            changed.facts.idle = Some(Idle::Closed { after_s: 77.7 });
            assert_eq!(differences(&changed, one, idle_for).len(), 1);
        }
    }
}
