//! The states of the connections that a freeze found open, and what the invocation after it saw of
//! that.

use super::invocation::InvocationFacts;
use super::traffic::{TrackedConnection, Traffic};
use intact_document::traffic_readings::TrafficReadings;
use intact_ledger::{CloseKind, Failure, Invocation, Nanos, Side, kinds};
use intact_reading::Why;
use intact_units::plural::counted;
use serde::Serialize;

kinds! {
    /// The state of one connection after a freeze, in the order of tables.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum FrozenConnection, words {
        /// It carried a response afterwards.
        Kept = "kept",
        /// The server's end of it reached the function's kernel while the function stood still.
        FinSeen = "FIN seen",
        /// The same after the thaw, before anything was sent onto it.
        FinLate = "FIN late",
        /// What was sent onto it was answered with a reset: the server had ended it unheard.
        Reset = "FIN lost, reset",
        /// What was sent onto it was never answered, until the function or its limit gave up.
        BlackHole = "black hole",
        /// The function closed it unused.
        ClosedByFunction = "closed unused",
        /// Nothing was sent onto it, and it did not end before the next freeze.
        Unused = "unused",
    }
}

impl FrozenConnection {
    /// Whether the connection was dead, whichever side noticed.
    pub fn is_death(self) -> bool {
        matches!(
            self,
            FrozenConnection::FinSeen
                | FrozenConnection::FinLate
                | FrozenConnection::Reset
                | FrozenConnection::BlackHole
        )
    }
}

kinds! {
    /// What an invocation after a freeze saw.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum FreezeEffect, id {
        /// No connection had died.
        Nothing = "nothing",
        /// One had, and the invocation was answered all the same.
        Recovered = "recovered",
        /// One had, and the invocation failed.
        Failed = "failed",
    }
}

/// How an invocation that failed used a connection that had died in the freeze before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeadUse {
    /// A request or a part of one was sent onto it, and failed.
    Sent,
    /// Inferred: no request was sent to its server, so that the function's client is likely to have
    /// picked it, and to have noticed its end before it wrote.
    Unsent,
}

/// One freeze.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Freeze {
    /// The case of each connection that was open when it began.
    pub connection_states: Vec<FrozenConnection>,
    /// What the invocation after it saw.
    pub effect: FreezeEffect,
    /// How the invocation after it used a dead connection; only of one that failed.
    pub dead_use: Option<DeadUse>,
}

/// The freeze before an invocation, to which everything until `until` belongs.
pub(super) fn pause(traffic: &Traffic, one: &Invocation, until: Nanos) -> Option<Freeze> {
    let frozen = one.frozen?;
    let open = |held: &&TrackedConnection| {
        held.opened
            && held.at < frozen.start
            && held
                .closed
                .as_ref()
                .is_none_or(|end| end.at >= frozen.start)
    };
    let all = traffic.of(one.environment);
    let held = all.iter().filter(open);
    let held: Vec<(&TrackedConnection, FrozenConnection)> = held
        .map(|held| (held, case(held, frozen.end, one.end, until)))
        .collect();
    let cases: Vec<FrozenConnection> = held.iter().map(|(_, case)| *case).collect();
    let saw = match (cases.iter().any(|case| case.is_death()), &one.fate) {
        (false, _) => FreezeEffect::Nothing,
        (true, fate) if fate.is_answer() => FreezeEffect::Recovered,
        (true, _) => FreezeEffect::Failed,
    };
    let dead = held.iter().filter(|(_, case)| case.is_death());
    let uses = dead.filter_map(|(dead, case)| match case {
        // after the freeze only what is sent is answered with a RST (RFC 9293 section 3.10.7.1)
        FrozenConnection::Reset => Some(DeadUse::Sent),
        _ => dead_use(dead, all, frozen.start, until),
    });
    let dead_use = uses.min().filter(|_| saw == FreezeEffect::Failed);
    Some(Freeze {
        connection_states: cases,
        effect: saw,
        dead_use,
    })
}

/// How a dead connection was used after the freeze that began at `frozen`: none where its server
/// was sent requests on others only. A frozen function sends nothing, and when it goes on is known
/// less exactly.
fn dead_use(
    dead: &TrackedConnection,
    all: &[TrackedConnection],
    frozen: Nanos,
    until: Nanos,
) -> Option<DeadUse> {
    let is_used = |held: &TrackedConnection| {
        let mut exchanges = held.exchanges.iter();
        exchanges.any(|one| frozen <= one.at && one.at < until)
    };
    if is_used(dead) {
        return Some(DeadUse::Sent);
    }
    dead.origin.as_ref()?;
    // a dial, too, shows that the client went on without the dead connection
    let is_dialled = |held: &TrackedConnection| frozen <= held.at && held.at < until;
    let mut others = all.iter().filter(|held| held.origin == dead.origin);
    let is_reached = others.any(|held| is_dialled(held) || is_used(held));
    (!is_reached).then_some(DeadUse::Unsent)
}

fn case(held: &TrackedConnection, thaw: Nanos, answered: Nanos, until: Nanos) -> FrozenConnection {
    let ended = held.closed.as_ref().filter(|end| end.at < until);
    let by_server = ended.filter(|end| end.by == Some(Side::Server));
    if by_server.is_some_and(|end| end.at <= thaw) {
        return FrozenConnection::FinSeen;
    }
    let mut uses = held
        .exchanges
        .iter()
        .filter(|one| thaw <= one.at && one.at < until);
    match uses.next() {
        Some(first) if first.ok => FrozenConnection::Kept,
        Some(first) => match by_server {
            Some(end) if end.how == Some(CloseKind::Rst) => FrozenConnection::Reset,
            // it came before the request, or met it on its way: the next is for the server to
            // refuse
            Some(end) if end.at <= first.at => FrozenConnection::FinLate,
            Some(_) => FrozenConnection::Reset,
            None => FrozenConnection::BlackHole,
        },
        None if by_server.is_some_and(|end| end.how == Some(CloseKind::Rst)) => {
            FrozenConnection::Reset
        }
        None if by_server.is_some() => FrozenConnection::FinLate,
        // one that ends with its environment was not given up by the function
        None if ended.is_some_and(|end| end.at <= answered) => FrozenConnection::ClosedByFunction,
        None => FrozenConnection::Unused,
    }
}

/// Bounds the failures of traffic in which these invocations may have failed before they sent a
/// request.
pub(super) fn add_unsent<'a>(
    traffic: &mut TrafficReadings,
    calls: impl Iterator<Item = &'a InvocationFacts>,
) {
    let freezes = calls.filter_map(|call| call.freeze.as_ref());
    let unsent = freezes.filter(|freeze| freeze.dead_use == Some(DeadUse::Unsent));
    let unsent = unsent.count() as u64;
    let invocations = counted(unsent, "invocation");
    let why = format!(
        "{invocations} failed before a request was sent, after a connection had died in the freeze"
    );
    traffic.add_unsent(Failure::Stale, unsent, &Why::from(why));
}
