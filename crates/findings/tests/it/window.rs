//! A window judges a part of a run alone: what ran before changes its verdict only through the
//! connections that it uses.

use intact_document::Place;
use intact_document::requirement::Requirement;
use intact_ledger::{
    Caveat, CodeStack, Connection, ConnectionId, Event, Evidence, Exchange, Nanos, Origin, Outcome,
    Owner, Producer, Protocol, Reuse, Run, Scheme, Setup, Sink, Span, StackFrame, StackId, Vantage,
};
use intact_traffic::{ObservedFacts, TrafficAnalysis, Window};

const MS: u64 = 1_000_000;

/// A run with a window next to it.
struct Recording {
    whole: TrafficAnalysis,
    window: Option<Window>,
    exchanges: u64,
}

impl Recording {
    fn new() -> Recording {
        let started = "2026-01-01T00:00:00Z".parse().unwrap();
        let run = Run::new(Producer::Watch, "0", Vantage::OnPath, started, 1, &[])
            .with_evidence(Evidence::ALL);
        Recording {
            whole: TrafficAnalysis::new(&run),
            window: None,
            exchanges: 0,
        }
    }

    fn begin(&mut self, at: u64) {
        self.window = Some(Window::begin(&self.whole, Nanos(at * MS)));
    }

    fn record(&mut self, event: Event<'_>) {
        self.whole.record(event);
        if let Some(window) = &mut self.window {
            window.record(event);
        }
    }

    fn open(&mut self, id: u64, at: u64) {
        self.record(Event::Opened(&connection(id, at)));
    }

    fn exchange(&mut self, id: u64, at: u64, reuse: Reuse) {
        self.exchanges += 1;
        let mut one = Exchange::new(self.exchanges, Nanos(at * MS));
        one.end = Nanos((at + 1) * MS);
        one.connection = Some(ConnectionId(id));
        one.reuse = Some(reuse);
        one.status = Some(200);
        one.outcome = Outcome::Ok;
        self.record(Event::Exchange(&one));
    }

    fn facts(&self) -> ObservedFacts {
        self.window.as_ref().unwrap().facts()
    }
}

fn connection(id: u64, at: u64) -> Connection {
    let mut one = Connection::new(ConnectionId(id), Nanos(at * MS));
    one.origin = Some(Origin {
        scheme: Scheme::Http,
        host: "api.example".into(),
        port: 80,
    });
    one.owner = Some(Owner {
        pid: 7,
        command: "tests".into(),
    });
    one.protocol = Some(Protocol::Http11);
    one.setup = Setup {
        connect: Some(Span::new(Nanos(at * MS), Nanos(at * MS + 1))),
        ..Setup::default()
    };
    one
}

fn passes(facts: &ObservedFacts, requirement: &str) -> bool {
    let requirement: Requirement = requirement.parse().unwrap();
    requirement.evaluate(facts).passed()
}

#[test]
fn a_place_that_was_recorded_before_is_known_in_the_window() {
    let mut run = Recording::new();
    run.record(Event::Stack(&CodeStack {
        id: StackId(1),
        frames: vec![StackFrame {
            function: "charge".into(),
            file: Some("app/billing.py".into()),
            line: Some(41),
        }],
        own: Some(0),
    }));
    run.begin(10);
    for id in 1..6 {
        let mut one = connection(id, 20 * id);
        one.stack = Some(StackId(1));
        run.record(Event::Opened(&one));
        run.exchange(id, 20 * id, Reuse::Fresh);
    }
    let facts = run.facts();
    let places: Vec<String> = facts.findings[0].places.iter().map(Place::words).collect();
    assert_eq!(places, ["app/billing.py:41 charge: 4 connections"]);
}

#[test]
fn requests_on_a_connection_from_before_open_none() {
    let mut run = Recording::new();
    run.open(1, 0);
    run.exchange(1, 1, Reuse::Fresh);
    run.begin(10);
    run.exchange(1, 20, Reuse::Reused);
    run.exchange(1, 30, Reuse::Reused);
    let facts = run.facts();
    for held in [
        "connections == 0",
        "avoidable == 0",
        "reuse == 100%",
        "requests == 2",
    ] {
        assert!(passes(&facts, held), "{held}: {facts:?}");
    }
    assert!(facts.totals.setup_mean_ms.connect.is_unknown());
}

#[test]
fn a_connection_from_before_leaves_fewer_that_are_needed() {
    let mut run = Recording::new();
    run.open(1, 0);
    run.exchange(1, 1, Reuse::Fresh);
    run.begin(10);
    run.exchange(1, 20, Reuse::Reused);
    run.open(2, 30);
    run.exchange(2, 30, Reuse::Fresh);
    let facts = run.facts();
    assert_eq!(
        (
            facts.totals.counted.counts.connections.opened,
            facts.totals.counted.counts.connections.needed
        ),
        (1, 0)
    );
    assert!(passes(&facts, "avoidable == 1"), "{facts:?}");
}

#[test]
fn what_a_window_does_not_use_is_not_in_it() {
    let mut run = Recording::new();
    for id in 1..=3 {
        run.open(id, 0);
        run.exchange(id, id, Reuse::Fresh);
    }
    run.begin(10);
    run.open(4, 20);
    run.exchange(4, 20, Reuse::Fresh);
    run.exchange(4, 30, Reuse::Reused);
    let facts = run.facts();
    assert!(passes(&facts, "avoidable == 0"), "{facts:?}");
    assert!(passes(&facts, "connections == 1"), "{facts:?}");
    assert_eq!(facts.totals.open_before, 0);
}

#[test]
fn an_opening_that_is_recorded_late_is_from_before() {
    let mut run = Recording::new();
    run.begin(10);
    run.open(1, 5);
    run.record(Event::Revised(&connection(1, 5)));
    run.exchange(1, 20, Reuse::Reused);
    run.record(Event::Revised(&connection(1, 5)));
    let facts = run.facts();
    assert!(passes(&facts, "connections == 0"), "{facts:?}");
    assert_eq!(
        (
            facts.totals.open_before,
            facts.totals.counted.counts.requests.total
        ),
        (1, 1)
    );
}

#[test]
fn an_exchange_that_ended_before_the_window_is_not_in_it() {
    let mut run = Recording::new();
    run.open(1, 0);
    run.begin(10);
    run.exchange(1, 5, Reuse::Fresh);
    assert_eq!(run.facts().totals.counted.counts.requests.total, 0);
}

#[test]
fn what_the_whole_run_lacks_a_window_lacks_too() {
    let mut run = Recording::new();
    run.record(Event::Caveat(&Caveat::incomplete(
        "cut",
        "connections are missing",
    )));
    run.begin(10);
    run.open(1, 20);
    run.exchange(1, 20, Reuse::Fresh);
    let facts = run.facts();
    assert!(!passes(&facts, "avoidable == 0"), "{facts:?}");
    assert!(!passes(&facts, "lookups == 0"), "{facts:?}");
}

#[test]
fn a_window_without_traffic_meets_no_gate() {
    let mut run = Recording::new();
    run.open(1, 0);
    run.exchange(1, 0, Reuse::Fresh);
    run.begin(100);
    let nothing = run.facts();
    for gate in [
        "avoidable == 0",
        "failed == 0",
        "reused == 0",
        "requests == 0",
        "findings == 0",
    ] {
        assert!(!passes(&nothing, gate), "{gate}");
    }
    run.exchange(1, 110, Reuse::Reused);
    assert!(passes(&run.facts(), "avoidable == 0"));
}
