//! Every mistake is named with its line.

use super::{javascript, toml};
use intact_scenario::{Plan, ScenarioError};

/// The messages, without the name of the file.
fn messages(outcome: Result<Plan, ScenarioError>) -> Vec<String> {
    let error = outcome.map(|plan| panic!("{plan:?}")).unwrap_err();
    let lines = error.to_string();
    let lines = lines.lines().map(|line| {
        let (_, rest) = line.split_once(':').unwrap();
        rest.to_owned()
    });
    lines.collect()
}

/// The definition has one mistake, which is in this line and named by these words.
fn refused(text: &str, line: usize, words: &str) {
    let all = messages(javascript(text));
    assert!(
        all.len() == 1 && all[0].starts_with(&format!("{line}: ")) && all[0].contains(words),
        "{text}: {all:?}"
    );
}

/// The same for a step in line 3.
fn refused_step(step: &str, words: &str) {
    let text = format!(
        "// a comment\ndefinition.session('a', function (session) {{\n{step}\nsession.get('/');\n}});"
    );
    refused(&text, 3, words);
}

#[test]
fn values_that_make_no_sense_are_refused_with_their_line() {
    for (step, words) in [
        ("session.wait(-1);", "-1 is no time"),
        ("session.wait(NaN);", "NaN"),
        ("session.wait(Infinity);", "Infinity"),
        ("session.wait();", "undefined"),
        ("session.wait(1e9);", "longer than a week"),
        ("session.wait(2, { random: true });", "waitUniform"),
        ("session.waitExp(-0.5);", "-0.5 is no time"),
        ("session.waitUniform(2, 1);", "longer one"),
        (
            "session.times(0, (c) => c.get('/'));",
            "0 is no number of times",
        ),
        ("session.times(-3, (c) => c.get('/'));", "-3 is no number"),
        ("session.times(1.5, (c) => c.get('/'));", "1.5 is no number"),
        (
            "session.times(1e12, (c) => c.get('/'));",
            "more than 1,000,000",
        ),
        (
            "session.times(1e5, (c) => c.times(1e5, (c) => c.get('/')));",
            "more than 10,000,000 requests",
        ),
        ("session.times(2, (c) => {});", "no steps"),
        ("session.times(2);", "has to be a function"),
        ("session.times(2, (c, i) => c.get('/' + i));", "unroll"),
        ("session.times(2, async (c) => c.get('/'));", "async"),
        ("session.forEver((c) => c.wait(1));", "no request"),
        ("session.get(7);", "has to be a string"),
        ("session.get('/a\\tb');", "the URL has a control character"),
        ("session.get('/', { tag: '' });", "tag is empty"),
        ("session.get('/', { check: {} });", "check: of nothing"),
        ("session.get('/', { check: 'x' });", "have to be an object"),
        (
            "session.get('/', { check: { contains: '' } });",
            "every body",
        ),
        (
            "session.get('/', { check: { contains: 7 } });",
            "has to be a string",
        ),
        (
            "session.get('/', { check: { status: 200, state: 1 } });",
            "state in the check of get",
        ),
        (
            "session.get('/', { gzip: true, check: { contains: 'a' } });",
            "which the server may compress",
        ),
        (
            "session.get('/', { check: { json: { '$.a': [1] } } });",
            "a text, a number, true or false",
        ),
        (
            "session.get('/', { check: { json: { '$.a': () => 1 } } });",
            "a text, a number, true or false",
        ),
        (
            "session.get('/', { check: { json: { 'a': 1 } } });",
            "is no path",
        ),
        (
            "session.get('/', { check: { json: { '$.a[*]': 1 } } });",
            "is no path",
        ),
        (
            "session.get('/', { check: { json: { '$..a': 1 } } });",
            "is no path",
        ),
        (
            "session.get('/', { headers: { 'a b': 1 } });",
            "no name of a header field",
        ),
        (
            "session.get('/', { headers: { a: 'x\\r\\ny: z' } });",
            "control character",
        ),
        (
            "session.get('/', { headers: { 'Content-Length': 3 } });",
            "follows from the body",
        ),
        (
            "session.get('/', { headers: 'Connection: close' });",
            "object",
        ),
        ("session.post('/', { body: 5 });", "string or an object"),
        (
            "definition.session('b', (s) => s.get('/'));",
            "inside of another",
        ),
    ] {
        refused_step(step, words);
    }
}

#[test]
fn functions_that_we_do_not_have_are_all_named_with_their_lines() {
    let text = "definition.session('a', function (session) {
  session.fetch('/');
  session.ge('/');
  var user = session.ds.pickFrom(session.ds.loadStructured('users.csv'));
  session.get('/users/' + user.get('id'), { extraction: {} });
  session.check('status', session.lastHttpStatus(), '<=', 400);
});
definition.setArivalPhases([]);";
    let all = messages(javascript(text));
    for expected in [
        "2: fetch is not supported",
        "3: ge is not supported: did you mean get?",
        "4: ds.loadStructured is not supported",
        "4: ds.pickFrom is not supported",
        "5: the option extraction of get is not supported",
        "6: lastHttpStatus is not supported",
        "6: check is not supported",
        "8: definition.setArivalPhases is not supported: did you mean definition.setArrivalPhases?",
    ] {
        assert!(
            all.iter().any(|one| one.starts_with(expected)),
            "{expected}: {all:#?}"
        );
    }
}

#[test]
fn a_function_of_other_programs_is_named_with_where_to_look() {
    let words = "fetch is not defined; docs/reference/scenarios.md";
    refused_step("fetch('/');", words);
}

#[test]
fn loops_in_one_line_are_one_mistake() {
    refused_step(
        "session.times(1e6, (a) => a.times(1e6, (b) => b.times(1e6, (c) => c.get('/'))));",
        "repeat less",
    );
}

#[test]
fn an_endless_loop_is_stopped_and_named() {
    // the engine knows the lines of calls, not of loops
    refused(
        "\nf();\nfor (;;) {}\nfunction f() {}",
        2,
        "ran for more than 2 s",
    );
    refused(
        "function f() {\n  while (true) g();\n}\nfunction g() {}\nf();",
        2,
        "at or after this line",
    );
    // a loop that defines steps ends at the limit of steps
    refused_step("for (;;) session.get('/');", "more than 10,000 steps");
    refused("let s = 'x';\nfor (;;) s += s;", 2, "");
    refused(
        "const all = [];\nfor (;;)\n  all.push(new Array(1000).fill('x'));",
        3,
        "out of memory",
    );
    refused("function f() {\n  f();\n}\nf();", 2, "calls itself");
}

#[test]
fn a_function_of_the_engine_that_takes_too_long_does_not_hold_us_up() {
    let all = messages(javascript(
        "const a = []; a.length = 4294967295;\na.indexOf(1);",
    ));
    assert!(all[0].contains("ran for more than 2 s"), "{all:?}");
}

#[test]
fn mistakes_of_the_language_have_their_line_too() {
    refused(
        "definition.session('a', function (s) {\n  s.get('/';\n});",
        2,
        "SyntaxError",
    );
    refused("\nundefinedFunction();", 2, "not defined");
    refused("\nimport x from './x.js';", 2, "one file");
    refused("\nrequire('fs');", 2, "not defined");
    refused("\nthrow new TypeError('mine');", 2, "TypeError: mine");
    assert!(messages(javascript("throw 'a text';"))[0].contains("a text"));
    assert!(messages(javascript("a\0b"))[0].contains("definition"));
}

#[test]
fn what_the_sessions_lack_together_is_named() {
    assert!(messages(javascript(""))[0].contains("no session"));
    refused(
        "\ndefinition.session('a', (s) => s.wait(1));",
        2,
        "sends no request",
    );
    refused(
        "\ndefinition.session('a', 0, (s) => s.get('/'));",
        2,
        "weight 0",
    );
    refused(
        "definition.session('a', -1, (s) => s.get('/'));",
        1,
        "no weight",
    );
    refused(
        "definition.session('a', NaN, (s) => s.get('/'));",
        1,
        "\"NaN\" is no number",
    );
    let twice =
        "definition.session('a', (s) => s.get('/'));\ndefinition.session('a', (s) => s.get('/'));";
    refused(twice, 2, "after the one in line 1");
    let named = "definition.session('guest', (s) => s.get('/'));\ndefinition.setSessionWeights({ gest: 1 });";
    refused(named, 2, "did you mean \"guest\"?");
    refused("context.get('/');", 1, "outside of a session");
    let agent = "definition.session('a', (s) => s.get('/'));\ndefinition.setUserAgent('a\\nb: c');";
    refused(agent, 2, "control character");
    refused(
        "definition.setTargets(['a.example', 'b.example']);\ndefinition.session('a', (s) => s.get('/'));",
        1,
        "a second target",
    );
}

#[test]
fn arrival_phases_need_a_duration_and_a_rate() {
    for (phase, words) in [
        ("{ duration: 10, rate: 0 }", "a rate of 0 sends nothing"),
        ("{ duration: 10, rate: NaN }", "NaN"),
        ("{ duration: 10, rate: -5 }", "-5"),
        ("{ duration: 10, rate: 1e9 }", "10 million"),
        ("{ duration: 10 }", "undefined"),
        ("{ rate: 10 }", "duration"),
        ("{ duration: -10, rate: 1 }", "-10 is no time"),
        ("{ duration: 0, rate: 1 }", "no arrivals"),
        ("{ duration: 1, rate: 1, max_clients: 0 }", "max_clients"),
        (
            "{ duration: 1, rate: 1, session_weights: {} }",
            "session_weights of an arrival phase",
        ),
        ("7", "object"),
    ] {
        let text = format!(
            "definition.session('a', (s) => s.get('/'));\ndefinition.setArrivalPhases([{phase}]);"
        );
        refused(&text, 2, words);
    }
}

#[test]
fn what_is_thrown_and_is_no_error_has_its_line_too() {
    for (thrown, words) in [
        ("undefined", "threw undefined"),
        ("null", "threw null"),
        ("7", "threw 7"),
        ("'no'", "threw no"),
        ("{}", "threw object"),
    ] {
        let text = format!("definition.session('a', (s) => s.get('/'));\nthrow {thrown};");
        refused(&text, 2, words);
    }
}

#[test]
fn a_list_of_arrival_phases_without_one_is_refused() {
    let text = "definition.session('a', (s) => s.get('/'));\ndefinition.setArrivalPhases([]);";
    refused(text, 2, "a list without a phase");
}

#[test]
fn the_same_mistakes_in_toml_have_their_lines() {
    let session = "[[session]]\nname = \"a\"\nsteps = [\n  { get = \"/\" },\n";
    for (step, words) in [
        ("{ wait = -1 }", "-1 is no time"),
        ("{ wait = nan }", "NaN is no time"),
        ("{ wait = \"5 parsecs\" }", "parsecs"),
        (
            "{ times = 0, steps = [{ get = \"/\" }] }",
            "0 is no number of times",
        ),
        (
            "{ times = 99999999999, steps = [{ get = \"/\" }] }",
            "more than 1,000,000",
        ),
        ("{ times = 3 }", "no steps"),
        ("{ steps = [{ get = \"/\" }] }", "how often"),
        ("{ fetch = \"/\" }", "unknown field `fetch`"),
        ("{ gett = \"/\" }", "did you mean `get`"),
        ("{ get = \"/\", wait = 1 }", "two steps"),
        ("{ wait = 1, tag = \"x\" }", "belong to a request"),
        ("{ get = \"/\", headers = [\"close\"] }", "Name: value"),
        ("{}", "an empty step"),
    ] {
        let all = messages(toml(&format!("{session}  {step},\n]\n")));
        assert!(
            all[0].starts_with("5: ") && all[0].contains(words),
            "{step}: {all:?}"
        );
    }
    for (rate, words) in [
        ("0", "a rate of 0"),
        ("nan", "NaN"),
        ("\"0/s\"", "a rate of 0"),
    ] {
        let text = format!("[[arrivals]]\nduration = 5\nrate = {rate}\n{session}]");
        let all = messages(toml(&text));
        assert!(
            all[0].starts_with("1: ") && all[0].contains(words),
            "{all:?}"
        );
    }
}
