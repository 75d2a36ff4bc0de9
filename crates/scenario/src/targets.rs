//! Files of targets, as other load generators read them: the text and the JSON of vegeta, and the
//! list of URLs of h2load. Must not check values; `compile` does this as for a scenario.

use crate::definition::{At, RequestSource};
use crate::error::Problem;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;

/// Reads the file that a target names as its body.
pub type ReadBody<'a> = &'a dyn Fn(&str) -> io::Result<Vec<u8>>;

/// A target in a line of JSON (`vegeta attack -format=json`).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonTarget {
    method: String,
    url: String,
    /// Base64.
    #[serde(default)]
    body: String,
    #[serde(default, alias = "headers")]
    header: BTreeMap<String, Vec<String>>,
}

/// The lines that are no comment, with their numbers.
type Lines<'a> = std::iter::Peekable<std::vec::IntoIter<(usize, &'a str)>>;

/// The requests of a file; its first line shows the form.
pub(crate) fn read(text: &str, body: ReadBody<'_>) -> Result<Vec<At<RequestSource>>, Vec<Problem>> {
    let lines = text.lines().enumerate();
    let lines = lines.map(|(nth, line)| (nth + 1, line.trim()));
    let lines: Vec<_> = lines.filter(|(_, line)| !line.starts_with('#')).collect();
    let has_text = |one: &(usize, &str)| !one.1.is_empty();
    let first = lines
        .iter()
        .copied()
        .find(has_text)
        .map_or("", |(_, line)| line);
    let each = |of: fn(&str) -> Result<RequestSource, String>| {
        let lines = lines.iter().copied().filter(has_text);
        lines.map(|(line, text)| at(line, of(text))).collect()
    };
    let all: Vec<Result<At<RequestSource>, Problem>> = if first.starts_with('{') {
        each(json_target)
    } else if starts_target(first) {
        text_targets(lines.into_iter().peekable(), body)
    } else {
        each(|url| target("GET", url))
    };
    let (mut targets, mut problems) = (Vec::new(), Vec::new());
    for one in all {
        match one {
            Ok(target) => targets.push(target),
            Err(problem) => problems.push(problem),
        }
    }
    match (problems.is_empty(), targets.is_empty()) {
        (false, _) => Err(problems),
        (true, true) => Err(vec![Problem::new(
            0,
            "no target: write GET http://host/path",
        )]),
        (true, false) => Ok(targets),
    }
}

fn at<T>(line: usize, value: Result<T, String>) -> Result<At<T>, Problem> {
    value
        .map(|value| At { line, value })
        .map_err(|words| Problem::new(line, words))
}

fn target(method: &str, url: &str) -> Result<RequestSource, String> {
    if url.is_empty() || url.contains(char::is_whitespace) {
        return Err(format!(
            "{url:?} is no URL: write GET http://host/path, or a URL alone"
        ));
    }
    Ok(RequestSource {
        method: method.to_owned(),
        url: url.to_owned(),
        ..RequestSource::default()
    })
}

fn json_target(line: &str) -> Result<RequestSource, String> {
    let json: JsonTarget = serde_json::from_str(line).map_err(|error| {
        // its own line is always the first
        let words = error.to_string();
        let words = words.split(" at line ").next().unwrap_or_default();
        intact_units::suggest::of_unknown_field(words)
    })?;
    let body = STANDARD.decode(&json.body);
    let values = json.header.into_iter();
    Ok(RequestSource {
        body: body.map_err(|error| format!("body: no base64: {error}"))?,
        headers: values
            .flat_map(|(name, values)| values.into_iter().map(move |one| (name.clone(), one)))
            .collect(),
        ..target(&json.method, &json.url)?
    })
}

/// Whether a line is a method and a URL.
fn starts_target(line: &str) -> bool {
    let method = line.split_whitespace().next().unwrap_or_default();
    method.len() < line.len() && method.bytes().all(|letter| letter.is_ascii_uppercase())
}

/// Targets of a method and a URL, header fields and `@FILE` with the body in the lines below.
fn text_targets(
    mut lines: Lines<'_>,
    body: ReadBody<'_>,
) -> Vec<Result<At<RequestSource>, Problem>> {
    let mut all = Vec::new();
    while let Some((line, text)) = lines.next() {
        let Some((method, url)) = text.split_once(char::is_whitespace) else {
            if !text.is_empty() {
                let words = format!("{text:?} is no target: write GET http://host/path");
                all.push(Err(Problem::new(line, words)));
            }
            continue;
        };
        let mut one = at(line, target(method, url.trim()));
        let is_part = |(_, text): &(usize, &str)| !text.is_empty() && !starts_target(text);
        while let Some((line, text)) = lines.next_if(is_part) {
            let Ok(At { value, .. }) = &mut one else {
                continue;
            };
            let added = match (text.strip_prefix('@'), text.split_once(':')) {
                (Some(file), _) => body(file)
                    .map(|bytes| value.body = bytes)
                    .map_err(|error| format!("@{file}: {error}")),
                (None, Some((name, text))) => {
                    value
                        .headers
                        .push((name.trim().to_owned(), text.trim().to_owned()));
                    Ok(())
                }
                (None, None) => Err(format!("{text:?} is no \"Name: value\" and no @FILE")),
            };
            if let Err(words) = added {
                one = Err(Problem::new(line, words));
            }
        }
        all.push(one);
    }
    all
}
