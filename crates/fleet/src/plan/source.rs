//! The plan's file: what may stand in it, and errors that name file, line and the nearest key.

use super::{Kind, Limits, Plan, Target, Variant, id_of};
use crate::message::FORMAT;
use intact_units::duration::with_unit;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// The axes that a plan may vary, with their defaults, in the order of the variants' product. That of `tls` is as the URLs say.
const AXES: [(&str, &str); 6] = [
    ("http", "1.1"),
    ("tls", "any"),
    ("keepalive", "on"),
    ("resume", "off"),
    ("c", "1"),
    ("streams", "1"),
];
/// More variants than this are a slip of the pen.
const MOST_VARIANTS: usize = 1_000;
/// More messages than this do not fit into a queue in reasonable time.
const MOST_MESSAGES: u64 = 1_000_000;

/// Why a plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file is not TOML, or has a key or a value that means nothing.
    #[error("{file}:{line}: {words}")]
    Source {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong, with the nearest key.
        words: String,
    },
    /// The plan as a whole makes no sense.
    #[error("{file}: {key}: {words}")]
    Value {
        /// The file.
        file: String,
        /// The key.
        key: String,
        /// What is wrong and what would do.
        words: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Source {
    name: String,
    repetitions: u32,
    duration: String,
    #[serde(default)]
    slice: Option<String>,
    #[serde(default)]
    labels: Vec<String>,
    limits: Limits,
    #[serde(rename = "target")]
    targets: Vec<Target>,
    #[serde(default)]
    axes: Option<SourceAxes>,
}

/// Values by axis: texts, numbers and switches.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceAxes {
    #[serde(default)]
    http: Vec<Word>,
    #[serde(default)]
    tls: Vec<Word>,
    #[serde(default)]
    keepalive: Vec<Word>,
    #[serde(default)]
    resume: Vec<Word>,
    #[serde(default)]
    c: Vec<Word>,
    #[serde(default)]
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

/// Reads a plan. `file` is only named in errors.
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

/// Makes the error on a key.
type Wrong<'a> = dyn Fn(&str, &str) -> PlanError + 'a;

const NAMES: &str = "letters, digits, `-` and `_`, at most 64: it becomes part of keys";

/// Whether a name can be part of a key.
fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    !text.is_empty() && text.len() <= 64 && text.chars().all(is_plain)
}

/// The duration, and the slice if it is given.
fn times(source: &Source, wrong: &Wrong<'_>) -> Result<(Duration, Option<Duration>), PlanError> {
    let time =
        |key: &str, text: &str| with_unit(text).map_err(|error| wrong(key, &error.to_string()));
    let duration = time("duration", &source.duration)?;
    let limit = source.slice.as_deref().map(|text| time("slice", text));
    let limit = limit.transpose()?;
    let slice = limit.unwrap_or(duration);
    if duration.is_zero() || slice.is_zero() || slice > duration {
        return Err(wrong("slice", "above zero, and not longer than `duration`"));
    }
    Ok((duration, limit))
}

/// Labels and targets.
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
        acknowledged(target).map_err(|words| wrong(&format!("target {}", target.name), &words))?;
    }
    Ok(())
}

fn check_limits(source: &Source, wrong: &Wrong<'_>) -> Result<(), PlanError> {
    let limits = &source.limits;
    for (key, is_fine) in [
        ("limits.requests", limits.requests > 0),
        ("limits.rate", limits.rate.is_finite() && limits.rate > 0.0),
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

/// The variants of the benches, and the axes that vary.
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
    let tls = default_tls(benched())
        .filter(|_| axes.tls.is_empty())
        .unwrap_or("any");
    if axes.tls.is_empty() && default_tls(benched()).is_none() {
        return Err(wrong(
            "axes.tls",
            "some targets are http and some https: say which TLS to use",
        ));
    }
    variants(axes, tls).map_err(|words| wrong("axes", &words))
}

/// Whether the messages are few enough, and each target gets enough requests and time.
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
                    "{} requests do not give 3 to each of {} deliveries to {}: raise it, or plan fewer repetitions",
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

/// Whether a target names its own host as acknowledged.
pub(crate) fn acknowledged(target: &Target) -> Result<(), String> {
    let url = url::Url::parse(&target.url).map_err(|error| format!("url: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("url: the scheme has to be http or https".to_owned());
    }
    let host = url.host_str().unwrap_or_default();
    if host.eq_ignore_ascii_case(&target.i_own_this) {
        return Ok(());
    }
    Err(format!(
        "i-own-this: has to repeat the host, {host:?}, to say that load on it is allowed; it says {:?}",
        target.i_own_this
    ))
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

/// The TLS that all URLs ask for.
fn default_tls<'a>(targets: impl Iterator<Item = &'a Target>) -> Option<&'static str> {
    let (secure, plain): (Vec<_>, Vec<_>) =
        targets.partition(|target| target.url.to_ascii_lowercase().starts_with("https:"));
    match (secure.is_empty(), plain.is_empty()) {
        (true, _) => Some("none"),
        (false, true) => Some("any"),
        (false, false) => None,
    }
}

/// The product of the axes.
fn variants(source: &SourceAxes, tls: &str) -> Result<(Vec<Variant>, Vec<String>), String> {
    let given = [
        &source.http,
        &source.tls,
        &source.keepalive,
        &source.resume,
        &source.c,
        &source.streams,
    ];
    let mut products: Vec<BTreeMap<String, String>> = vec![BTreeMap::new()];
    let mut varied = Vec::new();
    for ((axis, default), words) in AXES.iter().zip(given) {
        let mut values: Vec<String> = words.iter().map(Word::text).collect();
        if values.is_empty() {
            values.push(if *axis == "tls" { tls } else { *default }.to_owned());
        }
        for value in &values {
            fits(axis, value)?;
        }
        if values.len() > 1 {
            varied.push((*axis).to_owned());
        }
        products = products
            .into_iter()
            .flat_map(|product| {
                values.iter().map(move |value| {
                    let mut product = product.clone();
                    product.insert((*axis).to_owned(), value.clone());
                    product
                })
            })
            .collect();
        if products.len() > MOST_VARIANTS {
            return Err(format!("more than {MOST_VARIANTS} variants"));
        }
    }
    let variants = products
        .into_iter()
        .map(|axes| {
            let words: Vec<String> = varied
                .iter()
                .map(|axis| format!("{axis}={}", axes[axis]))
                .collect();
            let name = if words.is_empty() {
                format!("keepalive={}", axes["keepalive"])
            } else {
                words.join(" ")
            };
            Variant { name, axes }
        })
        .collect();
    Ok((variants, varied))
}

/// Whether a value may stand on an axis.
fn fits(axis: &str, value: &str) -> Result<(), String> {
    let allowed: &[&str] = match axis {
        "http" => &["1.0", "1.1", "2"],
        "tls" => &["none", "any", "1.2", "1.3"],
        "keepalive" | "resume" => &["on", "off"],
        _ => {
            let number: u32 = value
                .parse()
                .map_err(|_| format!("{axis} = {value:?}: a whole number"))?;
            return if (1..=10_000).contains(&number) {
                Ok(())
            } else {
                Err(format!("{axis} = {number}: from 1 to 10000"))
            };
        }
    };
    if allowed.contains(&value) {
        Ok(())
    } else {
        Err(format!("{axis} = {value:?}: one of {}", allowed.join(", ")))
    }
}
