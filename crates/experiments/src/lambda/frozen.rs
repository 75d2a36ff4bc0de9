//! The states of the connections that a freeze found open, and what the invocation after it saw of
//! that.

use super::traffic::{TrackedConnection, Traffic};
use intact_ledger::{CloseKind, Invocation, Nanos, Side, kinds};
use serde::Serialize;

/// The state of one connection after a freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FrozenConnection {
    /// It carried a response afterwards.
    Kept,
    /// Nothing was sent onto it, and it did not end before the next freeze.
    Unused,
    /// The server's end of it reached the function's kernel while the function stood still.
    FinSeen,
    /// The same after the thaw, before anything was sent onto it.
    FinLate,
    /// What was sent onto it was answered with a reset: the server had ended it unheard.
    Reset,
    /// What was sent onto it was never answered, until the function or its limit gave up.
    BlackHole,
    /// The function closed it unused.
    ClosedByFunction,
}

impl FrozenConnection {
    /// All, in the order of tables.
    pub const ALL: [FrozenConnection; 7] = [
        FrozenConnection::Kept,
        FrozenConnection::FinSeen,
        FrozenConnection::FinLate,
        FrozenConnection::Reset,
        FrozenConnection::BlackHole,
        FrozenConnection::ClosedByFunction,
        FrozenConnection::Unused,
    ];

    /// Two or three words for tables.
    pub fn words(self) -> &'static str {
        match self {
            FrozenConnection::Kept => "kept",
            FrozenConnection::Unused => "unused",
            FrozenConnection::FinSeen => "FIN seen",
            FrozenConnection::FinLate => "FIN late",
            FrozenConnection::Reset => "FIN lost, reset",
            FrozenConnection::BlackHole => "black hole",
            FrozenConnection::ClosedByFunction => "closed unused",
        }
    }

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
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// One freeze.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Freeze {
    /// The case of each connection that was open when it began.
    pub connection_states: Vec<FrozenConnection>,
    /// What the invocation after it saw.
    pub effect: FreezeEffect,
}

/// The freeze before an invocation, to which everything until `until` belongs.
pub(super) fn pause(traffic: &Traffic, one: &Invocation, until: Nanos) -> Option<Freeze> {
    let frozen = one.frozen?;
    let open = |held: &&TrackedConnection| {
        held.opened
            && held.at < frozen.start
            && held.closed.is_none_or(|end| end.at >= frozen.start)
    };
    let held = traffic.of(one.environment).iter().filter(open);
    let cases: Vec<FrozenConnection> = held
        .map(|held| case(held, frozen.end, one.end, until))
        .collect();
    let saw = match (cases.iter().any(|case| case.is_death()), &one.fate) {
        (false, _) => FreezeEffect::Nothing,
        (true, fate) if fate.is_answer() => FreezeEffect::Recovered,
        (true, _) => FreezeEffect::Failed,
    };
    Some(Freeze {
        connection_states: cases,
        effect: saw,
    })
}

fn case(held: &TrackedConnection, thaw: Nanos, answered: Nanos, until: Nanos) -> FrozenConnection {
    let ended = held.closed.filter(|end| end.at < until);
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
