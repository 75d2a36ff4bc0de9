//! One place for a connection: what it is doing, and what it waits for.

use crate::scenario::Client;
use crate::variant_plan::VariantPlan;
use intact_client::{Dial, Due, HttpConnection};
use intact_ledger::Nanos;
use std::sync::Arc;

/// The exchange that was granted and waits for its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingExchange {
    pub(crate) due: Due,
    pub(crate) warmup: bool,
    /// How long the thread had waited for a processor when the dial began; absent in a closed
    /// loop, and where that is not known.
    pub(crate) waited: Option<u64>,
}

/// What a slot is doing.
pub(crate) enum Phase {
    /// It has no connection.
    Vacant,
    /// It is opening one.
    Dialing(Box<Dial>, PendingExchange),
    /// It has one.
    Open(Box<HttpConnection>),
    /// The round is over for it.
    Done,
}

impl Phase {
    /// When the connection wants to be looked at.
    #[inline]
    pub(crate) fn timer(&mut self) -> Option<Nanos> {
        match self {
            Phase::Open(open) => open.timer(),
            Phase::Dialing(dial, _) => dial.timer(),
            Phase::Vacant | Phase::Done => None,
        }
    }
}

/// Bits of a generation: with the number of its slot it fits into the key of a back end.
const GENERATION_BITS: u32 = 28;

/// The generation after this one.
pub(crate) fn next_generation(generation: u32) -> u32 {
    (generation + 1) % (1 << GENERATION_BITS)
}

/// A place for one connection after another.
pub(crate) struct Slot {
    pub(crate) phase: Phase,
    /// Where it dials and what it sends: the variant's, or that of the client's present request.
    pub(crate) variant_plan: Arc<VariantPlan>,
    /// The simulated client of a scenario that holds the slot; absent outside of scenarios, and
    /// between two clients.
    pub(crate) client: Option<Box<Client>>,
    /// Separates events of the current socket from events of earlier ones.
    pub(crate) generation: u32,
    /// When to ask the closed loop again.
    pub(crate) wake: Option<Nanos>,
    /// Dials in this round.
    pub(crate) dials: u32,
    /// Failed dials in a row.
    pub(crate) failures: u32,
    /// Whether its warm-up request is still to come, or under way.
    pub(crate) warms_up: bool,
    /// Whether it waits for the end of the round's warm-up.
    pub(crate) parked: bool,
    /// Whether its first dial in this round is counted among those under way.
    pub(crate) is_opening: bool,
    /// Whether it waits for a request of an open loop to be due.
    pub(crate) is_free: bool,
    /// Since when it could take one: the arrival of the response that made room.
    pub(crate) free_since: Nanos,
    /// The most that the client's lateness may have added to its last request, in nanoseconds.
    pub(crate) late: u64,
    /// When the pause after its last response began.
    pub(crate) pauses_since: Option<Nanos>,
    /// Events in a row on its connection that moved nothing.
    pub(crate) idle_turns: u32,
    /// When its connection wants to be looked at, if nothing happens before.
    pub(crate) timer: Option<Nanos>,
}

impl Slot {
    /// An empty slot. `warms_up`: its first request is warm-up.
    pub(crate) fn new(variant_plan: Arc<VariantPlan>, warms_up: bool) -> Slot {
        Slot {
            phase: Phase::Vacant,
            variant_plan,
            client: None,
            generation: 0,
            wake: None,
            dials: 0,
            failures: 0,
            warms_up,
            parked: false,
            is_opening: false,
            is_free: false,
            free_since: Nanos(0),
            late: 0,
            pauses_since: None,
            idle_turns: 0,
            timer: None,
        }
    }
}
