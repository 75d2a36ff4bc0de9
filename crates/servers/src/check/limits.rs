//! The limits of a connection: idle time, requests, and what happens at the moment of the idle
//! limit.

use intact_document::figures::NANOS_PER_S;
use intact_ledger::server_profile::{
    Ended, IdleLimits, IdleUnderLoad, IdleWait, MaxAge, Race, RequestLimit,
};
use intact_ledger::{CloseKind, Failure, Outcome, Protocol, Side, Span};
use intact_reading::{Reading, Why};
use serde::Serialize;

/// Why a limit lies below the idle time of a request.
const NO_RESPONSE: Why =
    Why::cannot_see("a request got no response on a connection that showed no end");

/// How a connection was ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CloseFacts {
    /// `fin`, `close-notify`, `goaway`, `rst` or `silent`.
    pub how: CloseKind,
    /// Who was first; absent when it is not known.
    pub by: Option<Side>,
    /// Whether the last response had announced it.
    pub announced: bool,
    /// The status of an unsolicited response (408, for example).
    pub unsolicited_status: Option<u16>,
}

impl CloseFacts {
    pub(super) fn of(ended: Ended) -> CloseFacts {
        CloseFacts {
            how: ended.how,
            by: ended.by,
            announced: ended.announced,
            unsolicited_status: ended.unsolicited_status,
        }
    }

    /// In words.
    pub fn words(&self) -> String {
        let how = match self.how {
            CloseKind::Fin => "FIN",
            CloseKind::CloseNotify => "close_notify",
            CloseKind::Goaway => "GOAWAY",
            CloseKind::Rst => "RST",
            CloseKind::Silent => "timers of both sides",
        };
        let after = self.unsolicited_status.map_or_else(String::new, |status| {
            format!(" after an unsolicited {status}")
        });
        format!("{how}{after}")
    }
}

/// Samples that differ by more, in seconds, are those of a server that looks at its connections
/// once in a while.
const SWEEP: f64 = 0.5;
/// Samples that differ by less, in seconds, are those of one limit.
const SAME: f64 = 0.1;

/// How long an idle connection is kept.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct IdleTimeout {
    /// From the last response to the server's end, in seconds. Where the ends that were seen
    /// differ, from the earliest one that is possible to the last. Where the server ended none,
    /// the bounds are the longest idle time with a response, and the shortest without.
    pub measured_s: Reading,
    /// Every end of an idle connection that was seen, in seconds.
    pub samples_s: Vec<f64>,
    /// The shortest idle time after which a request got no response, in seconds, although the
    /// connection showed no end.
    pub no_response_s: Option<f64>,
    /// How that request failed.
    pub no_response: Option<&'static str>,
    /// Connections that showed no end and got no response.
    pub no_responses: u32,
    /// Whether the response after the idle time announced the end of the connection.
    pub last_announced: bool,
    /// `Keep-Alive: timeout=`, or `max_idle_timeout` of QUIC, in seconds.
    pub announced_s: Option<u32>,
    /// From the end of the setup to the server's end, without any request, in seconds.
    pub before_first_request_s: Reading,
    /// The idle time after which the first request got no response, in seconds, although the
    /// connection showed no end.
    pub before_first_request_no_response_s: Option<f64>,
    /// What was spoken.
    pub http: &'static str,
    /// How it was ended.
    pub ended: Option<CloseFacts>,
    /// How it was ended before any request.
    pub before_first_request_ended: Option<CloseFacts>,
    /// Whether others were answered while connections idled.
    pub answers_others: Option<bool>,
}

impl IdleTimeout {
    /// Whether the connections were those of QUIC.
    pub(super) fn is_http3(&self) -> bool {
        self.http == Protocol::Http3.as_str()
    }

    /// `is_cut`: whether an outage ended a connection; `unseen`: why nothing is known where neither
    /// an end nor a response was seen.
    pub(super) fn of(
        seen: &IdleLimits,
        race: Option<&Race>,
        is_cut: bool,
        unseen: Why,
    ) -> IdleTimeout {
        let waits = match seen.samples.as_slice() {
            [] => seen.between.as_slice(),
            samples => samples,
        };
        let ends = waits.iter().filter(|one| one.ended.is_some());
        let mut samples_s: Vec<f64> = ends.map(|one| seconds(one.span)).collect();
        let silent = || waits.iter().filter(|one| failure(one).is_some());
        let silent_first = silent().min_by_key(|one| one.span.nanos());
        let no_response_s = silent_first.map(|one| seconds(one.span));
        let has_ended = !samples_s.is_empty();
        let early = race.iter().flat_map(|race| &race.attempts);
        samples_s.extend(early.filter_map(|one| Some(one.ended_ns? as f64 / NANOS_PER_S)));
        let ended = |waited: Option<IdleWait>| waited.and_then(|waited| waited.ended);
        let mut idle = IdleTimeout {
            measured_s: Reading::default(),
            samples_s,
            no_response_s,
            no_response: silent_first.and_then(failure).map(|kind| kind.id()),
            no_responses: silent().count() as u32,
            last_announced: waits
                .iter()
                .any(|one| one.next.is_some_and(|next| next.is_last)),
            announced_s: seen.announced_s,
            before_first_request_s: limit(seen.before_first),
            before_first_request_no_response_s: seen.before_first.and_then(silent_s),
            http: seen.http.as_str(),
            ended: ended(seen.between).map(CloseFacts::of),
            before_first_request_ended: ended(seen.before_first).map(CloseFacts::of),
            answers_others: seen.answers_others,
        };
        // with a response, before any request without
        let is_before = |least: &f64| no_response_s.is_none_or(|silent| *least < silent);
        let confirmed = waits.iter().filter(|one| failure(one).is_none());
        let confirmed = confirmed.map(|one| seconds(one.span)).filter(is_before);
        let confirmed = confirmed.filter(|_| !has_ended).reduce(f64::max);
        idle.measured_s = match is_cut {
            true => Reading::unknown(super::OUTAGE),
            false => idle.reading(confirmed, unseen),
        };
        idle
    }

    /// `confirmed`: the longest idle time with a response, in seconds, where the server ended none.
    fn reading(&self, confirmed: Option<f64>, unseen: Why) -> Reading {
        if let Some(silent) = self.silent_s() {
            let least = confirmed.unwrap_or(f64::NEG_INFINITY);
            return Reading::between(least, silent, NO_RESPONSE);
        }
        match (self.earliest_s(), confirmed) {
            // a requirement has to hold for all of the range
            (Some(earliest), _) if Some(earliest) < self.shortest_s() => {
                let last = self.samples_s.iter().copied().fold(earliest, f64::max);
                Reading::between(earliest, last, Why::OnlyRange)
            }
            (Some(shortest), _) => Reading::known(shortest),
            (None, Some(least)) => Reading::at_least(least, Why::LimitNotReached),
            (None, None) => Reading::unknown(unseen),
        }
    }

    /// The idle time after which there was no response, in seconds, if no end was seen before it.
    pub fn silent_s(&self) -> Option<f64> {
        let is_first = |silent: &f64| self.shortest_s().is_none_or(|shortest| *silent < shortest);
        self.no_response_s.filter(is_first)
    }

    /// The shortest idle time after which an end was seen, in seconds.
    pub(super) fn shortest_s(&self) -> Option<f64> {
        self.samples_s.iter().copied().reduce(f64::min)
    }

    /// The idle time after which an end can come at the earliest, in seconds. Where the ends
    /// differ it is shorter than all of them, by as much as they differ. Where they are those of
    /// servers with different limits it is the shortest one.
    pub(super) fn earliest_s(&self) -> Option<f64> {
        let announced = self.announced_s.map(f64::from);
        let shortest = self.shortest_s()?;
        Some(earliest(shortest, &self.samples_s, announced))
    }

    /// The longest idle time after which a request got a response, in seconds, where no end was
    /// seen.
    pub(super) fn confirmed_s(&self) -> Option<f64> {
        let is_of_responses = self.samples_s.is_empty() || self.silent_s().is_some();
        Some(self.measured_s.low()).filter(|low| is_of_responses && low.is_finite())
    }
}

/// The earliest end that is possible. A server that looks at its connections once in a while ends
/// them late by up to that interval, which is at least as long as the samples differ. An announced
/// limit that no sample contradicts is the limit.
fn earliest(first: f64, samples: &[f64], announced: Option<f64>) -> f64 {
    let last = samples.iter().copied().fold(first, f64::max);
    let possible = if last - first > SWEEP && !are_of_several_limits(samples) {
        (first - (last - first)).max(0.0)
    } else {
        first
    };
    let kept = announced.filter(|announced| *announced <= first);
    kept.map_or(possible, |announced| possible.max(announced))
}

/// Whether the samples are in groups of equal ones: servers with different limits share an address.
/// The waits began at different times, so those that one look at the connections ended differ.
fn are_of_several_limits(samples: &[f64]) -> bool {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let steps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    let (mut equal, mut apart) = (0, 0);
    for step in steps {
        match step {
            step if step <= SAME => equal += 1,
            step if step > SWEEP => apart += 1,
            _ => return false,
        }
    }
    apart > 0 && equal >= apart
}

fn seconds(span: Span) -> f64 {
    span.nanos() as f64 / NANOS_PER_S
}

/// How the request after an idle time failed, where the connection had shown no end.
fn failure(waited: &IdleWait) -> Option<Failure> {
    waited.next?.outcome.failure()
}

/// The idle time after which the next request got no response, in seconds.
pub(super) fn silent_s(waited: IdleWait) -> Option<f64> {
    failure(&waited).map(|_| seconds(waited.span))
}

/// The limit that a wait shows, in seconds.
pub(super) fn limit(waited: Option<IdleWait>) -> Reading {
    let Some(waited) = waited else {
        return Reading::default();
    };
    let idle_s = seconds(waited.span);
    match (waited.ended, failure(&waited)) {
        (Some(_), _) => Reading::known(idle_s),
        (None, None) => Reading::at_least(idle_s, Why::LimitNotReached),
        (None, Some(_)) => Reading::at_most(idle_s, NO_RESPONSE),
    }
}

/// The idle limit of one connection while others idle too.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HeldFacts {
    /// The others, as many as the server took.
    pub connections: u32,
    /// From the last response to the server's end, in seconds.
    pub measured_s: Reading,
    /// The idle time after which a request got no response, in seconds, although the connection
    /// showed no end.
    pub no_response_s: Option<f64>,
    /// How it was ended.
    pub ended: Option<CloseFacts>,
}

impl HeldFacts {
    pub(super) fn of(held: &IdleUnderLoad) -> HeldFacts {
        HeldFacts {
            connections: held.connections,
            measured_s: limit(held.waited),
            no_response_s: held.waited.and_then(silent_s),
            ended: held
                .waited
                .and_then(|waited| waited.ended)
                .map(CloseFacts::of),
        }
    }
}

/// How old a connection gets that is used now and then.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MaxAgeFacts {
    /// From the end of the setup to the end, in seconds.
    pub measured_s: Reading,
    /// Answers until then.
    pub answered: u32,
    /// Whether the last response announced the end.
    pub last_announced: bool,
    /// How it was ended; absent where the server said so and left the closing to us.
    pub ended: Option<CloseFacts>,
}

impl MaxAgeFacts {
    pub(super) fn of(aged: &MaxAge) -> MaxAgeFacts {
        let age_s = seconds(aged.span);
        MaxAgeFacts {
            measured_s: match aged.is_over() {
                true => Reading::known(age_s),
                false => Reading::at_least(age_s, Why::LimitNotReached),
            },
            answered: aged.answered,
            last_announced: aged.last_announced,
            ended: aged.ended.map(CloseFacts::of),
        }
    }
}

/// How many requests a connection takes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MaxRequests {
    /// Answers until the server ended the connection.
    pub measured: Reading,
    /// Requests per connection according to `Keep-Alive: max=`.
    pub announced: Option<u32>,
    /// What was spoken.
    pub http: &'static str,
    /// Whether the last response announced the end.
    pub last_announced: bool,
    /// How it was ended; absent where the server said so and left the closing to us.
    pub ended: Option<CloseFacts>,
    /// How the request after the last response failed, where the end was not announced.
    pub failed: Option<&'static str>,
}

impl MaxRequests {
    /// `is_cut`: whether an outage ended the connection; `idle`: the idle limits, one of which may
    /// have ended it.
    pub(super) fn of(tried: &RequestLimit, is_cut: bool, idle: Option<&IdleLimits>) -> MaxRequests {
        let has_ended = tried.ended.is_some() || tried.failed.is_some();
        let waits = idle.iter().flat_map(|idle| &idle.samples);
        let waits = waits.filter(|one| one.ended.is_some());
        let limit = waits.map(|one| one.span.nanos()).min();
        let rested = tried.rested.map(|one| one.nanos());
        let was_idle = limit
            .zip(rested)
            .is_some_and(|(limit, rested)| rested >= limit / 10 * 9);
        let is_over = tried.last_announced || (has_ended && !was_idle);
        let answered = f64::from(tried.answered);
        MaxRequests {
            measured: match is_over {
                _ if is_cut => Reading::unknown(super::OUTAGE),
                true => Reading::known(answered),
                false => Reading::at_least(answered, Why::LimitNotReached),
            },
            announced: tried.announced,
            http: tried.http.as_str(),
            last_announced: tried.last_announced,
            ended: tried.ended.map(CloseFacts::of),
            failed: tried.failed.map(|kind| kind.id()),
        }
    }
}

/// Requests that were sent around the idle limit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RaceFacts {
    /// The limit that was aimed at, in seconds.
    pub limit_s: f64,
    /// The requests, in order of time.
    pub attempts: Vec<RaceAttempt>,
}

/// One request meant for a moment near the idle limit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RaceAttempt {
    /// How long the connection had idled, in seconds.
    pub idle_s: f64,
    /// Whether it was sent; if not, the end of the connection was there already.
    pub sent: bool,
    /// Whether it was answered.
    pub answered: bool,
    /// How it failed.
    pub failed: Option<&'static str>,
    /// How the connection ended, if it did.
    pub ended: Option<CloseFacts>,
}

impl RaceAttempt {
    /// Whether it was sent on a connection that seemed to stand, and not answered.
    pub fn is_lost(&self) -> bool {
        self.sent && !self.answered
    }
}

impl RaceFacts {
    pub(super) fn of(race: &Race) -> RaceFacts {
        RaceFacts {
            limit_s: race.limit_ns as f64 / NANOS_PER_S,
            attempts: race
                .attempts
                .iter()
                .map(|attempt| RaceAttempt {
                    idle_s: attempt.idle_ns as f64 / NANOS_PER_S,
                    sent: attempt.outcome.is_some(),
                    answered: attempt.outcome.is_some_and(Outcome::is_ok),
                    failed: attempt
                        .outcome
                        .and_then(Outcome::failure)
                        .map(|kind| kind.id()),
                    ended: attempt.ended.map(CloseFacts::of),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_differ_leave_room_for_an_earlier_end() {
        for (samples, announced, earliest_s) in [
            // a sweep of about 5 s over a limit of 30 s
            (&[33.5, 34.2, 38.9][..], None, 28.1),
            (&[75.0, 75.02, 75.01], None, 75.0),
            (&[6.0, 6.3, 6.9], Some(5.0), 5.1),
            (&[5.1, 6.3], Some(5.0), 5.0),
            // what is announced does not hold
            (&[2.0, 2.9], Some(5.0), 1.1),
            (&[0.6, 1.6], None, 0.0),
            // two servers with limits of their own
            (&[2.001, 8.008, 8.006, 8.006], None, 2.001),
            (&[2.0, 8.0, 2.01, 8.01], None, 2.0),
        ] {
            let found = earliest(samples[0], samples, announced);
            assert!((found - earliest_s).abs() < 1e-9, "{samples:?}: {found}");
        }
    }
}
