//! Runs one client program for the harness. The protocol is in clients/README.md.
#![allow(dead_code)]

use std::io::Write;

/// The outcome of one request: a status, or the text of the error.
pub type Outcome = Result<u16, String>;

/// How long a program that limits idle connections keeps them, in milliseconds.
pub fn idle_ms() -> u64 {
    std::env::var("INTACT_IDLE_MS").ok().and_then(|text| text.parse().ok()).unwrap_or(4000)
}

/// How long a program that limits its wait for a response waits, in milliseconds.
pub fn timeout_ms() -> u64 {
    std::env::var("INTACT_TIMEOUT_MS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000)
}

/// The certificate to trust, if the harness gave one.
pub fn ca() -> Option<Vec<u8>> {
    std::fs::read(std::env::var_os("INTACT_CA")?).ok()
}

/// One step as the harness asks for it.
pub struct Step {
    pub count: usize,
    pub at_once: bool,
    pub post: bool,
    pub read: bool,
    pub url: String,
}

/// Says that the program is ready.
pub fn ready(versions: &[(&str, &str)], can: &[&str]) {
    let versions: Vec<String> = versions.iter().map(|(name, version)| format!("{name:?}:{version:?}")).collect();
    say(&format!("{{\"versions\":{{{}}},\"can\":{can:?}}}", versions.join(",")));
}

/// The next step; `None` when there are no more.
pub fn next() -> Option<Step> {
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line).ok()? == 0 {
        return None;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let [count, order, method, body, url] = words[..] else { return None };
    Some(Step {
        count: count.parse().ok()?,
        at_once: order == "at-once",
        post: method == "POST",
        read: body == "read",
        url: url.to_owned(),
    })
}

/// Answers a step.
pub fn answer(outcomes: &[Outcome]) {
    let words: Vec<String> = outcomes
        .iter()
        .map(|outcome| match outcome {
            Ok(status) => status.to_string(),
            Err(error) => format!("{error:?}"),
        })
        .collect();
    say(&format!("[{}]", words.join(",")));
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}
