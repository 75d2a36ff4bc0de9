//! Any text as a scenario in TOML: no panic, a plan that is accepted is printed and read back as
//! the same plan, and a problem names a line of the text. The first byte chooses between the text
//! itself and a patched definition.
#![no_main]

use intact_scenario::{Language, Plan, ScenarioError, Step, compile};
use libfuzzer_sys::fuzz_target;
use std::time::Duration;

const DEFINITION: &str = include_str!("../../fixtures/load-tests/keep-alive.toml");

fn read(text: &str) -> Result<Plan, ScenarioError> {
    compile("x.toml", Language::Toml, text, Duration::ZERO)
}

/// Clears what only the source of a plan has.
fn clear(steps: &mut [Step]) {
    for step in steps {
        match step {
            Step::Request(request) => request.line = 0,
            Step::Wait(_) => {}
            Step::Repeat { steps, line, .. } => {
                *line = 0;
                clear(steps);
            }
        }
    }
}

fn bare(mut plan: Plan) -> Plan {
    plan.target.iter_mut().for_each(|one| one.line = 0);
    plan.phases.iter_mut().for_each(|one| one.line = 0);
    for session in &mut plan.sessions {
        session.line = 0;
        clear(&mut session.steps);
    }
    plan.notes.clear();
    plan
}

/// Replaces bytes of the definition: where, how many, by what.
fn patched(patch: &[u8]) -> String {
    let [high, low, length, new @ ..] = patch else {
        return DEFINITION.to_owned();
    };
    let mut bytes = DEFINITION.as_bytes().to_vec();
    let at = usize::from(u16::from_be_bytes([*high, *low])) % bytes.len();
    let end = (at + usize::from(*length)).min(bytes.len());
    bytes.splice(at..end, new.iter().copied());
    String::from_utf8_lossy(&bytes).into_owned()
}

fuzz_target!(|data: &[u8]| {
    let text = match data.split_first() {
        Some((0..128, patch)) => patched(patch),
        Some((_, rest)) => String::from_utf8_lossy(rest).into_owned(),
        None => return,
    };
    match read(&text) {
        Ok(plan) => {
            let _ = (plan.clients(), plan.mean_requests(), plan.named_target());
            let _ = plan.to_json().unwrap();
            let printed = plan.to_toml();
            let again = read(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
            assert_eq!(bare(plan), bare(again), "{printed}");
        }
        Err(error) => {
            let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
            for problem in error.problems() {
                assert!(problem.line.is_none_or(|line| line <= lines), "{problem:?}");
            }
        }
    }
});
