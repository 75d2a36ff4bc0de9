//! The card: what happened for one kind of fault at one destination, as values. Must not decide.

use super::run_rows::RunRows;
use super::strike_counts::StrikeCounts;
use intact_document::figures::NANOS_PER_MS;
use intact_ledger::{FaultEnd, FaultInvocations, FaultKind, FaultObstacle, FaultScope, StallEnd};
use intact_reading::{Reading, Why};
use intact_units::plural::counted;
use serde::Serialize;

/// Why counts of a cell are lower bounds.
const UNSEEN: &str = "a part of the traffic was not observed";
/// Why requests may have been sent that no row has.
pub(super) const HELD: &str = "the program's kernel kept what the program wrote on the silent connection, which may be requests";
/// Why a wait has no end.
const NO_TIMEOUT: &str = "no timeout of the program ended the wait";

/// What the program did, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FaultOutcome {
    /// It is a kind of connections that the program does not have, such as `goaway` without HTTP/2,
    /// or `moved` without a name.
    Unsuited,
    /// The program noticed it, and no request failed.
    Unaffected,
    /// Each request that failed was sent again and got its response.
    Recovered,
    /// The program kept the dead connection until its end.
    Leaked,
    /// Nothing was shown.
    NotApplied,
    /// The rows do not show whether a later equal request was a retry.
    Undecided,
    /// A request got no response in the end.
    Failed,
    /// A request waited, and no timeout of the program ended that, or the request failed after it.
    Hung,
    /// The program got the response of another server.
    Misled,
    /// A response was cut short: the request failed, or the program took it as complete.
    Truncated,
    /// A request that is not idempotent may have reached the server twice; whether it was sent
    /// again is not certain.
    PossiblyDuplicated,
    /// A request that is not idempotent was sent again after bytes of it had reached the server.
    Duplicated,
}

/// Why nothing was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Obstacle {
    /// It struck no connection.
    Fault(FaultObstacle),
    /// The program failed without a fault.
    BaselineFailed,
    /// The run without a fault has not ended.
    NoBaseline,
    /// The run of this kind did not end.
    NotRun,
    /// The run of this kind did not connect to the destination.
    NotReached,
    /// The fault struck, and the program sent no request to the destination afterwards.
    NoFurtherRequest,
    /// The fault struck, and later requests used other connections that were open already.
    NotUsed,
}

impl Obstacle {
    /// The stable id.
    pub fn id(self) -> &'static str {
        match self {
            Obstacle::Fault(obstacle) => obstacle.id(),
            Obstacle::BaselineFailed => "baseline-failed",
            Obstacle::NoBaseline => "no-baseline",
            Obstacle::NotRun => "not-run",
            Obstacle::NotReached => "not-reached",
            Obstacle::NoFurtherRequest => "no-further-request",
            Obstacle::NotUsed => "not-used",
        }
    }

    /// Whether the connections are such that the kind does not exist for them.
    pub(super) fn is_unsuited(self) -> bool {
        let kinds = [FaultObstacle::NotHttp2, FaultObstacle::NoName];
        kinds.iter().any(|one| self == Obstacle::Fault(*one))
    }

    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Obstacle::Fault(obstacle) => obstacle.words(),
            Obstacle::BaselineFailed => "the program failed without a fault",
            Obstacle::NoBaseline => "the run without a fault did not end",
            Obstacle::NotRun => "its run did not end",
            Obstacle::NotReached => "its run opened no connection to this destination",
            Obstacle::NoFurtherRequest => "the program sent no further request to it",
            Obstacle::NotUsed => "later requests used other open connections",
        }
    }
}

impl Serialize for Obstacle {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Obstacle {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Obstacle".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "The id of a reason." })
    }
}

/// One kind of fault at one destination.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FaultCell {
    /// The kind.
    pub kind: FaultKind,
    /// How much of a pool it struck.
    pub scope: FaultScope,
    /// The kind with its parameter, as its run is called: `nat-idle=5s`; `nat-idle=5s/one` where it
    /// struck one connection of a pool.
    pub name: String,
    /// Scheme, host and port; empty where the program opened no connection.
    pub destination: String,
    /// The host that `--require 'host=...'` finds it by.
    pub host: Option<String>,
    /// The worst that happened.
    pub outcome: FaultOutcome,
    /// Why nothing was shown; absent where something was.
    pub not_applied: Option<Obstacle>,
    /// Connections that the fault was applied to.
    pub struck: Reading,
    /// Requests that the program sent to the destination, attempts that failed included.
    pub sent: u64,
    /// How many of them reached the server, in part at least.
    pub reached: Reading,
    /// Requests on a connection under the fault that got no complete response there.
    pub affected: Reading,
    /// Requests that were sent again on another connection under the fault.
    pub met_again: u64,
    /// Requests that were sent again and got their response.
    pub recovered: Reading,
    /// Requests that got no complete response in the end.
    pub failed: Reading,
    /// Requests that are not idempotent, of which bytes reached the server, and that were sent
    /// again.
    pub duplicated: Reading,
    /// Responses cut short that the program may have taken as complete.
    pub truncated: Reading,
    /// Connections that the program kept until its end.
    pub leaked: Reading,
    /// The longest wait of a request on a connection under the fault, in milliseconds.
    pub hung_ms: Reading,
    /// What ended that wait.
    pub hung_until: Option<StallEnd>,
    /// The longest time that recovery took: from the first attempt until a further one had a
    /// connection.
    pub cost_ms: Option<f64>,
    /// One of the affected requests, the worst: `POST /orders`.
    pub example: Option<String>,
    /// Why bounds are all that is known, where that is so.
    pub undecided: Option<&'static str>,
    /// What was counted.
    #[serde(skip)]
    pub(super) counted: StrikeCounts,
    /// Whether the program's kernel kept bytes that may be further requests: `sent`, `failed` and
    /// `recovered` are then lower bounds.
    pub has_held: bool,
    /// Whether a part of the traffic was not observed, so that counts are lower bounds.
    pub is_partly_seen: bool,
}

impl FaultCell {
    /// What happened, in a few words.
    pub fn words(&self) -> String {
        let words = match self.outcome {
            FaultOutcome::Unsuited | FaultOutcome::NotApplied => {
                let id = self.not_applied.map_or("", |obstacle| obstacle.id());
                return format!("not shown: {id}");
            }
            FaultOutcome::Unaffected => "noticed",
            FaultOutcome::Recovered => "recovered",
            FaultOutcome::Leaked => "left it open",
            FaultOutcome::Undecided => "recovered or failed",
            FaultOutcome::Failed => "failed to the caller",
            FaultOutcome::Hung if self.is_open_ended() => match self.hung_until {
                Some(StallEnd::ProgramClosed) => "hung, end not seen",
                _ => "hung, no timeout",
            },
            FaultOutcome::Hung => "hung, then failed",
            FaultOutcome::Misled => "got another server's response",
            FaultOutcome::Truncated => "failed or took a part",
            FaultOutcome::PossiblyDuplicated => "maybe sent twice",
            FaultOutcome::Duplicated => "sent twice",
        };
        words.to_owned()
    }

    /// Whether the kind suits the connections of the destination.
    pub fn is_suited(&self) -> bool {
        self.outcome != FaultOutcome::Unsuited
    }

    /// Whether no timeout of the program ended a wait, so that it could have lasted longer.
    pub fn is_open_ended(&self) -> bool {
        self.counted.is_open_ended
    }

    /// Makes the readings of what was counted. `missing`: why a part of the traffic is.
    pub(super) fn read(&mut self, missing: Option<&Why>) {
        self.is_partly_seen = missing.is_some();
        if self.is_partly_seen && self.not_applied.is_none() {
            self.undecided = self.undecided.or(Some(UNSEEN));
        }
        let counted = &self.counted;
        let obstacle = self.not_applied.map(|one| Why::cannot_see(one.words()));
        let least = |known: &Reading, why: Option<&Why>| match (&obstacle, why) {
            (Some(obstacle), _) => Reading::unknown(obstacle.clone()),
            (None, Some(why)) => Reading::at_least(known.low(), why.clone()),
            (None, None) => known.clone(),
        };
        let held = self.has_held.then_some(Why::cannot_see(HELD));
        let unsent = missing.or(held.as_ref());
        let end = match self.hung_until {
            Some(StallEnd::ProgramClosed) => HELD,
            _ => NO_TIMEOUT,
        };
        let end = counted.is_open_ended.then_some(Why::cannot_see(end));
        self.struck = match (&obstacle, counted.struck) {
            (Some(obstacle), 0) => Reading::unknown(obstacle.clone()),
            (_, struck) => Reading::count(struck),
        };
        self.reached = match unsent {
            Some(why) => Reading::at_least(counted.reached.low(), why.clone()),
            None => counted.reached.clone(),
        };
        self.met_again = counted.met_again;
        self.affected = least(&Reading::count(counted.affected), missing);
        self.recovered = least(&counted.recovered, unsent);
        self.failed = least(&counted.failed, unsent);
        self.duplicated = least(&counted.duplicated, missing);
        self.truncated = least(&counted.truncated, missing);
        self.leaked = least(&Reading::count(counted.leaked), missing);
        let hung_ms = Reading::of(counted.hung_ms, Why::NothingHappened);
        self.hung_ms = match hung_ms.is_known() {
            true => least(&hung_ms, end.as_ref().or(unsent)),
            false => least(&hung_ms, None),
        };
    }
}

/// One run of the program.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FaultRun {
    /// `none` for the run without a fault, else the kind with its parameter.
    pub name: String,
    /// Whether it is the run without a fault.
    pub is_baseline: bool,
    /// The program's exit code; absent where a signal ended it, or it has not ended.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Of a function: its invocations.
    pub invocations: Option<FaultInvocations>,
    /// Whether the program ended well, or each invocation of the function did.
    #[serde(skip)]
    pub is_success: bool,
    /// From its start to its end.
    pub wall_ms: Option<f64>,
    /// Requests that it sent.
    pub requests: u64,
    /// Those that got a complete response.
    pub ok: u64,
    /// Connections that the fault was applied to.
    pub struck: u64,
}

impl FaultRun {
    pub(super) fn of(rows: &RunRows) -> FaultRun {
        let end = rows.end.as_ref();
        FaultRun {
            name: rows.name.clone(),
            is_baseline: rows.is_baseline,
            exit_code: end.and_then(|end| end.code),
            signal: end.and_then(|end| end.signal),
            invocations: end.and_then(|end| end.invocations),
            is_success: end.is_some_and(FaultEnd::is_success),
            wall_ms: end.map(|end| end.span.nanos() as f64 / NANOS_PER_MS),
            requests: rows.requests.len() as u64,
            ok: rows.requests.iter().filter(|one| one.is_ok).count() as u64,
            struck: rows.strikes.len() as u64,
        }
    }

    /// How it ended, in words; `None` where it has not.
    pub fn ending(&self) -> Option<String> {
        Some(match (self.invocations, self.exit_code, self.signal) {
            (Some(all), ..) => {
                let made = counted(all.made, "invocation");
                format!("{} of {made} failed", all.failed)
            }
            (None, Some(code), _) => format!("exit code {code}"),
            (None, None, Some(signal)) => format!("signal {signal}"),
            (None, None, None) => return None,
        })
    }
}
