//! The end of a server's process: what it announced, for how long it responded, which requests it
//! lost.
//!
//! A request counts as lost when it was sent on a connection whose end could not be seen, and got
//! no complete response. Must not count what HTTP/2 declares unprocessed: that is safe to send
//! again (RFC 9113 section 6.8).

mod findings;

pub(super) use findings::{claims, findings};

use intact_document::Readings;
use intact_document::figures::NANOS_PER_MS;
use intact_ledger::server_profile::{Drain, DrainConnection, DrainRequest, DrainRole};
use intact_ledger::{Failure, Nanos, Protocol};
use intact_reading::{Reading, Why};
use serde::Serialize;
use std::collections::BTreeMap;

/// A response this soon after the signal may precede the server's reaction to it, in nanoseconds.
const REACTION: u64 = 50_000_000;
/// Why requests and announcements may be missing.
const STOPPED: Why = Why::cannot_see("the measurement was stopped before the server had ended");

/// What a server did between the signal and the end of its process. Times are milliseconds after
/// the signal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct DrainFacts {
    /// The signal, such as `SIGTERM`.
    pub signal: String,
    /// Requests that were in flight at the signal.
    pub in_flight: DrainRequests,
    /// Requests that were sent on kept connections after the signal.
    pub kept: DrainRequests,
    /// Requests that were sent on new connections after the signal.
    pub new: DrainRequests,
    /// Requests without a complete response, of all.
    pub lost: Reading,
    /// Requests that the server declared unprocessed, of all.
    pub refused: Reading,
    /// Connections on which the server announced the end, as a share of those on which it could.
    pub announced: Reading,
    /// All lost requests, by kind of failure.
    pub lost_by: BTreeMap<&'static str, u64>,
    /// Connections that were open at the signal, by HTTP version.
    pub versions: Vec<DrainVersion>,
    /// The last response on a connection that was open at the signal.
    pub responded_until_ms: Option<f64>,
    /// The last response on a connection that was opened after the signal.
    pub accepted_until_ms: Option<f64>,
    /// The first connection after the signal that could not be opened.
    pub refused_from_ms: Option<f64>,
    /// How the process ended.
    pub process: DrainedProcess,
}

/// Requests of one kind, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DrainRequests {
    /// All of them.
    pub sent: u64,
    /// With a complete response below 500.
    pub answered: u64,
    /// With a complete response of 5xx.
    pub errors: u64,
    /// Declared unprocessed by the server, so that they are safe to send again: GOAWAY or
    /// REFUSED_STREAM.
    pub refused: u64,
    /// Without a complete response.
    pub lost: u64,
}

/// Connections of one HTTP version that were open at the signal.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DrainVersion {
    /// The version.
    pub http: &'static str,
    /// Connections that were open at the signal.
    pub connections: u64,
    /// Those on which the server announced the end: `Connection: close`, or GOAWAY.
    pub announced: u64,
    /// Those on which it could have announced the end and did not.
    pub not_announced: u64,
    /// The first announcement.
    pub announced_from_ms: Option<f64>,
    /// When the server ended the first connection that was idle at the signal and stayed so.
    pub idle_ended_ms: Option<f64>,
    /// The last stream that the server may have processed, by its GOAWAY; the largest number where
    /// it did not say.
    pub last_stream: Option<u32>,
}

/// How a server's process ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct DrainedProcess {
    /// `ended`, `killed`, `left-behind` or `unknown`.
    pub end: ProcessEnd,
    /// When its last process ended.
    pub ended_ms: Reading,
    /// How the command ended, such as `exit code 0` or `SIGTERM`.
    pub status: Option<String>,
    /// When the command ended while a process that it had started was left.
    pub command_ended_ms: Option<f64>,
}

/// The result of a signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessEnd {
    /// Every process ended by itself.
    Ended,
    /// SIGKILL was needed.
    Killed,
    /// The command's processes ended, and another one goes on serving.
    LeftBehind,
    /// The measurement was stopped before.
    #[default]
    Unknown,
}

impl DrainFacts {
    pub(super) fn of(drain: &Drain) -> DrainFacts {
        let mut facts = DrainFacts {
            signal: drain.signal.clone(),
            process: process(drain),
            ..DrainFacts::default()
        };
        for request in &drain.requests {
            facts.count(drain, request);
        }
        let versions = [
            Protocol::Http10,
            Protocol::Http11,
            Protocol::Http2,
            Protocol::Http3,
        ];
        for version in versions {
            facts.versions.extend(DrainVersion::of(drain, version));
        }
        let refused = drain.connections.iter().filter(|one| one.failed.is_some());
        facts.refused_from_ms = earliest(drain, refused.map(|one| one.at));
        facts.read();
        facts
    }

    /// Makes the readings of what was counted.
    fn read(&mut self) {
        let all = self.all();
        let count = |count: u64| match self.is_complete() {
            true => Reading::count(count),
            false => Reading::at_least(count as f64, STOPPED),
        };
        let lost = match (self.in_flight.sent, all.lost) {
            (0, 0) => Reading::unknown(Why::not_measured(
                "no request was in flight at the signal: add --drain-slow PATH",
            )),
            (_, lost) => count(lost),
        };
        let refused = match all.sent {
            0 => Reading::default(),
            _ => count(all.refused),
        };
        self.announced = match self.announcements() {
            (_, 0) => Reading::unknown(Why::not_measured(
                "the server had no occasion to announce the end: add --drain-slow PATH",
            )),
            _ if !self.is_complete() => Reading::unknown(STOPPED),
            (announced, of) => Reading::known(announced as f64 / of as f64),
        };
        (self.lost, self.refused) = (lost, refused);
    }

    /// Adds its figures to those of a subject.
    pub(super) fn add_to(&self, readings: &mut Readings) {
        readings.set("drain.lost", self.lost.clone());
        readings.set("drain.refused", self.refused.clone());
        readings.set("drain.announced", self.announced.clone());
        readings.set("drain.time", self.process.ended_ms.times(NANOS_PER_MS));
    }

    fn count(&mut self, drain: &Drain, request: &DrainRequest) {
        let Some(connection) = drain.connections.get(request.connection) else {
            return;
        };
        let is_new = connection.role == DrainRole::New;
        let group = match is_new {
            _ if request.sent_at <= drain.at => &mut self.in_flight,
            true => &mut self.new,
            false => &mut self.kept,
        };
        group.sent += 1;
        let until = if is_new {
            &mut self.accepted_until_ms
        } else {
            &mut self.responded_until_ms
        };
        match (request.outcome.failure(), request.status) {
            (None, status) => {
                let is_error = status.is_some_and(|status| status >= 500);
                *(if is_error {
                    &mut group.errors
                } else {
                    &mut group.answered
                }) += 1;
                let ended_ms = ms(drain, request.ended_at);
                *until = Some(until.map_or(ended_ms, |before| before.max(ended_ms)));
            }
            (Some(Failure::Refusal), _) => group.refused += 1,
            (Some(kind), _) => {
                group.lost += 1;
                *self.lost_by.entry(kind.id()).or_default() += 1;
            }
        }
    }

    /// All requests.
    pub fn all(&self) -> DrainRequests {
        let mut all = DrainRequests::default();
        for group in [self.in_flight, self.kept, self.new] {
            all.sent += group.sent;
            all.answered += group.answered;
            all.errors += group.errors;
            all.refused += group.refused;
            all.lost += group.lost;
        }
        all
    }

    /// Connections on which the server announced the end, and those on which it could have.
    pub fn announcements(&self) -> (u64, u64) {
        let sum = |count: fn(&DrainVersion) -> u64| self.versions.iter().map(count).sum();
        let announced: u64 = sum(|one| one.announced);
        (announced, announced + sum(|one| one.not_announced))
    }

    /// The last response after the signal.
    pub fn last_response_ms(&self) -> Option<f64> {
        let all = [self.responded_until_ms, self.accepted_until_ms];
        all.into_iter().flatten().reduce(f64::max)
    }

    /// Whether the measurement came to its end.
    pub fn is_complete(&self) -> bool {
        self.process.end != ProcessEnd::Unknown
    }
}

impl DrainVersion {
    /// Absent where no connection of the version was open at the signal.
    fn of(drain: &Drain, version: Protocol) -> Option<DrainVersion> {
        let is_counted = |one: &&DrainConnection| one.http == version && one.role != DrainRole::New;
        let all: Vec<&DrainConnection> = drain.connections.iter().filter(is_counted).collect();
        if all.is_empty() {
            return None;
        }
        let announced = all.iter().filter(|one| one.announced_at.is_some()).count() as u64;
        let could = drain.connections.iter().enumerate().filter(|(at, one)| {
            is_counted(one) && one.announced_at.is_none() && could_announce(drain, *at, one)
        });
        let idle = all.iter().filter(|one| one.role == DrainRole::Idle);
        Some(DrainVersion {
            http: version.as_str(),
            connections: all.len() as u64,
            announced,
            not_announced: could.count() as u64,
            announced_from_ms: earliest(drain, all.iter().filter_map(|one| one.announced_at)),
            idle_ended_ms: earliest(drain, idle.filter_map(|one| one.ended.map(|(at, _)| at))),
            last_stream: all.iter().filter_map(|one| one.last_stream).max(),
        })
    }
}

/// Whether the server could announce the end of a connection: by GOAWAY at any time, in HTTP/1 only
/// with a response. The first responses may precede the server's reaction to the signal.
fn could_announce(drain: &Drain, at: usize, connection: &DrainConnection) -> bool {
    let is_late = |ended_at: Nanos| ended_at >= drain.at.after(REACTION);
    let responded =
        |one: &DrainRequest| one.connection == at && one.outcome.is_ok() && is_late(one.ended_at);
    connection.http.has_streams() || drain.requests.iter().any(responded)
}

fn process(drain: &Drain) -> DrainedProcess {
    let seen = &drain.process;
    let serves = |at: Nanos| {
        let mut requests = drain.requests.iter();
        requests.any(|one| one.sent_at > at && one.outcome.is_ok())
    };
    let end = match (seen.group_at, seen.killed_at) {
        (Some(at), _) if serves(at) => ProcessEnd::LeftBehind,
        (Some(_), _) => ProcessEnd::Ended,
        (None, Some(_)) => ProcessEnd::Killed,
        (None, None) => ProcessEnd::Unknown,
    };
    let is_over = end == ProcessEnd::Ended;
    let early = seen
        .command_at
        .filter(|at| seen.group_at.is_none_or(|group| *at < group));
    DrainedProcess {
        end,
        ended_ms: match seen.group_at {
            Some(at) if is_over => Reading::known(ms(drain, at)),
            _ => {
                let until = ms(drain, seen.killed_at.unwrap_or(drain.over_at));
                Reading::at_least(until, still_runs(end))
            }
        },
        status: seen.status.clone(),
        command_ended_ms: early.filter(|_| !is_over).map(|at| ms(drain, at)),
    }
}

/// Why the end of a process is not known.
fn still_runs(end: ProcessEnd) -> Why {
    match end {
        ProcessEnd::Killed => Why::cannot_see("the server had to be killed"),
        ProcessEnd::LeftBehind => {
            Why::cannot_see("the server goes on after the command that started it")
        }
        ProcessEnd::Ended | ProcessEnd::Unknown => STOPPED,
    }
}

fn ms(drain: &Drain, at: Nanos) -> f64 {
    at.since(drain.at) as f64 / NANOS_PER_MS
}

fn earliest(drain: &Drain, times: impl Iterator<Item = Nanos>) -> Option<f64> {
    times.min().map(|at| ms(drain, at))
}

#[cfg(test)]
mod tests;
