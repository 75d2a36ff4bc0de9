//! Compiles a definition to a plan. Checks every value once, for both languages, and reports every
//! problem with its line.

use crate::definition::{
    At, CheckSource, Definition, Given, PhaseSource, RequestSource, SessionSource, StepSource,
    WeightSource,
};
use crate::error::Problem;
use crate::plan::{
    Check, JsonCheck, Note, Phase, Plan, Request, Session, Step, Target, Wait, requests,
};
use intact_units::number::count;
use intact_units::{duration, rate, suggest};
use std::collections::BTreeSet;
use std::time::Duration;

/// The methods that a definition may use.
pub(crate) const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// The most sessions, and the most phases.
const MOST_PARTS: usize = 100;
/// The most steps of all sessions, each counted once.
pub(crate) const MOST_STEPS: usize = 10_000;
/// How deep repetitions may be nested.
pub(crate) const DEEPEST: usize = 16;
/// The most repetitions of one loop.
const MOST_TIMES: u64 = 1_000_000;
/// The most requests of one client.
const MOST_REQUESTS: u64 = 10_000_000;
/// The longest wait and the longest phase.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// The most tags of all sessions: each has a histogram.
const MOST_TAGS: usize = 500;
/// The longest name and tag, in letters.
const LONGEST_NAME: usize = 100;
/// The most targets of a file.
pub(crate) const MOST_TARGETS: usize = 100_000;
/// The most bytes of a URL.
const LONGEST_URL: usize = 16_000;
/// The most header fields of a request.
const MOST_HEADERS: usize = 100;
/// The most bytes of a body.
const LARGEST_BODY: usize = 1 << 20;

/// Checks a definition and makes the plan.
pub(crate) fn plan(definition: Definition) -> Result<Plan, Vec<Problem>> {
    let mut compiler = Compiler::default();
    for one in &definition.unsupported {
        compiler.note_problem(one.line, unsupported(&one.value));
    }
    let target = compiler.target(&definition.targets);
    let phases = compiler.phases(&definition.phases);
    let mut sessions = compiler.sessions(&definition.sessions);
    compiler.weights(&mut sessions, &definition.weights);
    if compiler.problems.is_empty() {
        compiler.check_sessions(&sessions);
    }
    if let Some(agent) = &definition.user_agent {
        compiler.check(agent.line, name("the user agent", &agent.value));
    }
    let notes = definition.ignored.into_iter();
    let plan = Plan {
        target,
        user_agent: definition.user_agent.map(|one| one.value),
        phases,
        sessions,
        notes: notes
            .map(|one| Note {
                line: one.line,
                words: one.value,
            })
            .collect(),
    };
    match compiler.problems.is_empty() {
        true => Ok(plan),
        false => Err(compiler.problems),
    }
}

/// The functions that a session has, for suggestions.
const FUNCTIONS: [&str; 16] = [
    "definition.setTarget",
    "definition.setArrivalPhases",
    "definition.setSessionWeights",
    "definition.session",
    "get",
    "head",
    "post",
    "put",
    "patch",
    "delete",
    "options",
    "wait",
    "waitExp",
    "waitUniform",
    "times",
    "forEver",
];

fn unsupported(name: &str) -> String {
    match suggest::nearest(name, FUNCTIONS) {
        Some(meant) => format!("{name} is not supported: did you mean {meant}?"),
        None => format!("{name} is not supported; docs/reference/scenarios.md lists what is"),
    }
}

#[derive(Default)]
struct Compiler {
    problems: Vec<Problem>,
    steps: usize,
    tags: BTreeSet<(String, String)>,
}

impl Compiler {
    fn note_problem(&mut self, line: usize, words: impl Into<String>) {
        self.problems.push(Problem::new(line, words));
    }

    /// The value, or a noted problem.
    fn check<T>(&mut self, line: usize, value: Result<T, String>) -> Option<T> {
        value.map_err(|words| self.note_problem(line, words)).ok()
    }

    fn target(&mut self, targets: &[At<String>]) -> Option<Target> {
        let (first, rest) = targets.split_first()?;
        for other in rest.iter().filter(|other| other.value != first.value) {
            let words = format!(
                "a second target, {}: a scenario has one, and line {} names {}",
                other.value, first.line, first.value
            );
            self.note_problem(other.line, words);
        }
        if first.value.trim().is_empty() {
            self.note_problem(
                first.line,
                "the target is empty: write \"http://host:port\"",
            );
        }
        Some(Target {
            url: first.value.clone(),
            line: first.line,
        })
    }

    fn phases(&mut self, phases: &[At<PhaseSource>]) -> Vec<Phase> {
        if let Some(one) = phases.get(MOST_PARTS) {
            self.note_problem(one.line, format!("more than {MOST_PARTS} arrival phases"));
        }
        let phases = phases.iter().take(MOST_PARTS);
        phases.filter_map(|one| self.phase(one)).collect()
    }

    fn phase(
        &mut self,
        At {
            line,
            value: source,
        }: &At<PhaseSource>,
    ) -> Option<Phase> {
        let line = *line;
        let duration = self.check(line, time("duration", &source.duration));
        if duration.is_some_and(|one| one.is_zero()) {
            self.note_problem(
                line,
                "duration: a phase of 0 s has no arrivals; leave it out",
            );
        }
        let rate = self.check(line, rate_of(&source.rate));
        let most = source.max_clients.as_ref();
        let most = most.map(|most| self.check(line, whole("max_clients", most, u64::MAX)));
        Some(Phase {
            duration: duration?,
            rate: rate?,
            max_clients: match most {
                Some(most) => Some(most?),
                None => None,
            },
            name: source.name.clone(),
            line,
        })
    }

    fn sessions(&mut self, sessions: &[At<SessionSource<At<StepSource>>>]) -> Vec<Session> {
        if let Some(one) = sessions.get(MOST_PARTS) {
            self.note_problem(one.line, format!("more than {MOST_PARTS} sessions"));
        }
        let mut all: Vec<Session> = Vec::new();
        for At {
            line,
            value: source,
        } in sessions.iter().take(MOST_PARTS)
        {
            let line = *line;
            self.check(line, name("the name of the session", &source.name));
            if let Some(other) = all.iter().find(|other| other.name == source.name) {
                let words = format!(
                    "a second session named {:?}, after the one in line {}",
                    source.name, other.line
                );
                self.note_problem(line, words);
            }
            let given = source.weight.as_ref();
            let weight = given.map_or(Some(1.0), |given| self.check(line, weight(given)));
            let steps = self.steps(&source.name, &source.steps, 0);
            all.push(Session {
                name: source.name.clone(),
                weight: weight.unwrap_or(1.0),
                steps,
                line,
            });
        }
        all
    }

    fn steps(&mut self, session: &str, steps: &[At<StepSource>], depth: usize) -> Vec<Step> {
        let mut all = Vec::new();
        for source in steps {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                if self.steps == MOST_STEPS + 1 {
                    self.note_problem(source.line, too_many_steps());
                }
                return all;
            }
            all.extend(self.step(session, source, depth));
        }
        all
    }

    fn step(&mut self, session: &str, source: &At<StepSource>, depth: usize) -> Option<Step> {
        let line = source.line;
        Some(match &source.value {
            StepSource::Request(request) => {
                let request = self.request(line, request)?;
                self.count_tag(session, &request);
                Step::Request(request)
            }
            StepSource::Wait(given) => {
                Step::Wait(Wait::Constant(self.check(line, time("wait", given))?))
            }
            StepSource::WaitExp(given) => {
                Step::Wait(Wait::Exponential(self.check(line, time("waitExp", given))?))
            }
            StepSource::WaitUniform(low, high) => {
                let low = self.check(line, time("waitUniform", low));
                let high = self.check(line, time("waitUniform", high));
                let (low, high) = (low?, high?);
                if low > high {
                    self.note_problem(line, "waitUniform: the first time is the longer one");
                }
                Step::Wait(Wait::Uniform(low, high))
            }
            StepSource::Times(times, steps) => {
                let times = self.check(line, whole("times", times, MOST_TIMES));
                let steps = self.repeated(session, line, steps, depth);
                let times = times?;
                let all = requests(&steps).and_then(|one| one.checked_mul(times));
                if all.is_some_and(|all| all > MOST_REQUESTS) {
                    let words = format!(
                        "times: a client would send more than {} requests; repeat less",
                        count(MOST_REQUESTS)
                    );
                    self.note_problem(line, words);
                }
                Step::Repeat {
                    times: Some(times),
                    steps,
                    line,
                }
            }
            StepSource::ForEver(steps) => {
                let steps = self.repeated(session, line, steps, depth);
                if requests(&steps) == Some(0) && self.problems.is_empty() {
                    self.note_problem(line, "forEver: the steps send no request");
                }
                Step::Repeat {
                    times: None,
                    steps,
                    line,
                }
            }
        })
    }

    fn repeated(
        &mut self,
        session: &str,
        line: usize,
        steps: &[At<StepSource>],
        depth: usize,
    ) -> Vec<Step> {
        if depth + 1 > DEEPEST {
            self.note_problem(
                line,
                format!("repetitions are nested {DEEPEST} deep at most"),
            );
            return Vec::new();
        }
        if steps.is_empty() {
            self.note_problem(line, "a repetition of no steps: it needs at least one");
        }
        self.steps(session, steps, depth + 1)
    }

    /// Limits the tags of all sessions.
    fn count_tag(&mut self, session: &str, request: &Request) {
        let tag = (session.to_owned(), request.tag.clone());
        if self.tags.insert(tag) && self.tags.len() == MOST_TAGS + 1 {
            let words = format!(
                "more than {MOST_TAGS} tags, and each gets separate figures; use one tag for related requests"
            );
            self.note_problem(request.line, words);
        }
    }

    fn request(&mut self, line: usize, source: &RequestSource) -> Option<Request> {
        let method = source.method.to_ascii_uppercase();
        if !METHODS.contains(&&*method) {
            let words = format!("unknown method {:?}: {}", source.method, METHODS.join(", "));
            self.note_problem(line, words);
        }
        for (name, value) in &source.headers {
            self.check(line, header(name, value));
        }
        if source.url.len() > LONGEST_URL {
            self.note_problem(line, format!("the URL is longer than {LONGEST_URL} bytes"));
        }
        if source.url.chars().any(char::is_control) {
            self.note_problem(line, "the URL has a control character");
        }
        if source.headers.len() > MOST_HEADERS {
            self.note_problem(line, format!("more than {MOST_HEADERS} header fields"));
        }
        if source.body.len() > LARGEST_BODY {
            self.note_problem(line, "the body is larger than 1 MiB");
        }
        let tag = match &source.tag {
            Some(tag) => tag.clone(),
            None => format!("{method} {}", path_of(&source.url)),
        };
        let tag = match source.tag {
            Some(_) => self.check(line, name("the tag", &tag).map(|()| tag))?,
            None => tag.chars().take(LONGEST_NAME).collect(),
        };
        Some(Request {
            method,
            url: source.url.clone(),
            tag,
            headers: source.headers.clone(),
            body: source.body.clone(),
            check: source
                .check
                .as_ref()
                .map(|check| self.response_check(line, &source.headers, check)),
            line,
        })
    }

    fn response_check(
        &mut self,
        line: usize,
        headers: &[(String, String)],
        source: &CheckSource,
    ) -> Check {
        let status = source.status.as_ref().map(|given| match given {
            Given::Number(number) => number.to_string(),
            Given::Text(text) => text.clone(),
        });
        if source.contains.as_deref() == Some("") {
            self.note_problem(line, "check: contains: every body has an empty text");
        }
        let compresses = |field: &(String, String)| field.0.eq_ignore_ascii_case("accept-encoding");
        let reads = source.contains.is_some() || !source.json.is_empty();
        if reads && headers.iter().any(compresses) {
            let words = "check: it reads the body, which the server may compress: leave out gzip and Accept-Encoding";
            self.note_problem(line, words);
        }
        let mut json = Vec::new();
        for (path, value) in &source.json {
            if value.is_null() || value.is_array() || value.is_object() {
                let words = format!("check: {path}: the value is a text, a number, true or false");
                self.note_problem(line, words);
            }
            json.extend(
                self.check(line, json_pointer(path))
                    .map(|pointer| JsonCheck {
                        path: path.clone(),
                        pointer,
                        // as TOML writes it: a whole number of 64 bits, or any number
                        value: match (value.as_i64(), value.as_f64()) {
                            (None, Some(number)) => number.into(),
                            _ => value.clone(),
                        },
                    }),
            );
        }
        if status.is_none() && source.contains.is_none() && source.json.is_empty() {
            self.note_problem(line, "check: of nothing: name status, contains or json");
        }
        Check {
            status,
            contains: source.contains.clone(),
            json,
        }
    }

    fn weights(&mut self, sessions: &mut [Session], weights: &[At<WeightSource>]) {
        for At {
            line,
            value: source,
        } in weights
        {
            let Some(weight) = self.check(*line, weight(&source.weight)) else {
                continue;
            };
            match sessions.iter_mut().find(|one| one.name == source.session) {
                Some(session) => session.weight = weight,
                // a session that was taken out may keep the weight 0
                None if weight == 0.0 => {}
                None => {
                    let named = sessions.iter().map(|one| &*one.name);
                    let meant = suggest::nearest(&source.session, named);
                    let meant =
                        meant.map_or(String::new(), |one| format!(": did you mean {one:?}?"));
                    let words = format!("no session is named {:?}{meant}", source.session);
                    self.note_problem(*line, words);
                }
            }
        }
    }

    /// What holds for the sessions together.
    fn check_sessions(&mut self, sessions: &[Session]) {
        if sessions.is_empty() {
            let words =
                "no session: write definition.session(\"name\", function (session) { ... })";
            return self.note_problem(0, words);
        }
        if sessions.iter().all(|one| one.weight == 0.0) {
            self.note_problem(sessions[0].line, "every session has the weight 0");
        }
        for session in sessions {
            match session.requests() {
                Some(0) => {
                    let words = format!("the session {:?} sends no request", session.name);
                    self.note_problem(session.line, words);
                }
                Some(all) if all > MOST_REQUESTS => {
                    let words = format!(
                        "a client of the session {:?} would send {} requests; {} is the most",
                        session.name,
                        count(all),
                        count(MOST_REQUESTS)
                    );
                    self.note_problem(session.line, words);
                }
                Some(_) | None => {}
            }
        }
    }
}

/// Checks targets and makes their requests. Where they have too many tags, none has one.
pub(crate) fn targets(sources: &[At<RequestSource>]) -> Result<Vec<Request>, Vec<Problem>> {
    let mut compiler = Compiler::default();
    if let Some(one) = sources.get(MOST_TARGETS) {
        let words = format!("more than {} targets", count(MOST_TARGETS as u64));
        compiler.note_problem(one.line, words);
    }
    let mut requests: Vec<Request> = Vec::new();
    for At { line, value } in sources.iter().take(MOST_TARGETS) {
        requests.extend(compiler.request(*line, value));
    }
    let tags: BTreeSet<&str> = requests.iter().map(|one| &*one.tag).collect();
    if tags.len() > MOST_TAGS {
        requests.iter_mut().for_each(|one| one.tag.clear());
    }
    match compiler.problems.is_empty() {
        true => Ok(requests),
        false => Err(compiler.problems),
    }
}

pub(crate) fn too_many_steps() -> String {
    format!(
        "more than {} steps: repeat steps with times(n, function (context) {{ ... }})",
        count(MOST_STEPS as u64)
    )
}

/// A path into JSON such as `$.items[0].id` as a JSON Pointer (RFC 6901). Of RFC 9535 it takes
/// names and indexes.
fn json_pointer(path: &str) -> Result<String, String> {
    let wrong = || format!("check: {path:?} is no path: write $.items[0].id, or $['a name']");
    let mut rest = path.strip_prefix('$').ok_or_else(wrong)?;
    let mut pointer = String::new();
    while !rest.is_empty() {
        let part;
        if let Some(quoted) = rest.strip_prefix("['") {
            (part, rest) = quoted.split_once("']").ok_or_else(wrong)?;
        } else if let Some(index) = rest.strip_prefix('[') {
            (part, rest) = index.split_once(']').ok_or_else(wrong)?;
            part.parse::<u32>().map_err(|_| wrong())?;
        } else {
            let name = rest.strip_prefix('.').ok_or_else(wrong)?;
            let is_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
            let end = name.find(|letter| !is_name(letter)).unwrap_or(name.len());
            (part, rest) = name.split_at(end);
            if part.is_empty() {
                return Err(wrong());
            }
        }
        pointer.push('/');
        pointer.push_str(&part.replace('~', "~0").replace('/', "~1"));
    }
    Ok(pointer)
}

/// A path without its query; that of a URL without its host.
fn path_of(url: &str) -> &str {
    let path = match url.split_once("://") {
        None => url,
        Some((_, rest)) => rest.find(['/', '?']).map_or("/", |at| &rest[at..]),
    };
    match path.split(['?', '#']).next() {
        None | Some("") => "/",
        Some(path) => path,
    }
}

fn name(what: &str, text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err(format!("{what} is empty"));
    }
    if text.chars().count() > LONGEST_NAME {
        return Err(format!("{what} is longer than {LONGEST_NAME} letters"));
    }
    match text.chars().any(char::is_control) {
        true => Err(format!("{what} has a control character")),
        false => Ok(()),
    }
}

/// A header field as in RFC 9110 section 5, of which we set no part ourselves.
fn header(name: &str, value: &str) -> Result<(), String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!("{name:?} is no name of a header field"));
    }
    if value
        .chars()
        .any(|letter| letter.is_control() && letter != '\t')
    {
        return Err(format!("the header field {name} has a control character"));
    }
    match name.to_ascii_lowercase().as_str() {
        "content-length" | "transfer-encoding" => {
            Err(format!("{name} follows from the body: leave it out"))
        }
        _ => Ok(()),
    }
}

fn time(what: &str, given: &Given) -> Result<Duration, String> {
    let wrong = |words: &dyn std::fmt::Display| format!("{what}: {words}");
    let time = match given {
        Given::Text(text) => duration::or_seconds(text).map_err(|error| wrong(&error))?,
        Given::Number(number) if *number >= 0.0 => Duration::try_from_secs_f64(*number)
            .map_err(|_| wrong(&format!("{number} s is too long")))?,
        Given::Number(number) => {
            return Err(wrong(&format!(
                "{number} is no time: write 0 or more seconds"
            )));
        }
    };
    if time > LONGEST {
        return Err(wrong(&"longer than a week"));
    }
    Ok(time)
}

fn rate_of(given: &Given) -> Result<f64, String> {
    match given {
        Given::Text(text) => rate::read(text),
        // only a number can have an exponent, so the decimal form of a number is parsed
        Given::Number(number) if *number > 0.0 && number.is_finite() => {
            rate::read(&format!("{number}"))
        }
        Given::Number(number) if *number == 0.0 => Err(rate::RateError::Zero),
        Given::Number(number) => Err(rate::RateError::Number(number.to_string())),
    }
    .map_err(|error| format!("rate: {error}"))
}

fn weight(given: &Given) -> Result<f64, String> {
    match given {
        Given::Number(number) if *number >= 0.0 && number.is_finite() => Ok(*number),
        Given::Number(number) => Err(format!("weight: {number} is no weight; write 0 or more")),
        Given::Text(text) => Err(format!("weight: {text:?} is no number")),
    }
}

/// A whole number from 1 to `most`.
fn whole(what: &str, given: &Given, most: u64) -> Result<u64, String> {
    match given {
        Given::Number(number) if *number >= 1.0 && number.fract() == 0.0 => {
            match *number <= most as f64 {
                true => Ok(*number as u64),
                false => Err(format!("{what}: {number} is more than {}", count(most))),
            }
        }
        Given::Number(number) => Err(format!(
            "{what}: {number} is no number of times; write 1 or more"
        )),
        Given::Text(text) => Err(format!("{what}: {text:?} is no whole number")),
    }
}
