//! What became of the connections that a freeze found open, and what the invocation after it saw of that.

use super::traffic::{Held, Traffic};
use intact_ledger::{Ending, Invocation, Nanos, Side};
use serde::Serialize;

/// What became of one connection over a freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// It carried an answer afterwards.
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

impl Case {
    /// All, in the order of tables.
    pub const ALL: [Case; 7] = [
        Case::Kept,
        Case::FinSeen,
        Case::FinLate,
        Case::Reset,
        Case::BlackHole,
        Case::ClosedByFunction,
        Case::Unused,
    ];

    /// Two or three words for tables.
    pub fn words(self) -> &'static str {
        match self {
            Case::Kept => "kept",
            Case::Unused => "unused",
            Case::FinSeen => "FIN seen",
            Case::FinLate => "FIN late",
            Case::Reset => "FIN lost, reset",
            Case::BlackHole => "black hole",
            Case::ClosedByFunction => "closed unused",
        }
    }

    /// Whether the connection was dead, whoever noticed.
    pub fn is_death(self) -> bool {
        matches!(
            self,
            Case::FinSeen | Case::FinLate | Case::Reset | Case::BlackHole
        )
    }
}

/// What an invocation after a freeze saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Saw {
    /// No connection had died.
    Nothing,
    /// One had, and the invocation was answered all the same.
    Recovered,
    /// One had, and the invocation failed.
    Failed,
}

impl Saw {
    /// A stable kebab-case id.
    pub fn id(self) -> &'static str {
        match self {
            Saw::Nothing => "nothing",
            Saw::Recovered => "recovered",
            Saw::Failed => "failed",
        }
    }
}

/// One freeze.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pause {
    /// The case of each connection that was open when it began.
    pub connection_states: Vec<Case>,
    /// What the invocation after it saw.
    pub effect: Saw,
}

/// The freeze before an invocation, to which everything until `until` belongs.
pub(super) fn pause(traffic: &Traffic, one: &Invocation, until: Nanos) -> Option<Pause> {
    let frozen = one.frozen?;
    let open = |held: &&Held| {
        held.opened
            && held.at < frozen.start
            && held.closed.is_none_or(|end| end.at >= frozen.start)
    };
    let held = traffic.of(one.environment).iter().filter(open);
    let cases: Vec<Case> = held
        .map(|held| case(held, frozen.end, one.end, until))
        .collect();
    let saw = match (cases.iter().any(|case| case.is_death()), &one.fate) {
        (false, _) => Saw::Nothing,
        (true, fate) if fate.is_answer() => Saw::Recovered,
        (true, _) => Saw::Failed,
    };
    Some(Pause { connection_states: cases, effect: saw })
}

fn case(held: &Held, thaw: Nanos, answered: Nanos, until: Nanos) -> Case {
    let ended = held.closed.filter(|end| end.at < until);
    let by_server = ended.filter(|end| end.by == Some(Side::Server));
    if by_server.is_some_and(|end| end.at <= thaw) {
        return Case::FinSeen;
    }
    let mut uses = held
        .exchanges
        .iter()
        .filter(|one| thaw <= one.at && one.at < until);
    match uses.next() {
        Some(first) if first.ok => Case::Kept,
        Some(first) => match by_server {
            Some(end) if end.how == Some(Ending::Rst) => Case::Reset,
            // it came before the request, or met it on its way: the next is for the server to refuse
            Some(end) if end.at <= first.at => Case::FinLate,
            Some(_) => Case::Reset,
            None => Case::BlackHole,
        },
        None if by_server.is_some_and(|end| end.how == Some(Ending::Rst)) => Case::Reset,
        None if by_server.is_some() => Case::FinLate,
        // one that ends with its environment was not given up by the function
        None if ended.is_some_and(|end| end.at <= answered) => Case::ClosedByFunction,
        None => Case::Unused,
    }
}
