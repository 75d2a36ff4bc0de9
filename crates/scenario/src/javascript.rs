//! JavaScript definitions: the only user of the engine (QuickJS, by `rquickjs`).
//!
//! The engine has only the language: no files, no network, no modules, no timers. Memory, stack and
//! time are bounded. A prelude records the calls of the definition as JSON, which becomes a
//! [`Definition`].

use crate::compile::{DEEPEST, MOST_STEPS, too_many_steps};
use crate::definition::Definition;
use crate::error::Problem;
use rquickjs::context::EvalOptions;
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Function, Object, Runtime, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// The memory of the engine.
const MEMORY: usize = 64 << 20;
/// The stack of the engine; the stack of its thread is several times larger.
const STACK: usize = 512 << 10;
/// The stack of the thread.
const THREAD_STACK: usize = 4 << 20;
/// The name of the definition in the engine's stack traces; the prelude looks for it, too.
const SCRIPT: &str = "intact-scenario";
/// The most notes of one kind.
const MOST_NOTES: usize = 100;
/// How long the engine may take to stop.
const GRACE: Duration = Duration::from_millis(500);

/// Evaluates a definition once, for `limit` at most.
pub(crate) fn evaluate(text: &str, limit: Duration) -> Result<Definition, Vec<Problem>> {
    let (sender, receiver) = sync_channel(1);
    let stop = Arc::new(AtomicBool::new(false));
    let (text, stopped) = (text.to_owned(), stop.clone());
    let evaluation = move || {
        // the receiver is gone if the engine did not stop in time
        let _ = sender.send(record(&text, &stopped));
    };
    let engine = thread::Builder::new().name("scenario".to_owned());
    if let Err(error) = engine.stack_size(THREAD_STACK).spawn(evaluation) {
        return Err(engine_failed(error));
    }
    let outcome = receiver.recv_timeout(limit).or_else(|error| {
        stop.store(true, Ordering::Relaxed);
        match error {
            // a long-running function of the engine cannot be interrupted to get its line; its
            // thread ends with the process
            RecvTimeoutError::Timeout => receiver.recv_timeout(GRACE),
            RecvTimeoutError::Disconnected => Err(error),
        }
    });
    match outcome {
        Ok(outcome) => outcome.map_err(|problem| vec![problem]),
        Err(RecvTimeoutError::Timeout) => Err(vec![Problem::new(0, too_long(limit))]),
        Err(RecvTimeoutError::Disconnected) => Err(engine_failed("it ended early")),
    }
    .map_err(|problems| explain_time(problems, limit))
}

fn too_long(limit: Duration) -> String {
    format!(
        "the definition ran for more than {} s; it is evaluated once, before the first request. Look for an endless loop at or after this line",
        limit.as_secs_f64()
    )
}

/// The engine calls it only an interruption.
fn explain_time(mut problems: Vec<Problem>, limit: Duration) -> Vec<Problem> {
    for problem in &mut problems {
        if problem.words == "interrupted" {
            problem.words = too_long(limit);
        }
    }
    problems
}

fn engine_failed(reason: impl std::fmt::Display) -> Vec<Problem> {
    let words = format!("the JavaScript engine failed: {reason}; write the scenario in TOML");
    vec![Problem::new(0, words)]
}

/// Runs prelude and definition, and reads the record.
fn record(text: &str, stopped: &Arc<AtomicBool>) -> Result<Definition, Problem> {
    let failed = |error: rquickjs::Error| engine_failed(error).remove(0);
    let runtime = Runtime::new().map_err(failed)?;
    runtime.set_memory_limit(MEMORY);
    runtime.set_max_stack_size(STACK);
    let stopped = stopped.clone();
    let handler = move || stopped.load(Ordering::Relaxed);
    runtime.set_interrupt_handler(Some(Box::new(handler)));
    let context = Context::full(&runtime).map_err(failed)?;
    let json = context.with(|engine| {
        let outcome = recorded(&engine, text);
        outcome
            .catch(&engine)
            .map_err(|error| problem_of(&error, text))
    });
    let json = json.map_err(|problem| explain_module(problem, text))?;
    serde_json::from_str(&json).map_err(|error| Problem::new(0, format!("the record: {error}")))
}

fn recorded(engine: &Ctx<'_>, text: &str) -> rquickjs::Result<String> {
    let prelude: Function<'_> = engine.eval(include_str!("prelude.js"))?;
    let most = Object::new(engine.clone())?;
    most.set("steps", MOST_STEPS)?;
    // a session is a level, too
    most.set("depth", DEEPEST + 1)?;
    most.set("notes", MOST_NOTES)?;
    most.set("stepsWords", too_many_steps())?;
    let finish: Function<'_> = prelude.call((engine.globals(), most))?;
    let mut options = EvalOptions::default();
    // definitions assign to names that they never declared
    options.strict = false;
    options.filename = Some(SCRIPT.to_owned());
    engine.eval_with_options::<Value<'_>, _>(text, options)?;
    finish.call(())
}

/// The error, with the line of the innermost frame within the definition.
fn problem_of(error: &CaughtError<'_>, text: &str) -> Problem {
    match error {
        CaughtError::Exception(exception) => {
            let words = exception.message().unwrap_or_default();
            let stack = exception.stack().unwrap_or_default();
            let name: Option<String> = exception.get("name").ok();
            // our own errors need no name
            let words = match name.as_deref() {
                None | Some("Error" | "InternalError") => words,
                Some(name) => format!("{name}: {words}"),
            };
            Problem::new(line_in(&stack), explain(words))
        }
        CaughtError::Value(value) => {
            let thrown = thrown(value);
            let words = format!(
                "the definition threw {thrown}; `throw new Error(\"why\")` has a line and a reason"
            );
            Problem::new(line_of_throw(text), words)
        }
        // a text with a zero byte, or a result that is none
        CaughtError::Error(error) => Problem::new(0, format!("the definition: {error}")),
    }
}

/// A value that is no error, as a person writes it.
fn thrown(value: &Value<'_>) -> String {
    let text = value.as_string().and_then(|text| text.to_string().ok());
    let number = value.as_number().map(|number| number.to_string());
    let truth = value.as_bool().map(|truth| truth.to_string());
    let kind = || value.type_name().to_owned();
    text.or(number).or(truth).unwrap_or_else(kind)
}

/// The line of the only `throw` in a definition, 0 where there are several: a value that is no
/// error has no stack.
fn line_of_throw(text: &str) -> usize {
    let has_throw = |line: &str| {
        let code = line.split("//").next().unwrap_or("");
        code.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .any(|word| word == "throw")
    };
    let mut lines = text.lines().enumerate().filter(|(_, line)| has_throw(line));
    match (lines.next(), lines.next()) {
        (Some((nth, _)), None) => nth + 1,
        _ => 0,
    }
}

/// Adds what a person can do.
fn explain(words: String) -> String {
    if words.ends_with("out of memory") {
        return format!("{words}: a definition has {} MiB", MEMORY >> 20);
    }
    // of a browser, of Node, or of a load-testing service
    if words.starts_with("ReferenceError") {
        return format!("{words}; docs/reference/scenarios.md lists what is supported");
    }
    match words.ends_with("Maximum call stack size exceeded") {
        true => format!("{words}: a function calls itself without an end"),
        false => words,
    }
}

/// The engine calls the keywords of modules only unexpected.
fn explain_module(mut problem: Problem, text: &str) -> Problem {
    let line = problem.line.and_then(|line| text.lines().nth(line - 1));
    let is_module = |line: &str| {
        let mut words = line.split_whitespace();
        words
            .next()
            .is_some_and(|word| word == "import" || word == "export")
    };
    if line.is_some_and(is_module) {
        problem.words += " (modules are not loaded: put the definition into one file)";
    }
    problem
}

/// The line in a stack trace, 0 where there is none.
fn line_in(stack: &str) -> usize {
    let after = stack.split(SCRIPT).nth(1).unwrap_or("");
    let digits = after.trim_start_matches(':');
    let end = digits.find(|letter: char| !letter.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())].parse().unwrap_or(0)
}
