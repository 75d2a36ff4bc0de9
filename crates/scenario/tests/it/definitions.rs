//! What JavaScript becomes.

use super::javascript;
use intact_scenario::{Plan, Request, Session, Step, Wait};
use std::time::Duration;

fn plan(text: &str) -> Plan {
    javascript(text).unwrap_or_else(|error| panic!("{error}"))
}

fn request(step: &Step) -> &Request {
    let Step::Request(request) = step else {
        panic!("{step:?}")
    };
    request
}

fn repeat(step: &Step) -> (Option<u64>, &[Step]) {
    let Step::Repeat { times, steps, .. } = step else {
        panic!("{step:?}")
    };
    (*times, steps)
}

fn session(steps: &str) -> Session {
    let text = format!("definition.session('only', function (session) {{ {steps} }});");
    plan(&text).sessions.remove(0)
}

#[test]
fn a_definition_with_all_that_is_documented_becomes_a_plan() {
    let text = include_str!("../../../../fixtures/load-tests/keep-alive.js");
    let plan = plan(text);
    let target = plan.target.as_ref().unwrap();
    assert_eq!(target.url, "testapp.example:8080");
    assert_eq!(plan.phases.len(), 2);
    assert_eq!(plan.phases[0].duration, Duration::from_secs(60));
    assert_eq!(
        (plan.phases[1].rate, plan.phases[1].max_clients),
        (4.5, Some(100))
    );
    let names: Vec<&str> = plan.sessions.iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["keep-alive", "connection-close"]);
    assert_eq!(plan.sessions[0].requests(), Some(27));
    assert_eq!(plan.sessions[1].requests(), Some(25));
    assert_eq!(plan.share(&plan.sessions[0]), 0.5);
    assert_eq!(plan.mean_requests(), Some(26.0));
    let [first, kept] = plan.sessions[0].each_request()[..] else {
        panic!("{:?}", plan.sessions[0])
    };
    assert_eq!(
        (&*first.tag, &*kept.tag),
        ("keep-alive-first", "keep-alive")
    );
    let close = plan.sessions[1].each_request()[0];
    assert_eq!(
        close.headers,
        [("Connection".to_owned(), "close".to_owned())]
    );
    let (times, steps) = repeat(&plan.sessions[1].steps[0]);
    assert_eq!(times, Some(25));
    assert_eq!(
        steps[1],
        Step::Wait(Wait::Exponential(Duration::from_millis(500)))
    );
}

#[test]
fn the_global_context_is_the_session_that_is_being_defined() {
    let plan = plan(
        "definition.session('a', function () {
           context.get('/outside');
           context.times(2, function () { context.get('/inside'); context.waitUniform(1, 2); });
         });
         definition.session('b', 3, (session) => { session.get('/other', { tag: 't' }); });",
    );
    let steps = &plan.sessions[0].steps;
    assert_eq!(request(&steps[0]).url, "/outside");
    let (times, inner) = repeat(&steps[1]);
    assert_eq!((times, &*request(&inner[0]).url), (Some(2), "/inside"));
    let seconds = Duration::from_secs;
    assert_eq!(inner[1], Step::Wait(Wait::Uniform(seconds(1), seconds(2))));
    assert_eq!(plan.sessions[1].weight, 3.0);
    assert_eq!(plan.share(&plan.sessions[1]), 0.75);
    assert_eq!((plan.target.clone(), plan.phases.len()), (None, 0));
    assert_eq!(plan.clients(), None);
}

#[test]
fn a_loop_costs_one_evaluation_and_loops_of_javascript_unroll() {
    let one =
        session("let n = 0; session.times(1000000, (context) => { n++; context.get('/' + n); });");
    let (times, steps) = repeat(&one.steps[0]);
    assert_eq!((times, &*request(&steps[0]).url), (Some(1_000_000), "/1"));
    let one = session("for (let i = 1; i <= 3; i++) session.get('/page/' + i);");
    let urls: Vec<&str> = one.each_request().iter().map(|one| &*one.url).collect();
    assert_eq!(urls, ["/page/1", "/page/2", "/page/3"]);
}

#[test]
fn methods_bodies_and_placeholders_are_those_of_the_documentation() {
    let one = session(
        "session.post('/a', { body: 'text', headers: { 'X-N': 1 } });
         session.put('/b', { payload: { name: 'a b', more: '&' } });
         session.delete('/users/:id?x=:id', { params: { id: 7 }, gzip: true });
         session.patch('/d', { payload: JSON.stringify({ n: 1 }), headers: { 'content-type': 'application/json' } });
         session.head('https://h/x/y?z');",
    );
    let all = one.each_request();
    let methods: Vec<&str> = all.iter().map(|one| &*one.method).collect();
    assert_eq!(methods, ["POST", "PUT", "DELETE", "PATCH", "HEAD"]);
    assert_eq!((&*all[0].body, &*all[0].headers[0].1), (&b"text"[..], "1"));
    assert_eq!(all[1].body, b"name=a+b&more=%26");
    assert_eq!(all[1].headers[0].1, "application/x-www-form-urlencoded");
    assert_eq!(all[2].url, "/users/7?x=7");
    assert_eq!(
        all[2].headers,
        [("Accept-Encoding".to_owned(), "gzip".to_owned())]
    );
    assert_eq!(
        (&*all[3].body, all[3].headers.len()),
        (&b"{\"n\":1}"[..], 1)
    );
    let tags: Vec<&str> = all.iter().map(|one| &*one.tag).collect();
    assert_eq!(
        tags,
        [
            "POST /a",
            "PUT /b",
            "DELETE /users/7",
            "PATCH /d",
            "HEAD /x/y"
        ]
    );
}

#[test]
fn weights_by_name_replace_others_and_a_session_may_be_switched_off() {
    let plan = plan(
        "definition.session('a', 9, (s) => s.get('/a'));
         definition.session('b', (s) => s.get('/b'));
         definition.session('off', (s) => s.forEver((c) => c.get('/c')));
         definition.setSessionWeights({ a: 1, b: 3, off: 0, 'long gone': 0 });",
    );
    let weights: Vec<f64> = plan.sessions.iter().map(|one| one.weight).collect();
    assert_eq!(weights, [1.0, 3.0, 0.0]);
    // one that no client picks may be without an end
    assert_eq!(plan.most_requests(), Some(1));
}

#[test]
fn a_session_without_an_end_has_no_number_of_requests() {
    let plan = plan(
        "definition.setArrivalPhases([{ duration: 10, rate: 2, name: 'warm' }]);
         definition.session('a', (s) => { s.get('/'); s.forEver((c) => { c.get('/c'); c.wait(0.1); }); });",
    );
    assert_eq!(plan.sessions[0].requests(), None);
    assert_eq!(plan.mean_requests(), None);
    assert_eq!(plan.clients(), Some(20.0));
    assert_eq!(repeat(&plan.sessions[0].steps[1]).0, None);
}

#[test]
fn what_concerns_a_services_machines_is_noted_with_its_line() {
    let plan = plan(
        "definition.setTestOptions({ cluster: { sizing: 'preflight' } });\n\
         defines = {};\n\
         definition.setUserAgent('mine/1');\n\
         definition.session('a', (s) => s.get('/'));",
    );
    assert_eq!(plan.user_agent.as_deref(), Some("mine/1"));
    assert_eq!(plan.notes.len(), 1);
    assert_eq!(plan.notes[0].line, 1);
}
