//! Faults that `watch --fault` applies to the program's connections: the plan, each strike, and the
//! kinds that were not applied.
//!
//! A strike names its connection. It affects the exchanges of that connection that end at `at` or
//! later; their rows show what the program observed. `reached` and `withheld` show which of their
//! bytes the server received. The rows of a connection may be in any order.

use crate::certainty::Certainty;
use crate::connection::ConnectionId;
use crate::origin::Origin;
use crate::time::{Nanos, Span};
use FaultEnding::{Fin, HalfClose, LateFin, Reset, Silence};
use FaultMoment::{Age, Body, Burst, Headers, Idle, IdleTime, Kept, Request, Shutdown};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;

kinds! {
    json
    /// The fault on a kept connection.
    pub enum FaultKind, id, row -> FaultRow {
        /// FIN while idle: the program can see it before its next request.
        Stale = "stale", fault(Idle, Fin);
        /// FIN that crosses the next request, which is not forwarded.
        FinRace = "fin-race", fault(Request, LateFin);
        /// RST while idle.
        Rst = "rst", fault(Idle, Reset);
        /// RST within a response.
        ResetMidResponse = "reset-mid-response", fault(Body, Reset);
        /// FIN right after the header section of a response.
        EarlyCloseAfterHeaders = "early-close-after-headers", fault(Headers, HalfClose);
        /// Silence in both directions after an idle time, as behind a NAT that forgot the flow.
        NatIdle = "nat-idle", FaultRow { default_after: Some(5_000_000_000), ..fault(IdleTime, Silence) };
        /// Silence in both directions from the next request on.
        BlackHole = "black-hole", fault(Kept, Silence);
        /// HTTP/2 GOAWAY, then FIN.
        Goaway = "goaway", FaultRow { is_announced: true, ..fault(Request, LateFin) };
        /// Announced close of connections that reach an age.
        MaxAge = "max-age", FaultRow { is_announced: true, default_after: Some(30_000_000_000), ..fault(Age, Fin) };
        /// The server ends its direction while idle, and does not close.
        SlowClose = "slow-close", fault(Idle, HalfClose);
        /// Announced shutdown of the server: `Connection: close` or GOAWAY, then FIN.
        Drain = "drain", FaultRow { is_announced: true, ..fault(Shutdown, Fin) };
        /// RST in response to the next request: another server has the address, and knows no such
        /// connection.
        Recycled = "recycled", fault(Request, Reset);
        /// FIN while idle; then the address refuses connections until the program looks its name
        /// up again.
        Moved = "moved", FaultRow { is_of_address: true, ..fault(Idle, Fin) };
        /// As `recycled`; then another server responds at the address until the program looks its
        /// name up again, with a certificate of its own.
        OtherServer = "other-server", FaultRow { is_of_address: true, ..fault(Request, Reset) };
        /// HTTP/2 GOAWAY within a burst: the first requests get their responses, the later ones
        /// are not processed.
        PartialGoaway = "partial-goaway", FaultRow { is_announced: true, ..fault(Burst, LateFin) };
    }
}

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRow {
    /// The moment at which it strikes.
    pub moment: FaultMoment,
    /// What it makes of the connection.
    pub ending: FaultEnding,
    /// Whether the end is announced, by a field of a response or by GOAWAY.
    pub is_announced: bool,
    /// Whether it is of the address and not of a connection, so that it strikes each pool as a
    /// whole.
    pub is_of_address: bool,
    /// The default of its time parameter in nanoseconds; `None` for a kind without one.
    pub default_after: Option<u64>,
}

/// The moment at which a fault strikes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultMoment {
    /// When it is idle.
    Idle,
    /// When it is idle for the time parameter.
    IdleTime,
    /// Right after a response.
    Kept,
    /// With the next request.
    Request,
    /// With a later request of a burst.
    Burst,
    /// Behind the header section of a response.
    Headers,
    /// Within the body of a response.
    Body,
    /// With a response, once the connection has the age.
    Age,
    /// With a response.
    Shutdown,
}

/// What a fault makes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultEnding {
    /// FIN; a request provokes a RST.
    Fin,
    /// FIN; the RST follows soon, at the latest.
    LateFin,
    /// FIN; requests are not responded to.
    HalfClose,
    /// The program receives nothing from then on, so that only its own timeout ends the stall.
    Silence,
    /// RST.
    Reset,
}

const fn fault(moment: FaultMoment, ending: FaultEnding) -> FaultRow {
    FaultRow {
        moment,
        ending,
        is_announced: false,
        is_of_address: false,
        default_after: None,
    }
}

impl FaultRow {
    /// Whether only the program's own timeout ends the stall.
    pub fn is_silent(self) -> bool {
        self.ending == Silence
    }

    /// Whether another server responds at the address.
    pub fn has_other_server(self) -> bool {
        self.is_of_address && self.ending == Reset
    }
}

kinds! {
    json
    /// How much of a pool a fault strikes.
    pub enum FaultScope, id {
        /// One connection in ten.
        One = "one",
        /// All connections to the destination that are open when it strikes the first one.
        All = "all",
    }
}

/// The fault of a run.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultPlan {
    /// Index into the run's variants.
    pub variant: Option<u32>,
    /// The round.
    pub round: Option<u32>,
    /// The kind.
    pub kind: FaultKind,
    /// How much of a pool it strikes; absent in a ledger without this field.
    pub scope: Option<FaultScope>,
    /// The idle time or the age after which it strikes, in nanoseconds.
    pub after_ns: Option<u64>,
    /// The destinations that it is limited to (`HOST` or `HOST:PORT`); empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Arc<str>>,
    /// Selects the connections and the times.
    pub seed: u64,
    /// After this time a stalled connection is reset, in nanoseconds.
    pub wait_ns: u64,
}

/// The point in a connection's life at which a fault struck.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FaultPoint {
    /// Between exchanges.
    Idle,
    /// With the first bytes of a request.
    Request,
    /// Before the header section of a response was complete.
    ResponseHead,
    /// After the header section of a response, before the end of its body.
    ResponseBody,
}

/// What ended a stall: the time from a strike to the end of its connection.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum StallEnd {
    /// The fault itself ended the connection: there was no stall.
    Fault,
    /// The program closed or reset it.
    ProgramClosed,
    /// `wait_ns` had passed, and the connection was reset so that the program could continue.
    Limit,
    /// The program ended with it open.
    EndOfRun,
}

/// A fault that struck a connection, recorded when that connection ended.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultStrike {
    /// Index into the run's variants.
    pub variant: Option<u32>,
    /// The round.
    pub round: Option<u32>,
    /// The kind.
    pub kind: FaultKind,
    /// The connection.
    pub connection: ConnectionId,
    /// When it struck.
    pub at: Nanos,
    /// The point in the connection's life.
    pub point: FaultPoint,
    /// Exchanges that were complete on the connection before it.
    pub exchanges_before: u64,
    /// Exchanges that had begun and were not complete.
    pub in_flight: u64,
    /// Bytes of the exchanges in flight, or of later ones, that the server received.
    pub reached: u64,
    /// Bytes that the program sent on the connection afterwards and that the server did not
    /// receive.
    pub withheld: u64,
    /// When the program first sent bytes at or after the strike, and so used the dead connection.
    /// The stall begins then. Absent: the program sent nothing.
    pub used_at: Option<Nanos>,
    /// Bytes that the program wrote after `used_at` on a silent connection and that its kernel did
    /// not send. Absent if there are none, or too few for another request.
    pub held: Option<HeldBytes>,
    /// When the connection was over for the program.
    pub end: Nanos,
    /// What ended it.
    pub ended: StallEnd,
    /// Inferred if the exchanges cannot be read.
    #[serde(default, skip_serializing_if = "Certainty::is_exact")]
    pub certainty: Certainty,
}

kinds! {
    json
    /// Why a kind was not applied.
    pub enum FaultObstacle, id, words {
        NoConnection = "no-connection", "the program opened no connection";
        NoSuchHost = "no-such-host", "no connection goes to the chosen hosts";
        NotRelayed = "not-relayed", "no relay carries the connections";
        NotHttp = "not-http", "the connections carry no HTTP";
        NeverKept = "never-kept", "no connection was kept after a response";
        NeverReused = "never-reused", "no connection was used for a second request";
        TooFewExchanges = "too-few-exchanges", "the connections ended before the exchange that the seed chose";
        NeverIdle = "never-idle", "no connection was idle for long enough";
        NeverSoOld = "never-so-old", "no connection reached the age";
        NoBody = "no-body", "no response had a body to cut";
        Encrypted = "encrypted", "it needs bytes inside TLS";
        NoName = "no-name", "no lookup gave the program the address";
        NoLookup = "no-lookup", "the lookup of the destination's name cannot be read";
        NotHttp2 = "not-http2", "the connections speak HTTP/1";
        NoBurst = "no-burst", "no two requests were in flight on one connection";
        NoResponse = "no-response", "the first requests of a burst got no response in time";
        SocketNotReached = "socket-not-reached", "the program's socket could not be silenced";
    }
}

/// Bytes that the program's kernel did not send, because acknowledgements were missing. No observer
/// can find a request or a RST_STREAM in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldBytes {
    /// When there were some first.
    pub at: Nanos,
    /// How many.
    pub bytes: u64,
}

impl HeldBytes {
    /// The largest size in bytes of a PING and a WINDOW_UPDATE or RST_STREAM, each in a TLS record.
    pub const MOST_CONTROL: u64 = 80;
}

/// A kind that struck no connection of a destination.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultNotApplied {
    /// Index into the run's variants.
    pub variant: Option<u32>,
    /// The round.
    pub round: Option<u32>,
    /// The kind.
    pub kind: FaultKind,
    /// The destination as in its connections' rows; absent if there is none.
    pub origin: Option<Origin>,
    /// The destination's address.
    pub peer: Option<SocketAddr>,
    /// The reason.
    pub why: FaultObstacle,
    /// Connections to the destination.
    pub connections: u64,
}

/// The end of a program that ran under a fault, or without one for comparison.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultEnd {
    /// Index into the run's variants.
    pub variant: Option<u32>,
    /// The round.
    pub round: Option<u32>,
    /// From the program's start to its end.
    pub span: Span,
    /// Its exit code; absent if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Of a function: the outcomes of its invocations.
    pub invocations: Option<FaultInvocations>,
}

impl FaultEnd {
    /// Whether the program ended well, or each invocation of the function did.
    pub fn is_success(&self) -> bool {
        match self.invocations {
            Some(invocations) => invocations.failed == 0,
            None => self.code == Some(0),
        }
    }

    /// Whether it was ended while it waited.
    pub fn was_ended(&self) -> bool {
        self.signal.is_some() || self.invocations.is_some_and(|all| all.timed_out > 0)
    }
}

/// The invocations of a function that ran under a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultInvocations {
    /// All of them.
    pub made: u64,
    /// Those that were not answered.
    pub failed: u64,
    /// Those that the platform ended at the function's limit.
    pub timed_out: u64,
}

/// What `watch --fault` records, in addition to the traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "fault", rename_all = "kebab-case")]
pub enum FaultEvent {
    /// At the start of a run: its fault.
    Planned(FaultPlan),
    /// A fault struck a connection.
    Struck(FaultStrike),
    /// At the end of a run: a destination that it did not strike.
    NotApplied(FaultNotApplied),
    /// At the end of a run, after all other events: how the program ended.
    Ended(FaultEnd),
}

impl FaultEvent {
    /// The variant of the run that it belongs to.
    pub fn variant(&self) -> Option<u32> {
        match self {
            FaultEvent::Planned(plan) => plan.variant,
            FaultEvent::Struck(strike) => strike.variant,
            FaultEvent::NotApplied(missed) => missed.variant,
            FaultEvent::Ended(end) => end.variant,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_found_by_the_id_that_it_is_written_with() {
        for kind in FaultKind::ALL {
            assert_eq!(kind.id().parse(), Ok(kind));
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(json, format!("\"{kind}\""));
        }
        assert!("nothing".parse::<FaultKind>().is_err());
    }
}
