//! TOML definitions, an alternative to JavaScript. Must not check values; `compile` does this for
//! both languages.

use crate::definition::{
    At, CheckSource, Definition, Given, PhaseSource, RequestSource, SessionSource, StepSource,
};
use crate::error::Problem;
use serde::Deserialize;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Source {
    target: Option<Spanned<String>>,
    user_agent: Option<Spanned<String>>,
    #[serde(default)]
    arrivals: Vec<Spanned<PhaseSource>>,
    #[serde(default, rename = "session")]
    sessions: Vec<Spanned<SessionSource<Spanned<StepTable>>>>,
}

/// A step: exactly one of its kinds is given.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct StepTable {
    get: Option<String>,
    head: Option<String>,
    post: Option<String>,
    put: Option<String>,
    patch: Option<String>,
    delete: Option<String>,
    options: Option<String>,
    tag: Option<String>,
    headers: Vec<String>,
    body: Option<String>,
    check: Option<CheckSource>,
    wait: Option<Given>,
    wait_exp: Option<Given>,
    wait_uniform: Option<(Given, Given)>,
    times: Option<Given>,
    for_ever: Option<bool>,
    steps: Option<Vec<Spanned<StepTable>>>,
}

/// Reads TOML.
pub(crate) fn read(text: &str) -> Result<Definition, Vec<Problem>> {
    let lines = Lines(text);
    let source: Source = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(0, |span| lines.of(span.start));
        let words = intact_units::suggest::of_unknown_field(error.message());
        vec![Problem::new(line, words)]
    })?;
    let mut reader = StepReader {
        lines,
        problems: Vec::new(),
    };
    let mut definition = Definition {
        targets: source.target.map(|one| lines.at(one)).into_iter().collect(),
        user_agent: source.user_agent.map(|one| lines.at(one)),
        phases: source
            .arrivals
            .into_iter()
            .map(|one| lines.at(one))
            .collect(),
        ..Definition::default()
    };
    for one in source.sessions {
        let At { line, value } = lines.at(one);
        let value = SessionSource {
            name: value.name,
            weight: value.weight,
            steps: reader.steps(value.steps),
        };
        definition.sessions.push(At { line, value });
    }
    match reader.problems.is_empty() {
        true => Ok(definition),
        false => Err(reader.problems),
    }
}

/// Finds lines of byte offsets.
#[derive(Clone, Copy)]
struct Lines<'a>(&'a str);

impl Lines<'_> {
    fn of(self, offset: usize) -> usize {
        let before = self.0.bytes().take(offset.min(self.0.len()));
        before.filter(|byte| *byte == b'\n').count() + 1
    }

    fn at<T>(self, one: Spanned<T>) -> At<T> {
        At {
            line: self.of(one.span().start),
            value: one.into_inner(),
        }
    }
}

struct StepReader<'a> {
    lines: Lines<'a>,
    problems: Vec<Problem>,
}

impl StepReader<'_> {
    fn steps(&mut self, steps: Vec<Spanned<StepTable>>) -> Vec<At<StepSource>> {
        let mut all = Vec::new();
        for step in steps {
            let At { line, value } = self.lines.at(step);
            match self.step(value) {
                Ok(value) => all.push(At { line, value }),
                Err(words) => self.problems.push(Problem::new(line, words)),
            }
        }
        all
    }

    fn step(&mut self, mut table: StepTable) -> Result<StepSource, String> {
        let requests = [
            ("GET", table.get.take()),
            ("HEAD", table.head.take()),
            ("POST", table.post.take()),
            ("PUT", table.put.take()),
            ("PATCH", table.patch.take()),
            ("DELETE", table.delete.take()),
            ("OPTIONS", table.options.take()),
        ];
        let mut kinds: Vec<StepSource> = Vec::new();
        for (method, url) in requests {
            let Some(url) = url else { continue };
            kinds.push(StepSource::Request(RequestSource {
                method: method.to_owned(),
                url,
                tag: table.tag.take(),
                headers: table
                    .headers
                    .drain(..)
                    .map(|field| split(&field))
                    .collect::<Result<_, String>>()?,
                body: table.body.take().unwrap_or_default().into_bytes(),
                check: table.check.take(),
            }));
        }
        kinds.extend(table.wait.map(StepSource::Wait));
        kinds.extend(table.wait_exp.map(StepSource::WaitExp));
        kinds.extend(
            table
                .wait_uniform
                .map(|(low, high)| StepSource::WaitUniform(low, high)),
        );
        let has_inner = table.steps.is_some();
        let inner = self.steps(table.steps.unwrap_or_default());
        match (table.times, table.for_ever) {
            (None, None | Some(false)) if has_inner => {
                return Err("steps: how often? add times = 10, or for-ever = true".to_owned());
            }
            (None, None | Some(false)) => {}
            (Some(times), None | Some(false)) => kinds.push(StepSource::Times(times, inner)),
            (None, Some(true)) => kinds.push(StepSource::ForEver(inner)),
            (Some(_), Some(true)) => return Err("both times and for-ever: choose one".to_owned()),
        }
        let of_requests = table.tag.is_some()
            || table.body.is_some()
            || table.check.is_some()
            || !table.headers.is_empty();
        match (kinds.pop(), kinds.is_empty(), of_requests) {
            (Some(kind), true, false) => Ok(kind),
            (Some(_), true, true) => {
                Err("tag, headers, body and check belong to a request: get = \"/path\"".to_owned())
            }
            (Some(_), false, _) => Err("a step does one thing: make two steps of it".to_owned()),
            (None, ..) => Err(
                "an empty step: write get = \"/path\", wait = 1 or times = 10 with steps"
                    .to_owned(),
            ),
        }
    }
}

/// Name and value of a field, as `-H` takes it.
fn split(field: &str) -> Result<(String, String), String> {
    let (name, value) = field
        .split_once(':')
        .ok_or_else(|| format!("headers: {field:?} is not \"Name: value\""))?;
    Ok((name.to_owned(), value.trim().to_owned()))
}
