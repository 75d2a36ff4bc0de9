//! TOML: the same plans, and the form in which a plan is printed.

use super::{javascript, toml};
use intact_scenario::{Plan, Step};
use proptest::prelude::*;

/// The plan without what only its source has.
fn bare(mut plan: Plan) -> Plan {
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
    plan.notes.clear();
    plan.target.iter_mut().for_each(|one| one.line = 0);
    plan.phases.iter_mut().for_each(|one| one.line = 0);
    for session in &mut plan.sessions {
        session.line = 0;
        clear(&mut session.steps);
    }
    plan
}

#[test]
fn both_languages_compile_to_the_same_plan() {
    let from_js = javascript(include_str!(
        "../../../../fixtures/load-tests/keep-alive.js"
    ))
    .unwrap();
    let from_toml = toml(include_str!(
        "../../../../fixtures/load-tests/keep-alive.toml"
    ))
    .unwrap();
    assert_eq!(bare(from_js), bare(from_toml));
}

#[test]
fn what_is_printed_compiles_to_the_same_plan() {
    let text = "definition.setTarget('https://a.example');
        definition.setUserAgent('m\\u00fc \"x\"');
        definition.setArrivalPhases([{ duration: 0.25, rate: 1e-3, max_clients: 9, name: 'a' }]);
        definition.session('a', 0.1, (s) => {
          s.get('/\\u00e4?q=\"', { headers: { A: '1', a: '\\\\ \"' } });
          s.times(3, (c) => { c.post('/x', { body: 'line\\nline' }); c.forEver((d) => { d.get('/'); d.waitUniform(0.1, 0.3); }); });
        });";
    let plan = javascript(text).unwrap();
    let printed = plan.to_toml();
    let again = toml(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(bare(plan), bare(again), "{printed}");
}

/// A step as TOML, with repetitions down to this depth.
fn step(depth: u32) -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        ("[a-z]{1,5}", "[a-z]{0,3}")
            .prop_map(|(path, tag)| format!("{{ get = \"/{path}\", tag = \"t{tag}\" }}")),
        ("[a-z ]{1,5}", "[a-z]{1,5}", -1_000i64..1_000, any::<bool>()).prop_map(
            |(text, name, number, truth)| format!(
                "{{ get = \"/\", check = {{ status = \"2xx\", contains = \"{text}\", json = {{ \"$['{text}'][3].{name}\" = {number}, \"$.n{name}\" = {truth}, \"$.x\" = 1.5, \"$.y\" = \"{text}\" }} }} }}"
            )
        ),
        (0u32..100_000).prop_map(|ms| format!("{{ wait = \"{ms}ms\" }}")),
        (0u32..100_000).prop_map(|ms| format!("{{ wait-exp = {} }}", f64::from(ms) / 1e3)),
        (0u32..100, 100u32..200)
            .prop_map(|(low, high)| format!("{{ wait-uniform = [{low}, {high}] }}")),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let inner = proptest::collection::vec(step(depth - 1), 1..4);
    let repeat = (1u32..50, inner).prop_map(|(times, steps)| {
        format!("{{ times = {times}, steps = [{}] }}", steps.join(", "))
    });
    prop_oneof![3 => leaf, 1 => repeat].boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_plan_is_printed_and_read_back(
        steps in proptest::collection::vec(step(3), 0..8),
        weight in 0.001f64..1e6,
        rate in 0.001f64..1e6,
        seconds in 1u32..600_000,
    ) {
        let text = format!(
            "[[arrivals]]\nduration = {seconds}\nrate = {rate:?}\n[[session]]\nname = \"s\"\nweight = {weight:?}\nsteps = [{{ get = \"/first\" }}, {}]\n",
            steps.join(", ")
        );
        let plan = toml(&text);
        prop_assert!(plan.is_ok(), "{:?}\n{}", plan, text);
        let plan = bare(plan.unwrap());
        let again = toml(&plan.to_toml());
        prop_assert_eq!(Ok(plan), again.map(bare));
    }

    #[test]
    fn any_text_is_a_plan_or_refused_with_lines_of_its_own(text in "(\\[\\[session\\]\\]|\\[\\[arrivals\\]\\]|steps|name|rate|get|times|=|\\[|\\{|\\}|\\]|\"|,|[0-9]{1,3}|\n| ){0,40}") {
        if let Err(error) = toml(&text) {
            let lines = text.lines().count() + 1;
            for problem in error.problems() {
                prop_assert!(problem.line.is_none_or(|line| (1..=lines).contains(&line)), "{:?}", problem);
            }
        }
    }
}
