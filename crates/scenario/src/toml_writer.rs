//! A plan as TOML: what `--dry-run` prints, and a definition like any other.

use crate::plan::{Check, Phase, Plan, Request, Session, Step, Wait};
use std::fmt::Write;
use std::time::Duration;

/// Writes the plan.
pub(crate) fn write(plan: &Plan) -> String {
    let mut text = String::new();
    if let Some(target) = &plan.target {
        line(&mut text, format_args!("target = {}", quoted(&target.url)));
    }
    if let Some(agent) = &plan.user_agent {
        line(&mut text, format_args!("user-agent = {}", quoted(agent)));
    }
    for phase in &plan.phases {
        write_phase(&mut text, phase);
    }
    for session in &plan.sessions {
        write_session(&mut text, session);
    }
    text
}

/// A line; a string takes every text.
fn line(text: &mut String, words: std::fmt::Arguments<'_>) {
    let _ = writeln!(text, "{words}");
}

fn write_phase(text: &mut String, phase: &Phase) {
    line(text, format_args!("\n[[arrivals]]"));
    line(text, format_args!("duration = {}", number(phase.duration)));
    line(text, format_args!("rate = {:?}", phase.rate));
    if let Some(most) = phase.max_clients {
        line(text, format_args!("max-clients = {most}"));
    }
    if let Some(name) = &phase.name {
        line(text, format_args!("name = {}", quoted(name)));
    }
}

fn write_session(text: &mut String, session: &Session) {
    line(text, format_args!("\n[[session]]"));
    line(text, format_args!("name = {}", quoted(&session.name)));
    line(text, format_args!("weight = {:?}", session.weight));
    line(text, format_args!("steps = ["));
    write_steps(text, &session.steps, 1);
    line(text, format_args!("]"));
}

fn write_steps(text: &mut String, steps: &[Step], depth: usize) {
    let indent = "  ".repeat(depth);
    for step in steps {
        match step {
            Step::Request(request) => line(text, format_args!("{indent}{},", table(request))),
            Step::Wait(wait) => line(text, format_args!("{indent}{{ {} }},", waiting(*wait))),
            Step::Repeat { times, steps, .. } => {
                let how_often = match times {
                    Some(times) => format!("times = {times}"),
                    None => "for-ever = true".to_owned(),
                };
                line(text, format_args!("{indent}{{ {how_often}, steps = ["));
                write_steps(text, steps, depth + 1);
                line(text, format_args!("{indent}] }},"));
            }
        }
    }
}

fn table(request: &Request) -> String {
    let key = request.method.to_ascii_lowercase();
    let mut words = format!("{{ {key} = {}", quoted(&request.url));
    let _ = write!(words, ", tag = {}", quoted(&request.tag));
    if !request.headers.is_empty() {
        let fields = request.headers.iter();
        let fields: Vec<String> = fields
            .map(|(name, value)| quoted(&format!("{name}: {value}")))
            .collect();
        let _ = write!(words, ", headers = [{}]", fields.join(", "));
    }
    if !request.body.is_empty() {
        let body = String::from_utf8_lossy(&request.body);
        let _ = write!(words, ", body = {}", quoted(&body));
    }
    if let Some(check) = &request.check {
        let _ = write!(words, ", check = {}", check_table(check));
    }
    words + " }"
}

fn check_table(check: &Check) -> String {
    let text = |key: &str, text: &str| format!("{key} = {}", quoted(text));
    let status = check.status.iter().map(|status| text("status", status));
    let contains = check.contains.iter();
    let contains = contains.map(|part| text("contains", part));
    let values = check.json.iter();
    let values = values.map(|one| format!("{} = {}", quoted(&one.path), scalar(&one.value)));
    let values = values.collect::<Vec<String>>().join(", ");
    let json = (!values.is_empty()).then(|| format!("json = {{ {values} }}"));
    let parts = status.chain(contains).chain(json);
    format!("{{ {} }}", parts.collect::<Vec<String>>().join(", "))
}

/// A text, a number or a truth value.
fn scalar(value: &serde_json::Value) -> String {
    match value.as_str() {
        Some(text) => quoted(text),
        None => value.to_string(),
    }
}

fn waiting(wait: Wait) -> String {
    match wait {
        Wait::Constant(time) => format!("wait = {}", number(time)),
        Wait::Exponential(mean) => format!("wait-exp = {}", number(mean)),
        Wait::Uniform(low, high) => {
            format!("wait-uniform = [{}, {}]", number(low), number(high))
        }
    }
}

/// Seconds, as a number that TOML and Rust read alike.
fn number(time: Duration) -> String {
    format!("{:?}", time.as_secs_f64())
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
