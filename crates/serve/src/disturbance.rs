//! What the server does to its responses at set times: pauses, one stalled connection, resets,
//! single slow responses, a ramp.
//!
//! Only when, and by how much; the clock starts with the first request. A response waits, but is
//! recorded with the times at which its request came and it left. So the ledger has the latency
//! that a client with a fixed schedule has to see. Draws nothing.

use crate::fault::Fault;
use crate::named_variants::{UnknownChoice, choices, find};
use intact_ledger::{ConnectionId, Nanos};
use intact_units::duration::{DurationError, or_seconds};
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The longest time that a script may have in it.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// How many windows in a row a response waits for. Windows that leave no gap would hold it for
/// ever.
const MOST_WINDOWS: usize = 1000;

choices! {
    /// A way to disturb responses at set times.
    Disturbance, "disturbance";
    Pause "pause" "no response leaves for TIME",
    Stall "stall" "the same, on one connection: the first with a request in that time",
    Reset "reset" "for TIME, each request is followed by a RST",
    Slow "slow" "every Nth response leaves TIME later",
    Ramp "ramp" "all responses leave later, by a delay that grows to TIME within EVERY and stays",
}

/// Why a script could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// No disturbance has that name.
    #[error(transparent)]
    Unknown(#[from] UnknownChoice),
    /// A part is no time.
    #[error("{0:?}: {1}")]
    Time(String, DurationError),
    /// A part is missing, or there is one too many.
    #[error("{0:?} is no step of a script: write {1}")]
    Form(String, &'static str),
    /// The same one again.
    #[error("{0} can be given once")]
    Twice(Disturbance),
    /// It begins again before it is over.
    #[error("{0:?} begins again before it is over: write a time that is shorter than its period")]
    Endless(String),
}

/// A span of time, once or again and again, since the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Window {
    first: Duration,
    length: Duration,
    every: Option<Duration>,
}

impl Window {
    /// Which one holds this moment, and its end.
    fn around(&self, at: Duration) -> Option<(u64, Duration)> {
        let since = at.checked_sub(self.first)?;
        let (number, passed) = match self.every {
            None => (0, since),
            Some(every) => {
                let (since, every) = (since.as_nanos(), every.as_nanos());
                let passed = Duration::from_nanos((since % every) as u64);
                ((since / every) as u64, passed)
            }
        };
        let left = self.length.checked_sub(passed)?;
        (!left.is_zero()).then(|| (number, at + left))
    }
}

/// Responses that leave later: every Nth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Slow {
    by: Duration,
    every: u64,
}

/// A delay that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ramp {
    start: Duration,
    to: Duration,
    within: Duration,
}

/// Everything that a server does at set times: `--script`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbances {
    pause: Option<Window>,
    stall: Option<Window>,
    reset: Option<Window>,
    slow: Option<Slow>,
    ramp: Option<Ramp>,
}

/// What was decided about one response.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Disturbed {
    /// How long it waits, its usual delay included.
    pub(crate) pause: Duration,
    /// What goes wrong with it.
    pub(crate) fault: Option<Fault>,
    /// What had an effect on it.
    pub(crate) by: Vec<Disturbance>,
}

/// Where a server is in its script; all threads share it.
#[derive(Default)]
pub(crate) struct ScriptState {
    begun: OnceLock<Nanos>,
    requests: AtomicU64,
    /// The window of a stall, and its connection.
    stalled: Mutex<Option<(u64, ConnectionId)>>,
}

impl Disturbances {
    /// Whether nothing is disturbed.
    pub fn is_empty(&self) -> bool {
        *self == Disturbances::default()
    }

    /// Decides about the response to a request that came now, and would be due after `pause`.
    pub(crate) fn apply(
        &self,
        state: &ScriptState,
        now: Nanos,
        connection: ConnectionId,
        pause: Duration,
    ) -> Disturbed {
        let mut found = Disturbed {
            pause,
            ..Disturbed::default()
        };
        if self.is_empty() {
            return found;
        }
        let at = Duration::from_nanos(now.since(*state.begun.get_or_init(|| now)));
        let number = state.requests.fetch_add(1, Ordering::Relaxed) + 1;
        if self.reset.is_some_and(|reset| reset.around(at).is_some()) {
            found.fault = Some(Fault::ResetBeforeAnswer);
            found.by.push(Disturbance::Reset);
            return found;
        }
        if let Some(slow) = self.slow
            && number.is_multiple_of(slow.every)
        {
            found.pause += slow.by;
            found.by.push(Disturbance::Slow);
        }
        if let Some(delay) = self.ramp.and_then(|ramp| ramp.delay(at)) {
            found.pause += delay;
            found.by.push(Disturbance::Ramp);
        }
        // a window may end in another one
        for _ in 0..MOST_WINDOWS {
            let due = at + found.pause;
            let paused = self.pause.and_then(|pause| pause.around(due));
            let (kind, end) = match (paused, self.stall_end(state, due, connection)) {
                (Some((_, end)), _) => (Disturbance::Pause, end),
                (None, Some(end)) => (Disturbance::Stall, end),
                (None, None) => break,
            };
            found.pause = end - at;
            if !found.by.contains(&kind) {
                found.by.push(kind);
            }
        }
        found
    }

    /// The end of the stall, if a response that is due then is in one. The first that is makes its
    /// connection the stalled one.
    fn stall_end(
        &self,
        state: &ScriptState,
        due: Duration,
        connection: ConnectionId,
    ) -> Option<Duration> {
        let (number, end) = self.stall?.around(due)?;
        let mut stalled = state.stalled.lock().unwrap_or_else(PoisonError::into_inner);
        if stalled.is_none_or(|(last, _)| last < number) {
            *stalled = Some((number, connection));
        }
        (*stalled == Some((number, connection))).then_some(end)
    }
}

impl Ramp {
    fn delay(&self, at: Duration) -> Option<Duration> {
        let since = at.checked_sub(self.start)?;
        let share = (since.as_secs_f64() / self.within.as_secs_f64()).min(1.0);
        Some(self.to.mul_f64(share)).filter(|delay| !delay.is_zero())
    }
}

impl FromStr for Disturbances {
    type Err = ScriptError;

    /// Reads `pause=1s/10s,slow=200ms/100`: `NAME=TIME[@START][/EVERY]`.
    fn from_str(text: &str) -> Result<Disturbances, ScriptError> {
        let mut script = Disturbances::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (id, rest) = part.split_once('=').unwrap_or((part, ""));
            let kind: Disturbance = find(id)?;
            let (rest, every) = cut(rest, '/');
            let (length, start) = cut(rest, '@');
            let step = Step {
                part,
                kind,
                length,
                start,
                every,
            };
            let is_new = match kind {
                Disturbance::Pause => script.pause.replace(step.window()?).is_none(),
                Disturbance::Stall => script.stall.replace(step.window()?).is_none(),
                Disturbance::Reset => script.reset.replace(step.window()?).is_none(),
                Disturbance::Slow => script.slow.replace(step.slow()?).is_none(),
                Disturbance::Ramp => script.ramp.replace(step.ramp()?).is_none(),
            };
            if !is_new {
                return Err(ScriptError::Twice(kind));
            }
        }
        Ok(script)
    }
}

/// What is before a sign, and what follows it.
fn cut(text: &str, sign: char) -> (&str, Option<&str>) {
    match text.split_once(sign) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

/// One part of a script, cut at its signs.
struct Step<'a> {
    part: &'a str,
    kind: Disturbance,
    length: &'a str,
    start: Option<&'a str>,
    every: Option<&'a str>,
}

impl Step<'_> {
    fn form(&self) -> ScriptError {
        let form = match self.kind {
            Disturbance::Pause => "pause=1s/10s (every 10 s) or pause=1s@5s (once, after 5 s)",
            Disturbance::Stall => "stall=3s@5s (once, after 5 s) or stall=3s/10s (every 10 s)",
            Disturbance::Reset => "reset=1s@5s (once, after 5 s) or reset=1s/10s (every 10 s)",
            Disturbance::Slow => "slow=200ms/100 (every 100th response)",
            Disturbance::Ramp => "ramp=200ms/60s or, from 10 s on, ramp=200ms@10s/60s",
        };
        ScriptError::Form(self.part.to_owned(), form)
    }

    fn time(&self, text: &str) -> Result<Duration, ScriptError> {
        let wrong = |error| ScriptError::Time(self.part.to_owned(), error);
        match or_seconds(text) {
            Ok(time) if time > LONGEST => Err(wrong(DurationError::TooLong(text.to_owned()))),
            read => read.map_err(wrong),
        }
    }

    /// A time that is more than nothing.
    fn some_time(&self, text: &str) -> Result<Duration, ScriptError> {
        let time = self.time(text)?;
        if time.is_zero() {
            return Err(self.form());
        }
        Ok(time)
    }

    fn window(&self) -> Result<Window, ScriptError> {
        let length = self.some_time(self.length)?;
        let every = self.every.map(|every| self.some_time(every)).transpose()?;
        if every.is_some_and(|every| every <= length) {
            return Err(ScriptError::Endless(self.part.to_owned()));
        }
        let first = match (self.start, every) {
            (Some(start), _) => self.time(start)?,
            (None, Some(every)) => every,
            (None, None) => return Err(self.form()),
        };
        Ok(Window {
            first,
            length,
            every,
        })
    }

    fn slow(&self) -> Result<Slow, ScriptError> {
        let every = self.every.and_then(|every| every.parse().ok());
        match (every, self.start) {
            (Some(every @ 1..), None) => Ok(Slow {
                by: self.some_time(self.length)?,
                every,
            }),
            _ => Err(self.form()),
        }
    }

    fn ramp(&self) -> Result<Ramp, ScriptError> {
        let within = self.every.ok_or_else(|| self.form())?;
        Ok(Ramp {
            start: self.time(self.start.unwrap_or("0"))?,
            to: self.some_time(self.length)?,
            within: self.some_time(within)?,
        })
    }
}

#[cfg(test)]
mod tests;
