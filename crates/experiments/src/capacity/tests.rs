//! Facts of made tallies: a server with a sharp limit, and one that is overloaded.

use super::{CapacityFacts, Conditions, judge};
use intact_document::Facts;
use intact_document::requirement::Requirement;
use intact_experiment::{AxisValues, RateSearch, TlsChoice};
use intact_ledger::{
    CapacityTerms, Event, Exchange, Failure, LoadPurpose, LoadStep, MachineUse, Nanos, Outcome,
    OverloadTerms, Producer, Protocol, Reuse, Round, RoundSchedule, Run, SearchTerms, Sink, Span,
    Tally, Vantage, Variant,
};
use intact_reading::Reading;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

fn run(search: bool) -> Run {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(Producer::Bench, "0", Vantage::Client, started, 1, &[]);
    let axes = AxisValues {
        keepalive: true,
        http: Protocol::Http11,
        tls: TlsChoice::None,
        resume: false,
        early_data: None,
        dns: None,
        connection: intact_experiment::ConnectionSettings::default(),
        concurrency: 64,
        streams: 1,
        open_loop: Some(intact_experiment::OpenLoop {
            rate: intact_experiment::RequestRate::constant(100.0),
            arrivals: intact_experiment::Arrivals::Constant,
            when_busy: intact_experiment::WhenBusy::Queue,
        }),
    };
    run.variants.push(Variant {
        name: "kept".to_owned(),
        axes: axes.axes(),
    });
    run.capacity = Some(CapacityTerms {
        conditions: vec!["p90 < 100ms".to_owned(), "failed-share < 1%".to_owned()],
        search: search.then_some(SearchTerms {
            start: 100.0,
            least: 10.0,
            most: 10_000.0,
            ratio: 1.05,
        }),
        overload: (!search).then_some(OverloadTerms {
            factor: 1.2,
            rate: Some(500.0),
            share: 0.8,
            lasts: Nanos(2 * SECOND),
            follows: Nanos(4 * SECOND),
        }),
    });
    run
}

/// Records a window of a second in which 200 requests fell due. `change` gets the number of a
/// request.
fn window(
    tally: &mut Tally,
    round: u32,
    step: (u32, LoadPurpose, f64),
    change: impl Fn(&mut Exchange, u64),
) {
    window_on(QUIET, tally, round, step, change);
}

/// Two processors over a second, of which the client uses 0.1.
const QUIET: Option<MachineUse> = Some(MachineUse {
    nanos: SECOND,
    cpus: 2,
    busy: Some(SECOND),
    steal: Some(0),
    waited: Some(SECOND / 20),
});
/// The same while other processes use both processors. A server that works is known to be there.
const BUSY: Option<MachineUse> = Some(MachineUse {
    nanos: SECOND,
    cpus: 2,
    busy: Some(2 * SECOND),
    steal: Some(0),
    waited: Some(SECOND),
});

/// The same on a machine whose processors were used like this.
fn window_on(
    machine: Option<MachineUse>,
    tally: &mut Tally,
    round: u32,
    step: (u32, LoadPurpose, f64),
    change: impl Fn(&mut Exchange, u64),
) {
    let server = (machine == BUSY).then_some(SECOND / 2);
    window_with(machine, server, tally, round, step, change);
}

/// The same with a server that used this CPU time, if that is known.
fn window_with(
    machine: Option<MachineUse>,
    server_cpu: Option<u64>,
    tally: &mut Tally,
    round: u32,
    (step, purpose, rate): (u32, LoadPurpose, f64),
    change: impl Fn(&mut Exchange, u64),
) {
    let start = Nanos(u64::from(round) * SECOND);
    for nth in 0..200 {
        let mut one = Exchange::new(u64::from(round) * 1_000 + nth, start.after(nth * 5 * MS));
        (one.variant, one.round) = (Some(0), Some(round));
        (one.reuse, one.status) = (Some(Reuse::Reused), Some(200));
        one.end = one.at.after(MS);
        one.scheduling_error = Some(Span::new(one.at, one.at.after(10_000)));
        change(&mut one, nth);
        tally.record(Event::Exchange(&one));
    }
    let span = Span::new(start, start.after(SECOND));
    tally.record(Event::Round(&Round {
        variant: 0,
        round,
        span,
        load: Some(LoadStep {
            step,
            purpose,
            rate,
            warm: false,
        }),
        schedule: Some(RoundSchedule {
            due: span,
            at_once: 64,
        }),
        client_cpu: Some(SECOND / 10),
        client_threads: Some(1),
        server_cpu,
        machine,
        ..Round::default()
    }));
}

fn slow(one: &mut Exchange, _: u64) {
    one.end = one.at.after(200 * MS);
}

fn late(one: &mut Exchange, _: u64) {
    one.end = one.at.after(200 * MS);
    one.scheduling_error = Some(Span::new(one.at, one.at.after(190 * MS)));
}

/// Runs the search that the terms describe to its end, or for a number of steps.
fn searched(most: u32, change: impl Fn(f64, &mut Exchange, u64)) -> (Run, Tally) {
    searched_on(most, |_| QUIET, change)
}

/// The same; `machine` gets the rate.
fn searched_on(
    most: u32,
    machine: impl Fn(f64) -> Option<MachineUse>,
    change: impl Fn(f64, &mut Exchange, u64),
) -> (Run, Tally) {
    let run = run(true);
    let mut tally = Tally::new();
    let terms = run.capacity.as_ref().unwrap();
    let mut search = RateSearch::new(terms.search.unwrap());
    let conditions = Conditions::of(terms.conditions.iter().map(String::as_str)).unwrap();
    let mut step = 0;
    while let Some(next) = search.next().filter(|_| step < most) {
        step += 1;
        let purpose = match next.confirms {
            true => LoadPurpose::Confirm,
            false => LoadPurpose::Search,
        };
        let machine = machine(next.rate);
        window_on(
            machine,
            &mut tally,
            step,
            (step, purpose, next.rate),
            |one, nth| {
                change(next.rate, one, nth);
            },
        );
        let figures = judge(&run, &tally, &conditions, step).unwrap();
        search.record(figures.step_outcome());
    }
    (run, tally)
}

fn passes(facts: &CapacityFacts, expression: &str) -> bool {
    let requirement: Requirement = expression.parse().unwrap();
    requirement.evaluate(facts).passed()
}

#[test]
fn the_facts_of_a_ledger_are_those_of_the_search() {
    let (run, tally) = searched(100, |rate, one, nth| {
        if rate > 480.0 {
            slow(one, nth);
        }
    });
    let facts = CapacityFacts::new(&run, &tally);
    let kept = &facts.variants[0];
    let found = kept.interval.unwrap();
    assert!(found.low <= 480.0 && found.high.unwrap() > 480.0);
    assert!(found.high.unwrap() / found.low < 1.06, "{found:?}");
    assert_eq!((kept.bounded_by, kept.confirmed), ("server", true));
    assert_eq!((kept.fresh_at_low.met, kept.fresh_at_low.runs), (5, 5));
    assert!(passes(&facts, "capacity >= 450/s"));
    assert!(passes(&facts, "keepalive=on: capacity <= 510/s"));
    // inside the interval nothing is decided
    assert!(!passes(&facts, "capacity >= 480/s"));
    assert!(!passes(&facts, "capacity < 480/s"));
    assert!(!passes(&facts, "recovery < 1h"));
    assert_eq!(facts.counted.requests.total, 200 * kept.steps.len() as u64);
    assert!(
        facts.verdict[0].statement.contains("fresh runs"),
        "{:?}",
        facts.verdict
    );
}

#[test]
fn a_client_that_is_late_is_never_called_the_capacity_of_the_server() {
    let (run, tally) = searched(100, |rate, one, nth| {
        if rate > 480.0 {
            late(one, nth);
        }
    });
    let facts = CapacityFacts::new(&run, &tally);
    let kept = &facts.variants[0];
    assert_eq!(kept.bounded_by, "client");
    assert_eq!(kept.interval.unwrap().high, None);
    assert!(
        facts.verdict[0]
            .statement
            .contains("the client's limit, not the server's"),
        "{:?}",
        facts.verdict
    );
    assert!(passes(&facts, "capacity >= 450/s"));
    assert!(!passes(&facts, "capacity <= 10000/s"));
}

#[test]
fn a_machine_that_others_use_is_the_limit_and_the_server_is_not_blamed() {
    let slow_beyond = |rate: f64, one: &mut Exchange, nth: u64| {
        if rate > 480.0 {
            slow(one, nth);
        }
    };
    let late_beyond = |rate: f64, one: &mut Exchange, nth: u64| {
        if rate > 480.0 {
            late(one, nth);
        }
    };
    // a client that is late because it waits for a processor is not the limit either
    for found in [
        searched_on(100, |_| BUSY, slow_beyond),
        searched_on(100, |_| BUSY, late_beyond),
    ] {
        let (run, tally) = found;
        let facts = CapacityFacts::new(&run, &tally);
        let kept = &facts.variants[0];
        assert_eq!(kept.bounded_by, "machine");
        assert_eq!(kept.interval.unwrap().high, None);
        let sentence = &*facts.verdict[0].statement;
        assert!(sentence.contains("the machine is the limit"), "{sentence}");
        let missed = kept.steps.iter().filter(|step| !step.is_met());
        assert!(missed.clone().count() > 0);
        for step in missed {
            assert_eq!(step.outcome, "machine-limit");
        }
        let caveat = &facts.caveats[0];
        assert_eq!(caveat.id, "machine-limit");
        for figure in ["processors busy 100", "neither client nor server 70"] {
            assert!(caveat.message.contains(figure), "{}", caveat.message);
        }
        // as with a client at its limit, the lower end is known and the upper one is not
        assert!(passes(&facts, "capacity >= 450/s"));
        assert!(!passes(&facts, "capacity <= 10000/s"));
        assert!(!passes(&facts, "capacity >= 485/s"));
    }
    // the machine gets busy only once the fresh runs are under way
    let steps = std::cell::Cell::new(0);
    let (run, tally) = searched_on(
        100,
        |_| {
            steps.set(steps.get() + 1);
            if steps.get() > 10 { BUSY } else { QUIET }
        },
        slow_beyond,
    );
    let facts = CapacityFacts::new(&run, &tally);
    assert_eq!(facts.variants[0].bounded_by, "machine");
    assert_eq!(facts.variants[0].interval.unwrap().high, None);
}

/// The outcome of one step of two windows; `change` gets the window, from 0.
fn outcome_of(machine: Option<MachineUse>, change: impl Fn(u32, &mut Exchange, u64)) -> String {
    let run = run(true);
    let mut tally = Tally::new();
    for nth in 0..2 {
        let step = (1, LoadPurpose::Search, 200.0);
        window_on(machine, &mut tally, nth + 1, step, |one, at| {
            change(nth, one, at);
        });
    }
    let facts = CapacityFacts::new(&run, &tally);
    facts.variants[0].steps[0].outcome.to_owned()
}

#[test]
fn a_step_without_a_value_is_neither_met_nor_missed() {
    // 90 requests, where p90 needs 100
    let few = |_, one: &mut Exchange, nth: u64| one.warmup = nth >= 45;
    assert_eq!(outcome_of(QUIET, few), "undecided");
    let enough = |_, one: &mut Exchange, nth: u64| one.warmup = nth >= 50;
    assert_eq!(outcome_of(QUIET, enough), "met");
    // few because the others failed
    let failed = |_, one: &mut Exchange, nth: u64| {
        one.warmup = nth >= 50;
        if nth == 7 {
            one.outcome = Outcome::Failed(Failure::Reset);
        }
    };
    assert_eq!(outcome_of(QUIET, failed), "missed");
}

#[test]
fn a_step_that_opened_connections_and_missed_is_a_cold_start() {
    let outcome = |warm: bool, opens: bool| {
        let run = run(true);
        let mut tally = Tally::new();
        window(&mut tally, 1, (1, LoadPurpose::Search, 200.0), slow);
        let cell = &mut tally.cells[0];
        cell.connections.opened = u64::from(opens);
        let load = cell.bounds.as_mut().unwrap().load.as_mut().unwrap();
        load.warm = warm;
        let facts = CapacityFacts::new(&run, &tally);
        facts.variants[0].steps[0].outcome
    };
    assert_eq!(outcome(false, true), "cold-start");
    assert_eq!(outcome(true, true), "missed");
    assert_eq!(outcome(false, false), "missed");
}

#[test]
fn requests_that_the_server_resets_are_not_the_machines_fault() {
    let resets = |_, one: &mut Exchange, nth: u64| {
        if nth.is_multiple_of(8) {
            one.outcome = Outcome::Failed(Failure::Reset);
        }
        // a little late, as on a busy machine
        one.scheduling_error = Some(Span::new(one.at, one.at.after(900_000)));
    };
    assert_eq!(outcome_of(BUSY, resets), "missed");
}

#[test]
fn a_condition_that_only_the_clients_lateness_breaks_is_not_missed() {
    let late = |_, one: &mut Exchange, _: u64| {
        one.end = one.at.after(101 * MS);
        one.scheduling_error = Some(Span::new(one.at, one.at.after(60 * MS)));
    };
    assert_eq!(outcome_of(QUIET, late), "client-limit");
}

#[test]
fn a_busy_machine_is_not_the_limit_of_a_server_that_only_waits() {
    // a client on time; a server that sleeps, or whose work is not known
    for (server, is_caveat) in [(Some(SECOND / 20), false), (None, true)] {
        for hangs in [false, true] {
            let run = run(true);
            let mut tally = Tally::new();
            let step = (1, LoadPurpose::Search, 100.0);
            window_with(BUSY, server, &mut tally, 1, step, |one, nth| {
                slow(one, nth);
                if hangs {
                    one.outcome = Outcome::Failed(Failure::Timeout);
                }
            });
            let facts = CapacityFacts::new(&run, &tally);
            assert_eq!(facts.variants[0].steps[0].outcome, "missed");
            assert_eq!(facts.variants[0].bounded_by, "server");
            let ids = facts.caveats.iter().map(|one| &*one.id);
            let ids: Vec<&str> = ids.collect();
            assert!(!ids.contains(&"machine-limit"), "{ids:?}");
            assert_eq!(
                ids.contains(&"machine-busy"),
                is_caveat && !hangs,
                "{ids:?}"
            );
        }
    }
}

#[test]
fn no_rate_on_a_busy_machine_is_not_the_servers_either() {
    let (run, tally) = searched_on(100, |_| BUSY, |_, one, nth| slow(one, nth));
    let facts = CapacityFacts::new(&run, &tally);
    assert_eq!(facts.variants[0].bounded_by, "machine");
    assert_eq!(facts.variants[0].interval, None);
    let sentence = &*facts.verdict[0].statement;
    assert!(sentence.contains("the machine is the limit"), "{sentence}");
    assert!(!passes(&facts, "capacity >= 1/s"));
    // one that was cut off has no upper end that the server would have
    let (run, tally) = searched_on(
        5,
        |rate| if rate > 480.0 { BUSY } else { QUIET },
        |rate, one, nth| {
            if rate > 480.0 {
                slow(one, nth);
            }
        },
    );
    let facts = CapacityFacts::new(&run, &tally);
    let kept = &facts.variants[0];
    assert!(!kept.confirmed);
    assert_eq!(kept.interval.unwrap().high, None);
    assert_eq!(kept.bounded_by, "machine");
    let sentence = &*facts.verdict[0].statement;
    for words in ["not confirmed", "the machine was the limit"] {
        assert!(sentence.contains(words), "{sentence}");
    }
}

#[test]
fn error_pages_are_no_capacity_whatever_the_machine_does() {
    for machine in [QUIET, BUSY] {
        let (run, tally) = searched_on(5, |_| machine, |_, one, _| one.status = Some(503));
        let facts = CapacityFacts::new(&run, &tally);
        let steps = facts.variants[0].steps.iter();
        assert!(steps.map(|step| step.outcome).all(|one| one == "missed"));
        let sentence = &*facts.verdict[0].statement;
        assert!(sentence.starts_with("Every response was 503"), "{sentence}");
        assert!(!facts.any_success() && !passes(&facts, "capacity >= 1/s"));
    }
    // above its limit the server refuses every fifth request, quickly
    let (run, tally) = searched(100, |rate, one, nth| {
        if rate > 480.0 && nth % 5 == 0 {
            one.status = Some(503);
        }
    });
    let facts = CapacityFacts::new(&run, &tally);
    let kept = &facts.variants[0];
    assert!(kept.interval.unwrap().low <= 480.0);
    let missed = kept.steps.iter().find(|step| !step.is_met()).unwrap();
    assert_eq!(missed.error_responses, 40);
    let reason = missed.reason.as_deref().unwrap();
    assert!(
        reason.contains("20 %") && reason.contains("(503)"),
        "{reason}"
    );
    let share = &*facts.verdict.last().unwrap().statement;
    assert!(share.ends_with("had the status 503."), "{share}");
    assert!(facts.any_success());
}

#[test]
fn a_search_that_was_cut_off_names_the_limit_of_the_lowest_step_that_missed() {
    // 100, 200, 400, 800 and 1,600 requests/s: the machine is busy at one of them only
    let with_busy = |busy: f64, most| {
        let (run, tally) = searched_on(
            most,
            |rate| if rate == busy { BUSY } else { QUIET },
            |rate, one, nth| {
                if rate > 480.0 || rate == busy {
                    slow(one, nth);
                }
            },
        );
        CapacityFacts::new(&run, &tally)
    };
    let rates = |facts: &CapacityFacts| -> Vec<f64> {
        let steps = facts.variants[0].steps.iter();
        steps.map(|step| step.rate_per_s).collect()
    };
    // once is no bound for the search, but what is known is the machine's
    let facts = with_busy(rates(&with_busy(0.0, 4))[3], 4);
    let kept = &facts.variants[0];
    assert_eq!(kept.bounded_by, "machine", "{:?}", rates(&facts));
    // at a quiet machine it is the server's
    let facts = with_busy(0.0, 4);
    assert_eq!(facts.variants[0].bounded_by, "server");
    assert!(
        !facts.verdict[0].statement.contains("machine"),
        "{:?}",
        facts.verdict
    );
}

#[test]
fn a_step_that_others_disturbed_does_not_lower_the_rate_that_was_found() {
    let steps = std::cell::Cell::new(0);
    let is_disturbed = std::cell::Cell::new(false);
    let (run, tally) = searched_on(
        3,
        |_| {
            steps.set(steps.get() + 1);
            is_disturbed.set(steps.get() == 1);
            if is_disturbed.get() { BUSY } else { QUIET }
        },
        |_, one, nth| {
            if is_disturbed.get() {
                slow(one, nth);
            }
        },
    );
    let facts = CapacityFacts::new(&run, &tally);
    let kept = &facts.variants[0];
    let rates: Vec<f64> = kept.steps.iter().map(|step| step.rate_per_s).collect();
    assert_eq!(rates[0], rates[1], "it is tried again");
    assert_eq!(kept.interval.unwrap().low, rates[2]);
    assert_eq!(kept.bounded_by, "unknown");
}

#[test]
fn a_machine_that_was_not_observed_is_named() {
    let without_psi = QUIET.map(|machine| MachineUse {
        waited: None,
        steal: None,
        ..machine
    });
    for (machine, words) in [
        (None, "the processors of this machine"),
        (without_psi, "/proc/pressure/cpu), what a hypervisor took"),
    ] {
        let (run, tally) = searched_on(
            100,
            |_| machine,
            |rate, one, nth| {
                if rate > 480.0 {
                    slow(one, nth);
                }
            },
        );
        let facts = CapacityFacts::new(&run, &tally);
        let caveat = &facts.caveats[0];
        assert_eq!(caveat.id, "machine-unobserved");
        assert!(caveat.message.contains(words), "{}", caveat.message);
    }
    let (run, tally) = searched(100, |rate, one, nth| {
        if rate > 480.0 {
            slow(one, nth);
        }
    });
    assert!(CapacityFacts::new(&run, &tally).caveats.is_empty());
}

#[test]
fn the_requests_of_a_step_that_was_cut_off_are_counted() {
    let run = run(true);
    let mut tally = Tally::new();
    let step = (1, LoadPurpose::Search, 100.0);
    window(&mut tally, 1, step, |_, _| {});
    // the run ended before the end of the round was recorded
    tally.cell(Some(0), Some(1)).bounds = None;
    let facts = CapacityFacts::new(&run, &tally);
    assert_eq!(facts.counted.requests.total, 200);
    assert!(facts.any_success() && facts.variants[0].steps.is_empty());
    let sentence = &*facts.verdict[0].statement;
    assert!(
        sentence.contains("before its first step was over"),
        "{sentence}"
    );
    assert!(!passes(&facts, "capacity >= 1/s"));
}

#[test]
fn a_server_that_stops_responding_during_the_search_is_named() {
    let steps = std::cell::Cell::new(0);
    let (run, tally) = searched_on(
        20,
        |_| {
            steps.set(steps.get() + 1);
            QUIET
        },
        |_, one, _| {
            if steps.get() > 2 {
                one.outcome = Outcome::Failed(Failure::Timeout);
            }
        },
    );
    let facts = CapacityFacts::new(&run, &tally);
    assert_eq!(facts.variants[0].interval, None);
    let sentences: Vec<&str> = facts.verdict.sentences().collect();
    let [stopped, changed, ..] = sentences[..] else {
        panic!("{:?}", facts.verdict);
    };
    for words in ["198 requests/s met", "in step 2, and no longer did"] {
        assert!(changed.contains(words), "{changed}");
    }
    assert!(!changed.contains("--step"), "{changed}");
    assert!(
        stopped.contains("from step 3 on no request succeeded"),
        "{stopped}"
    );
    // one that is only overloaded has not stopped
    let (run, tally) = searched(4, |rate, one, _| {
        if rate > 480.0 {
            one.outcome = Outcome::Failed(Failure::Timeout);
        }
    });
    let facts = CapacityFacts::new(&run, &tally);
    let verdict: String = facts.verdict.sentences().collect();
    assert!(!verdict.contains("stopped responding"), "{verdict}");
}

#[test]
fn a_search_that_was_cut_off_passes_no_requirement() {
    let (run, tally) = searched(9, |rate, one, nth| {
        if rate > 480.0 {
            slow(one, nth);
        }
    });
    let facts = CapacityFacts::new(&run, &tally);
    assert!(facts.variants[0].interval.is_some());
    assert!(!facts.variants[0].confirmed);
    assert!(!passes(&facts, "capacity >= 1/s"));
    let ids = facts.caveats.iter().map(|one| &*one.id);
    assert_eq!(ids.collect::<Vec<_>>(), ["not-confirmed"]);
}

#[test]
fn failures_and_error_responses_miss_although_the_rest_is_fast() {
    for (change, why) in [
        (
            (|one: &mut Exchange, nth| {
                if nth % 20 == 0 {
                    one.outcome = Outcome::Failed(Failure::Reset);
                }
            }) as fn(&mut Exchange, u64),
            "failed-share is 5 %",
        ),
        (
            |one, nth| {
                if nth % 20 == 0 {
                    one.status = Some(503);
                }
            },
            "5.0 % of the requests failed or had an error status",
        ),
    ] {
        let run = run(true);
        let mut tally = Tally::new();
        window(&mut tally, 1, (1, LoadPurpose::Search, 200.0), change);
        let terms = run.capacity.as_ref().unwrap();
        let conditions = Conditions::of(terms.conditions.iter().map(String::as_str)).unwrap();
        let figures = judge(&run, &tally, &conditions, 1).unwrap();
        assert_eq!(figures.outcome, "missed");
        let reason = figures.reason.unwrap();
        assert!(reason.contains(why), "{reason}");
    }
}

#[test]
fn a_latency_that_grows_misses_before_it_reaches_the_limit() {
    let run = run(true);
    let mut tally = Tally::new();
    let step = (1, LoadPurpose::Search, 200.0);
    window(&mut tally, 1, step, |one, nth| {
        one.end = one.at.after((1 + nth / 8) * MS);
    });
    window(&mut tally, 2, step, |one, nth| {
        one.end = one.at.after((25 + nth / 8) * MS);
    });
    let conditions = Conditions::read("p90 < 100ms").unwrap();
    let figures = judge(&run, &tally, &conditions, 1).unwrap();
    assert_eq!((figures.outcome, figures.requests), ("missed", 400));
    assert!(figures.reason.unwrap().contains("longer and longer"));
}

/// Before, two seconds of overload, then windows that hold or do not.
fn overloaded(after: &[bool]) -> (Run, Tally) {
    overloaded_on(QUIET, after)
}

/// The same; after the overload the machine was used like this.
fn overloaded_on(machine: Option<MachineUse>, after: &[bool]) -> (Run, Tally) {
    let run = run(false);
    let mut tally = Tally::new();
    window(&mut tally, 1, (1, LoadPurpose::Before, 400.0), |_, _| {});
    for round in 2..4 {
        window(&mut tally, round, (1, LoadPurpose::Overload, 600.0), slow);
    }
    for (round, holds) in (4..).zip(after) {
        window_on(
            machine,
            &mut tally,
            round,
            (1, LoadPurpose::After, 400.0),
            |one, nth| {
                if !holds {
                    slow(one, nth);
                }
            },
        );
    }
    (run, tally)
}

#[test]
fn the_recovery_takes_until_the_conditions_hold_for_good() {
    let (run, tally) = overloaded(&[false, true, false, true, true]);
    let facts = CapacityFacts::new(&run, &tally);
    let recovery = facts.variants[0].recovery.as_ref().unwrap();
    assert_eq!(recovery.recovered_after_s, Reading::known(3.0));
    assert!(recovery.held_before && recovery.broke);
    assert!(passes(&facts, "recovery <= 3s"));
    assert!(!passes(&facts, "recovery < 3s"));
    assert!(!passes(&facts, "capacity >= 1/s"));
    assert!(facts.findings.is_empty());
    assert!(
        facts.verdict[0]
            .statement
            .contains("held again 3.00 s later"),
        "{:?}",
        facts.verdict
    );
}

#[test]
fn a_server_that_does_not_recover_is_an_error_and_passes_no_requirement() {
    let (run, mut tally) = overloaded(&[false, false, false]);
    let restart = (2, LoadPurpose::Restart, 400.0);
    window(&mut tally, 9, restart, |_, _| {});
    let facts = CapacityFacts::new(&run, &tally);
    let recovery = facts.variants[0].recovery.as_ref().unwrap();
    assert_eq!(recovery.recovered_after_s.low(), 3.0);
    assert_eq!(
        (recovery.watched_s, recovery.held_after_pause),
        (3.0, Some(true))
    );
    assert!(!passes(&facts, "recovery < 1h"));
    assert!(!passes(&facts, "findings.did-not-recover == 0"));
    assert!(
        facts.verdict[0]
            .statement
            .contains("did not recover within 3.00 s"),
        "{:?}",
        facts.verdict
    );
}

#[test]
fn a_machine_that_is_busy_after_an_overload_hides_the_recovery() {
    let (run, tally) = overloaded_on(BUSY, &[false, false, false]);
    let facts = CapacityFacts::new(&run, &tally);
    let recovery = facts.variants[0].recovery.as_ref().unwrap();
    assert_eq!(recovery.limited_by, Some("machine"));
    assert!(facts.findings.is_empty(), "{:?}", facts.findings);
    assert!(!passes(&facts, "recovery < 1h"));
    let sentence = &*facts.verdict[0].statement;
    assert!(
        sentence.contains("nothing is known of a recovery"),
        "{sentence}"
    );
    // the server may have recovered earlier than the conditions held again
    let (run, tally) = overloaded_on(BUSY, &[false, false, true, true]);
    let facts = CapacityFacts::new(&run, &tally);
    assert!(passes(&facts, "recovery <= 2s"));
    assert!(!passes(&facts, "recovery >= 2s"));
    let sentence = &*facts.verdict[0].statement;
    assert!(sentence.contains("may have recovered before"), "{sentence}");
}
