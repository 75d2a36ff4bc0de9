//! Parses the file of a plan. Errors name the file, the line and the nearest key.

use super::{Kind, Limits, Plan, Target, id_of};
use crate::message::FORMAT;
use intact_experiment::{Axes, AxisValue, NameLookup, TlsChoice};
use intact_ledger::{Protocol, UnknownKind, Variant};
use intact_units::duration::with_unit;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

/// Limit of variants; more are an error in the plan.
const MOST_VARIANTS: usize = 1_000;
/// Limit of messages; a queue cannot take more in reasonable time.
const MOST_MESSAGES: u64 = 1_000_000;

/// Shortest duration of a message; `LONGEST` is the longest of a repetition.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);
/// Requests per second that a plan may ask for. A worker's share of the smallest rate is still a
/// valid interval.
const RATES: RangeInclusive<f64> = 1e-5..=1e9;

/// Why a plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file is not TOML, or has an unknown key or value.
    #[error("{file}:{line}: {words}")]
    Source {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The problem, with the nearest key.
        words: String,
    },
    /// The values contradict each other or exceed a limit.
    #[error("{file}: {key}: {words}")]
    Value {
        /// The file.
        file: String,
        /// The key.
        key: String,
        /// The problem and the remedy.
        words: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Source {
    name: String,
    repetitions: u32,
    duration: String,
    slice: Option<String>,
    #[serde(default)]
    labels: Vec<String>,
    limits: Limits,
    #[serde(rename = "target")]
    targets: Vec<Target>,
    axes: Option<SourceAxes>,
}

/// Values by axis: texts, numbers and booleans.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SourceAxes {
    http: Vec<Word>,
    tls: Vec<Word>,
    keepalive: Vec<Word>,
    resume: Vec<Word>,
    dns: Vec<Word>,
    c: Vec<Word>,
    streams: Vec<Word>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Word {
    Text(String),
    Whole(u32),
    Number(f64),
    Switch(bool),
}

impl Word {
    fn text(&self) -> String {
        match self {
            Word::Text(text) => text.clone(),
            Word::Whole(number) => number.to_string(),
            Word::Number(number) => format!("{number:?}"),
            Word::Switch(true) => "on".to_owned(),
            Word::Switch(false) => "off".to_owned(),
        }
    }
}

/// Parses a plan. `file` is used in errors only.
pub fn parse(file: &Path, text: &str) -> Result<Plan, PlanError> {
    let file = file.display().to_string();
    let mut source: Source = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        PlanError::Source {
            file: file.clone(),
            line: text.bytes().take(at).filter(|b| *b == b'\n').count() + 1,
            words: intact_units::suggest::of_unknown_field(error.message()),
        }
    })?;
    let wrong = |key: &str, words: &str| PlanError::Value {
        file: file.clone(),
        key: key.to_owned(),
        words: words.to_owned(),
    };
    if !is_plain(&source.name) {
        return Err(wrong("name", NAMES));
    }
    let (duration, limit) = times(&source, &wrong)?;
    let slice = limit.unwrap_or(duration);
    if source.labels.is_empty() {
        source.labels.push("here".to_owned());
    }
    check_names(&source, &wrong)?;
    check_limits(&source, &wrong)?;
    let (variants, varied) = planned_variants(&source, &wrong)?;
    let slices = duration.as_nanos().div_ceil(slice.as_nanos());
    let plan = Plan {
        format: FORMAT,
        id: id_of(&source.name, text),
        name: source.name,
        targets: source.targets,
        labels: source.labels,
        variants,
        varied,
        repetitions: source.repetitions,
        slices: u32::try_from(slices)
            .map_err(|_| wrong("slice", "far too short for `duration`"))?,
        slice_ms: slice.as_millis() as u64,
        limits: source.limits,
    };
    check_size(&plan, limit, &wrong)?;
    Ok(plan)
}

/// Makes the error for a key.
type Wrong<'a> = dyn Fn(&str, &str) -> PlanError + 'a;

const NAMES: &str = "letters, digits, `-` and `_`, at most 64: it becomes part of keys";

/// Whether a name can be part of a key in the store.
pub(crate) fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    !text.is_empty() && text.len() <= 64 && text.chars().all(is_plain)
}

/// The duration, and the slice if the plan has one.
fn times(source: &Source, wrong: &Wrong<'_>) -> Result<(Duration, Option<Duration>), PlanError> {
    let time =
        |key: &str, text: &str| with_unit(text).map_err(|error| wrong(key, &error.to_string()));
    let duration = time("duration", &source.duration)?;
    let limit = source.slice.as_deref().map(|text| time("slice", text));
    let limit = limit.transpose()?;
    let slice = limit.unwrap_or(duration);
    if duration > LONGEST {
        return Err(wrong("duration", "at most 366 days"));
    }
    if slice < SHORTEST || slice > duration {
        return Err(wrong(
            "slice",
            "at least 1 ms, and not longer than `duration`",
        ));
    }
    Ok((duration, limit))
}

/// Checks labels and targets.
fn check_names(source: &Source, wrong: &Wrong<'_>) -> Result<(), PlanError> {
    unique("labels", source.labels.iter().map(String::as_str), wrong)?;
    if !source.labels.iter().all(|label| is_plain(label)) {
        return Err(wrong("labels", NAMES));
    }
    if source.targets.is_empty() {
        return Err(wrong("target", "name at least one, as [[target]]"));
    }
    let names = source.targets.iter().map(|target| target.name.as_str());
    unique("target.name", names, wrong)?;
    for target in &source.targets {
        if !is_plain(&target.name) {
            return Err(wrong("target.name", NAMES));
        }
        target
            .may_be_sent_to()
            .map_err(|words| wrong(&format!("target {}", target.name), &words))?;
    }
    Ok(())
}

fn check_limits(source: &Source, wrong: &Wrong<'_>) -> Result<(), PlanError> {
    let limits = &source.limits;
    for (key, is_fine) in [
        ("limits.requests", limits.requests > 0),
        ("limits.rate", RATES.contains(&limits.rate)),
        ("limits.workers", (1..=10_000).contains(&limits.workers)),
        ("limits.deliveries", (1..=100).contains(&limits.deliveries)),
        ("repetitions", source.repetitions > 0),
    ] {
        if !is_fine {
            return Err(wrong(key, "above zero, and not absurdly large"));
        }
    }
    Ok(())
}

/// The variants of the benches, and the axes with more than one value.
fn planned_variants(
    source: &Source,
    wrong: &Wrong<'_>,
) -> Result<(Vec<Variant>, Vec<String>), PlanError> {
    let benched = || {
        let targets = source.targets.iter();
        targets.filter(|target| target.measure == Kind::Bench)
    };
    if benched().next().is_none() && source.axes.is_some() {
        return Err(wrong(
            "axes",
            "no target is benched: a check tries the variants itself",
        ));
    }
    let none = SourceAxes::default();
    let axes = source.axes.as_ref().unwrap_or(&none);
    let tls = default_tls(benched());
    if axes.tls.is_empty() && tls.is_none() {
        return Err(wrong(
            "axes.tls",
            "some targets are http and some https: say which TLS to use",
        ));
    }
    let tls = tls.unwrap_or(TlsChoice::Any);
    variants(axes, tls).map_err(|words| wrong("axes", &words))
}

/// Checks the number of messages, and that each target gets enough requests and time.
fn check_size(plan: &Plan, limit: Option<Duration>, wrong: &Wrong<'_>) -> Result<(), PlanError> {
    if plan.len() > MOST_MESSAGES {
        return Err(wrong(
            "repetitions",
            &format!(
                "{} messages are more than {MOST_MESSAGES}: fewer repetitions or longer slices",
                plan.len()
            ),
        ));
    }
    for target in &plan.targets {
        if plan.requests_per_delivery(target) < 3 {
            return Err(wrong(
                "limits.requests",
                &format!(
                    "{} requests are fewer than 3 for each of {} deliveries to {}; raise the limit or plan fewer repetitions",
                    plan.limits.requests,
                    plan.len_of(target) * u64::from(plan.limits.deliveries),
                    target.name
                ),
            ));
        }
        plan.has_room_for(target, limit)
            .map_err(|(key, words)| wrong(key, &words))?;
    }
    Ok(())
}

fn unique<'a>(
    key: &str,
    words: impl Iterator<Item = &'a str>,
    wrong: &Wrong<'_>,
) -> Result<(), PlanError> {
    let mut seen = BTreeSet::new();
    for word in words {
        if !seen.insert(word) {
            return Err(wrong(key, &format!("{word:?} is named twice")));
        }
    }
    Ok(())
}

/// The TLS that all URLs imply.
fn default_tls<'a>(targets: impl Iterator<Item = &'a Target>) -> Option<TlsChoice> {
    let (secure, plain): (Vec<_>, Vec<_>) =
        targets.partition(|target| target.url.to_ascii_lowercase().starts_with("https:"));
    match (secure.is_empty(), plain.is_empty()) {
        (true, _) => Some(TlsChoice::None),
        (false, true) => Some(TlsChoice::Any),
        (false, false) => None,
    }
}

/// The variants with the names that a bench gives them, and the axes with more than one value.
fn variants(source: &SourceAxes, tls: TlsChoice) -> Result<(Vec<Variant>, Vec<String>), String> {
    let axes = Axes {
        keepalive: values("keepalive", &source.keepalive, true, choice)?,
        http: values("http", &source.http, Protocol::Http11, choice)?,
        tls: values("tls", &source.tls, tls, choice)?,
        resume: values("resume", &source.resume, false, choice)?,
        dns: values("dns", &source.dns, NameLookup::System, |text| {
            let known = text.parse();
            known.map_err(|unknown: UnknownKind| format!("{text:?}: {unknown}"))
        })?,
        concurrency: values("c", &source.c, 1, count)?,
        streams: values("streams", &source.streams, 1, count)?,
        ..Axes::default()
    };
    if axes.product() > MOST_VARIANTS {
        return Err(format!("more than {MOST_VARIANTS} variants"));
    }
    if axes.http.contains(&Protocol::Http3) {
        if !intact_client::HAS_HTTP3 {
            return Err("http = 3: this build was made without it; cargo build --release --features fleet,http3 has it".to_owned());
        }
        if !axes.choices().iter().any(|one| one.http == Protocol::Http3) {
            return Err("http = 3 contains TLS 1.3: use https URLs, or tls = \"1.3\"".to_owned());
        }
    }
    let varied = axes.varied();
    let variants = intact_experiment::variants(&axes.choices(), &varied, axes.variation);
    Ok((variants, varied))
}

/// The values of an axis, or its default.
fn values<T>(
    axis: &str,
    words: &[Word],
    default: T,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    if words.is_empty() {
        return Ok(vec![default]);
    }
    let words = words.iter().map(Word::text);
    let values = words.map(|text| read(&text).map_err(|error| format!("{axis} = {error}")));
    values.collect()
}

/// A value of an axis whose words can be listed.
fn choice<T: AxisValue>(text: &str) -> Result<T, String> {
    let value = T::read(text).ok().filter(|_| T::CHOICES.contains(&text));
    value.ok_or_else(|| format!("{text:?}: one of {}", T::CHOICES.join(", ")))
}

fn count(text: &str) -> Result<u32, String> {
    let number = text
        .parse()
        .map_err(|_| format!("{text:?}: a whole number"))?;
    if (1..=10_000).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number}: from 1 to 10000"))
    }
}
