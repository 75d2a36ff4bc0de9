//! The compiled plan: sessions with weights and steps, arrival phases, the target. Every value is
//! in its limits.

use serde::Serialize;
use std::time::Duration;

/// The schema of a plan's document.
const SCHEMA: &str = "intact.scenario-plan/1";

/// What simulated clients do, and when they arrive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Where requests go; absent where the definition names no host.
    pub target: Option<Target>,
    /// The `User-Agent` of all requests, if the definition sets it.
    pub user_agent: Option<String>,
    /// When clients arrive; empty: a fixed number of clients at once.
    pub phases: Vec<Phase>,
    /// The sessions that a client picks from, at least one; the sum of their weights is above 0.
    pub sessions: Vec<Session>,
    /// What the definition asks for that has no effect here.
    pub notes: Vec<Note>,
}

/// Where requests go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// As written: a URL, or host and port.
    pub url: String,
    /// The line of the definition.
    pub line: usize,
}

/// A time in which clients arrive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// How long.
    #[serde(rename = "duration_s", serialize_with = "seconds")]
    pub duration: Duration,
    /// Clients a second, above 0.
    pub rate: f64,
    /// The most clients that arrive in it.
    pub max_clients: Option<u64>,
    /// Its name.
    pub name: Option<String>,
    /// The line of the definition.
    pub line: usize,
}

/// What one kind of client does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Session {
    /// Its name, unique within the plan.
    pub name: String,
    /// How likely it is, compared with the others. 0: never.
    pub weight: f64,
    /// What it does, in order.
    pub steps: Vec<Step>,
    /// The line of the definition.
    pub line: usize,
}

/// One step of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Sends a request and waits for its response.
    Request(Request),
    /// Waits.
    Wait(Wait),
    /// Repeats steps.
    Repeat {
        /// How often, from 1; absent: until the run ends.
        times: Option<u64>,
        /// The steps; at least one of them sends a request if there is no end.
        steps: Vec<Step>,
        /// The line of the definition.
        line: usize,
    },
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The method.
    pub method: String,
    /// A path, or a whole URL.
    pub url: String,
    /// The name under which it is counted.
    pub tag: String,
    /// Header fields in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(serialize_with = "text")]
    pub body: Vec<u8>,
    /// What the response has to have, in addition to what the run expects of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
    /// The line of the definition.
    pub line: usize,
}

/// What a response has to have, or the request fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// A status or a class of them, such as 204 or 2xx.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// A text within the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// Values within a body of JSON.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub json: Vec<JsonCheck>,
}

/// A value within a body of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JsonCheck {
    /// The path as written, such as `$.items[0].id`.
    pub path: String,
    /// The same as a JSON Pointer (RFC 6901).
    #[serde(skip)]
    pub pointer: String,
    /// A text, a number or a truth value.
    pub value: serde_json::Value,
}

/// How long a client waits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// Always this long.
    Constant(#[serde(serialize_with = "seconds")] Duration),
    /// At random, exponentially distributed with this mean.
    Exponential(#[serde(serialize_with = "seconds")] Duration),
    /// At random between the two, each equally likely.
    Uniform(
        #[serde(serialize_with = "seconds")] Duration,
        #[serde(serialize_with = "seconds")] Duration,
    ),
}

/// Something that the definition asks for and that has no effect here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The line of the definition.
    pub line: usize,
    /// The consequence, as a sentence.
    pub words: String,
}

fn text<S: serde::Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&String::from_utf8_lossy(bytes))
}

fn seconds<S: serde::Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64())
}

impl Request {
    /// Scheme and host of its URL; absent of a path.
    pub fn target(&self) -> Option<&str> {
        let host = self.url.find("://")? + 3;
        let end = self.url[host..].find(['/', '?', '#']);
        Some(&self.url[..end.map_or(self.url.len(), |at| host + at)])
    }
}

impl Wait {
    /// The mean.
    pub fn mean(self) -> Duration {
        match self {
            Wait::Constant(time) | Wait::Exponential(time) => time,
            Wait::Uniform(low, high) => (low + high) / 2,
        }
    }
}

impl Phase {
    /// Clients that arrive in it, on average.
    pub fn clients(&self) -> f64 {
        let clients = self.rate * self.duration.as_secs_f64();
        self.max_clients
            .map_or(clients, |most| clients.min(most as f64))
    }
}

impl Plan {
    /// How likely a session is, from 0 to 1.
    pub fn share(&self, session: &Session) -> f64 {
        let all: f64 = self.sessions.iter().map(|one| one.weight).sum();
        session.weight / all
    }

    /// The destination of requests, with its line: the definition's target, or the host of its
    /// first absolute URL.
    pub fn named_target(&self) -> Option<(&str, usize)> {
        if let Some(target) = &self.target {
            return Some((&target.url, target.line));
        }
        let mut requests = self.sessions.iter().flat_map(Session::each_request);
        requests.find_map(|one| Some((one.target()?, one.line)))
    }

    /// The clients that arrive on average; absent without phases.
    pub fn clients(&self) -> Option<f64> {
        (!self.phases.is_empty()).then(|| self.phases.iter().map(Phase::clients).sum())
    }

    /// The largest number of requests of one client; absent if a session does not end by itself.
    pub fn most_requests(&self) -> Option<u64> {
        let picked = self.sessions.iter().filter(|one| one.weight > 0.0);
        picked
            .map(Session::requests)
            .try_fold(0, |most, one| Some(one?.max(most)))
    }

    /// The mean number of requests of a client; absent if a session does not end by itself.
    pub fn mean_requests(&self) -> Option<f64> {
        let picked = self.sessions.iter().filter(|one| one.weight > 0.0);
        picked
            .map(|one| Some(one.requests()? as f64 * self.share(one)))
            .sum()
    }

    /// The plan as a JSON document, pretty-printed, with a newline at its end.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn to_json(&self) -> serde_json::Result<String> {
        #[derive(Serialize)]
        struct Document<'a> {
            schema: &'static str,
            #[serde(flatten)]
            plan: &'a Plan,
        }
        let document = Document {
            schema: SCHEMA,
            plan: self,
        };
        Ok(serde_json::to_string_pretty(&document)? + "\n")
    }

    /// The plan as TOML. It compiles to the same plan, except for lines and notes.
    pub fn to_toml(&self) -> String {
        crate::toml_writer::write(self)
    }
}

impl Session {
    /// The requests that a client sends in it; absent where it does not end by itself.
    pub fn requests(&self) -> Option<u64> {
        requests(&self.steps)
    }

    /// How long a client waits in it on average; absent where it does not end by itself.
    pub fn mean_wait(&self) -> Option<Duration> {
        mean_wait(&self.steps).map(Duration::from_secs_f64)
    }

    /// Every request once, in order.
    pub fn each_request(&self) -> Vec<&Request> {
        let mut all = Vec::new();
        collect(&self.steps, &mut all);
        all
    }
}

fn collect<'a>(steps: &'a [Step], all: &mut Vec<&'a Request>) {
    for step in steps {
        match step {
            Step::Request(request) => all.push(request),
            Step::Wait(_) => {}
            Step::Repeat { steps, .. } => collect(steps, all),
        }
    }
}

/// The requests of one pass; absent if the pass does not end, at most `u64::MAX`.
pub(crate) fn requests(steps: &[Step]) -> Option<u64> {
    let of_step = |step: &Step| match step {
        Step::Request(_) => Some(1),
        Step::Wait(_) => Some(0),
        Step::Repeat { times, steps, .. } => Some(times.as_ref()?.saturating_mul(requests(steps)?)),
    };
    steps
        .iter()
        .map(of_step)
        .try_fold(0u64, |sum, one| Some(sum.saturating_add(one?)))
}

fn mean_wait(steps: &[Step]) -> Option<f64> {
    let of_step = |step: &Step| match step {
        Step::Request(_) => Some(0.0),
        Step::Wait(wait) => Some(wait.mean().as_secs_f64()),
        Step::Repeat { times, steps, .. } => Some((*times)? as f64 * mean_wait(steps)?),
    };
    steps.iter().map(of_step).sum()
}
