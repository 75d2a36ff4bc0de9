//! What the platform records of each invocation.

use crate::runtime::{function, server};
use intact_lambda::{
    Event, FreezeHook, Freezer, Function, LambdaError, NoGate, Plan, Platform, RunPosition,
};
use intact_ledger::{Invocation, InvocationOutcome, Row};
use std::io::{self, Write};
use std::time::{Duration, Instant};

fn run(behaviour: &str, change: impl FnOnce(&mut Plan)) -> Vec<Invocation> {
    let mut plan = Plan::new(3);
    change(&mut plan);
    let results = invoked(&function(behaviour), &plan, &mut NoGate);
    assert_eq!(results.len() as u64, plan.invocations);
    results
}

fn invoked(function: &Function, plan: &Plan, gate: &mut dyn FreezeHook) -> Vec<Invocation> {
    let mut rows: Vec<Row> = Vec::new();
    let mut platform = Platform::new(Instant::now(), gate);
    let place = RunPosition {
        variant: 0,
        round: 1,
    };
    let made = platform.run(function, plan, place, &|| false, &mut rows);
    assert_eq!(made.unwrap(), plan.invocations);
    rows.into_iter()
        .map(|row| match row {
            Row::Invocation(one) => one,
            other => panic!("nobody watches: {other:?}"),
        })
        .collect()
}

fn ids(results: &[Invocation]) -> Vec<&'static str> {
    results.iter().map(|one| one.fate.id()).collect()
}

fn environments(results: &[Invocation]) -> Vec<u64> {
    results.iter().map(|one| one.environment).collect()
}

#[test]
fn the_first_invocation_is_cold_and_the_others_find_the_environment() {
    let results = run("answer", |_| {});
    assert!(
        results
            .iter()
            .all(|one| one.fate == InvocationOutcome::Answered(6))
    );
    assert_eq!(environments(&results), [1, 1, 1]);
    let cold: Vec<bool> = results.iter().map(|one| one.init.is_some()).collect();
    assert_eq!(cold, [true, false, false]);
    assert!(
        results
            .iter()
            .all(|one| one.at <= one.end && one.frozen.is_none())
    );
}

#[test]
fn a_new_environment_is_started_as_often_as_asked() {
    let results = run("answer", |plan| {
        plan.invocations = 5;
        plan.cold_every = Some(2);
    });
    assert_eq!(environments(&results), [1, 1, 2, 2, 3]);
}

#[test]
fn a_crash_is_an_outcome_and_the_next_invocation_starts_a_new_process() {
    let results = run("answer crash", |plan| plan.invocations = 4);
    assert_eq!(ids(&results), ["answered", "crash", "answered", "crash"]);
    assert_eq!(environments(&results), [1, 1, 2, 2]);
    let words = "the process ended with exit code 7";
    assert_eq!(results[1].fate.words(), Some(words));
}

#[test]
fn a_function_that_hangs_is_ended_at_its_limit() {
    let limit = Duration::from_millis(200);
    let results = run("hang", |plan| {
        plan.invocations = 2;
        plan.timeout = limit;
    });
    assert_eq!(ids(&results), ["timeout", "timeout"]);
    assert_eq!(environments(&results), [1, 2]);
    assert!(
        results
            .iter()
            .all(|one| one.end.since(one.at) >= limit.as_nanos() as u64)
    );
}

#[test]
fn a_second_answer_is_refused_and_counted() {
    let results = run("answer twice answer", |_| {});
    assert_eq!(ids(&results), ["answered"; 3]);
    let again: Vec<u32> = results.iter().map(|one| one.duplicate_response).collect();
    assert_eq!(again, [0, 1, 0]);
}

#[test]
fn an_error_keeps_the_text_of_the_function() {
    let results = run("error", |_| {});
    let words = "TypeError: no such thing".to_owned();
    assert!(
        results
            .iter()
            .all(|one| one.fate == InvocationOutcome::Error(words.clone()))
    );
    assert_eq!(environments(&results), [1, 1, 1]);
}

#[test]
fn a_function_that_asks_again_without_a_response_is_recorded() {
    assert_eq!(
        ids(&run("skip answer", |_| {})),
        ["unanswered", "answered", "answered"]
    );
}

#[test]
fn one_that_never_asks_again_is_ended() {
    let results = run("stay", |plan| plan.timeout = Duration::from_millis(200));
    assert_eq!(ids(&results), ["never-asked-again"; 3]);
    assert_eq!(environments(&results), [1, 2, 3]);
}

#[test]
fn one_that_leaves_after_its_answer_is_replaced() {
    let results = run("leave", |_| {});
    assert_eq!(ids(&results), ["answered"; 3]);
}

#[test]
fn one_that_cannot_begin_says_why() {
    let results = run("init-error", |plan| plan.invocations = 1);
    let words = "Runtime.ImportModuleError: no module".to_owned();
    assert_eq!(results[0].fate, InvocationOutcome::NoStart(words));
    let results = run("never-asks", |plan| {
        plan.invocations = 1;
        plan.init_timeout = Duration::from_millis(200);
    });
    assert!(results[0].fate.words().unwrap().contains("awslambdaric"));
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    let mut function = function("answer");
    function.command = vec!["/no/such/program".into()];
    let mut gate = NoGate;
    let results = Platform::new(Instant::now(), &mut gate).run(
        &function,
        &Plan::new(1),
        RunPosition::default(),
        &|| false,
        &mut Vec::<Row>::new(),
    );
    assert!(matches!(results, Err(LambdaError::NotFound(_))));
}

/// Counts, and looks whether the function is stopped.
#[derive(Default)]
struct Doorman {
    closed: u32,
    opened: u32,
    stopped: u32,
}

impl FreezeHook for Doorman {
    fn close(&mut self) -> io::Result<()> {
        self.closed += 1;
        let ours = format!(" {} ", std::process::id());
        for entry in std::fs::read_dir("/proc")? {
            let path = entry?.path().join("stat");
            let stat = std::fs::read_to_string(path).unwrap_or_default();
            let rest = stat.rsplit(')').next().unwrap_or_default();
            if rest.starts_with(" T ") && rest[2..].starts_with(&ours) {
                self.stopped += 1;
            }
        }
        Ok(())
    }

    fn open(&mut self) -> io::Result<()> {
        self.opened += 1;
        Ok(())
    }
}

#[test]
fn an_idle_function_is_stopped_and_behind_a_closed_gate() {
    let mut plan = Plan::new(5);
    plan.idle = vec![Duration::ZERO, Duration::from_millis(30)];
    let mut gate = Doorman::default();
    let results = invoked(&function("answer"), &plan, &mut gate);
    assert_eq!(ids(&results), ["answered"; 5]);
    let frozen: Vec<bool> = results.iter().map(|one| one.frozen.is_some()).collect();
    assert_eq!(frozen, [false, false, true, false, true]);
    assert_eq!((gate.closed, gate.opened), (2, 2));
    assert!(gate.stopped >= 2, "{}", gate.stopped);
}

#[test]
fn a_function_that_serves_http_is_asked_by_requests() {
    let mut plan = Plan::new(5);
    plan.idle = vec![Duration::ZERO, Duration::from_millis(30)];
    let results = invoked(&server("ok broken cut ok crash"), &plan, &mut NoGate);
    let fates: Vec<InvocationOutcome> = results.iter().map(|one| one.fate.clone()).collect();
    let crash = "the process ended with exit code 7".to_owned();
    assert_eq!(fates[0], InvocationOutcome::Answered(5));
    assert_eq!(
        fates[1],
        InvocationOutcome::Error("HTTP: status 503".to_owned())
    );
    assert!(
        fates[2]
            .words()
            .unwrap()
            .contains("before the answer was complete")
    );
    assert_eq!(fates[3], InvocationOutcome::Answered(5));
    assert_eq!(fates[4], InvocationOutcome::Crash(crash));
    let frozen: Vec<bool> = results.iter().map(|one| one.frozen.is_some()).collect();
    assert_eq!(frozen, [false, false, true, false, true]);
}

#[test]
fn an_event_is_posted_to_a_function_that_serves_http() {
    let mut plan = Plan::new(1);
    let results = invoked(&server("method"), &plan, &mut NoGate);
    assert_eq!(results[0].fate, InvocationOutcome::Answered(3));
    plan.event = Event(br#"{"a":1}"#.to_vec());
    let results = invoked(&server("method"), &plan, &mut NoGate);
    assert_eq!(results[0].fate, InvocationOutcome::Answered(4));
}

#[test]
fn the_error_of_a_server_that_never_listens_names_its_port() {
    let mut plan = Plan::new(1);
    plan.init_timeout = Duration::from_millis(200);
    let results = invoked(&server("deaf"), &plan, &mut NoGate);
    assert!(
        results[0].fate.words().unwrap().contains("PORT"),
        "{results:?}"
    );
}

#[test]
fn environments_at_once_take_an_invocation_each() {
    let mut plan = Plan::new(7);
    plan.concurrency = 3;
    plan.idle = vec![Duration::from_millis(20)];
    let mut gate = Doorman::default();
    let results = invoked(&function("answer"), &plan, &mut gate);
    assert_eq!(ids(&results), ["answered"; 7]);
    assert_eq!(environments(&results), [1, 2, 3, 1, 2, 3, 1]);
    let frozen: Vec<bool> = results.iter().map(|one| one.frozen.is_some()).collect();
    assert_eq!(frozen, [false, false, false, true, true, true, true]);
    assert_eq!((gate.closed, gate.opened), (2, 2), "once for all");
    assert!(results[..3].iter().all(|one| one.at == results[0].at));
}

#[test]
fn one_of_several_that_crashes_is_replaced_and_the_others_stay() {
    let mut plan = Plan::new(4);
    plan.concurrency = 2;
    let results = invoked(&function("answer crash"), &plan, &mut NoGate);
    assert_eq!(ids(&results), ["answered", "answered", "crash", "crash"]);
    let results = invoked(&function("crash"), &plan, &mut NoGate);
    assert_eq!(environments(&results), [1, 2, 3, 4]);
}

#[test]
fn a_control_group_freezes_as_signals_do() {
    if Freezer::best() != Freezer::ControlGroup {
        let words = "\nSKIPPED: a_control_group_freezes_as_signals_do: none may be made here\n";
        let _ = io::stderr().write_all(words.as_bytes());
        return;
    }
    let mut plan = Plan::new(3);
    plan.freezer = Some(Freezer::ControlGroup);
    plan.idle = vec![Duration::from_millis(30)];
    plan.cpu_share = Some(0.5).filter(|_| Plan::can_share_cpu());
    let results = invoked(&function("answer"), &plan, &mut NoGate);
    assert_eq!(ids(&results), ["answered"; 3]);
    assert_eq!(environments(&results), [1, 1, 1]);
}

#[test]
fn idle_times_pass_faster_where_they_are_scaled() {
    let mut plan = Plan::new(2);
    plan.idle = vec![Duration::from_secs(3600)];
    plan.time_scale = 100_000.0;
    let results = invoked(&function("answer"), &plan, &mut NoGate);
    assert!(results[1].frozen.is_some());
    assert_eq!(results[1].rest, Some(3_600_000_000_000));
}
