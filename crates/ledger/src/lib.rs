//! The ledger: the record of a run that all of `intact` shares.
//!
//! Producers write it: the opened connections with the duration of each setup step, their
//! exchanges, and their ends. Consumers read it. Plain versioned data: no sockets, no async, no
//! clock, no printing. `docs/reference/ledger.md` has the format and the conventions.

#[cfg(not(feature = "schema"))]
#[macro_use]
extern crate intact_schema;
#[cfg(feature = "schema")]
#[macro_use]
extern crate schemars;

pub mod export;
pub mod input_file;
pub mod private_file;
pub mod server_profile;
pub mod store;

#[macro_use]
mod kinds;

mod campaign;
mod certainty;
mod connection;
mod event;
mod evidence;
mod exchange;
mod expected;
mod failure;
mod fault;
mod fingerprint;
mod grpc;
mod histogram;
mod invocation;
mod load_step;
mod lookup;
mod machine_use;
mod origin;
mod producer;
pub mod redact;
mod reuse;
mod run;
mod run_document;
pub mod sample;
mod stack;
mod tally;
mod time;

pub use campaign::{CampaignProgress, DeadLetter};
pub use certainty::Certainty;
pub use connection::{
    Close, CloseKind, ClosePoint, Connection, ConnectionBytes, ConnectionId, DialFailure, Dialled,
    EndedBy, Handshake, KeepAliveTerms, OtherEnd, Owner, Probes, Protocol, RIGHT_AFTER, Setup,
    Side, Tls, TlsVersion, Transport,
};
pub use event::{Caveat, Closed, Event, Round, RoundSchedule, RoundSockets, Row, Sink, Sockets};
pub use evidence::{Evidence, EvidenceSet};
pub use exchange::{Body, Exchange, ExchangeBytes, Identity, Phase, Spans};
pub use expected::{ExpectedStatus, NoStatus};
pub use failure::{Failure, Outcome, SetupPhase, UnansweredRequest};
pub use fault::{
    FaultEnd, FaultEnding, FaultEvent, FaultInvocations, FaultKind, FaultMoment, FaultNotApplied,
    FaultObstacle, FaultPlan, FaultPoint, FaultRow, FaultScope, FaultStrike, HeldBytes, StallEnd,
};
pub use fingerprint::{Fingerprint, FingerprintBuilder, FingerprintKey};
pub use grpc::GrpcCall;
pub use histogram::Histogram;
pub use invocation::{CONNECTIONS_NOT_FOLLOWED, Invocation, InvocationOutcome};
pub use kinds::UnknownKind;
pub use load_step::{CapacityTerms, LoadPurpose, LoadStep, OverloadTerms, SearchTerms};
pub use lookup::Lookup;
pub use machine_use::MachineUse;
pub use origin::{Method, Origin, Scheme, Target};
pub use producer::Producer;
pub use reuse::{OPENED_AHEAD, Reuse, SetupWait, TOGETHER};
pub use run::{EngineIo, Host, Rows, Run, SCHEMA, Vantage, Variant};
pub use stack::{CodeStack, StackFrame, StackId};
pub use tally::{
    Cell, ClientCounts, Connections, Group, GroupKey, OpenLoopTimes, OverTime, TagCell, Tally,
};
pub use time::{Nanos, Span};

/// For serde: a count with its default.
fn is_zero(count: &u32) -> bool {
    *count == 0
}
