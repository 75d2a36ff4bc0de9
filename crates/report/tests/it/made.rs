//! A bench that was never run, with everything that a page can show: 30 ms there and back, TLS, a
//! server that closes connections after 40 requests, a few failures, and at ten connections a level
//! that changes midway.

use intact_experiment::Rng;
use intact_experiments::bench::{BenchFacts, Charts};
use intact_findings::{BenchParts, Document, Parts};
use intact_ledger::{
    Caveat, Close, CloseKind, ClosePoint, Closed, Connection, ConnectionBytes, ConnectionId, Event,
    Evidence, Exchange, Failure, Nanos, Outcome, Probes, Producer, Reuse, Round, Run, Side, Sink,
    Sockets, Span, Tally, Vantage, Variant,
};
use intact_report::documents;
use intact_traffic::timeline::Timeline;

const MS: f64 = 1e6;
const VARIANTS: [(&str, u64); 6] = [
    ("on", 1),
    ("off", 1),
    ("on", 10),
    ("off", 10),
    ("on", 50),
    ("off", 50),
];

/// The page of a document in HTML.
pub(crate) fn html(document: &Document) -> String {
    intact_report::html::write(&[documents::page(document)]).unwrap()
}

/// The run's head; what a person or a server says is hostile.
fn head(hostile: &str) -> Run {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let argv = [
        "intact",
        "bench",
        "https://my.server/health",
        "-c",
        "1,10,50",
        hostile,
    ];
    let argv = argv.map(str::to_owned);
    let mut run = Run::new(Producer::Bench, "0.1.0", Vantage::Client, started, 1, &argv)
        .with_evidence(Evidence::ALL);
    run.subject = Some(format!("https://my.server/health{hostile}"));
    run.link = Some("rtt=30ms".to_owned());
    run.seed = Some(7);
    run.varied = vec!["keepalive".to_owned(), "c".to_owned()];
    run.host.kernel = Some(format!("6.18{hostile}"));
    run.host.cpus = Some(2);
    run.host.os = "linux".to_owned();
    run.host.arch = "x86_64".to_owned();
    for (on, c) in VARIANTS {
        let c = c.to_string();
        let axes = [
            ("keepalive", on),
            ("c", &c),
            ("tls", "1.3"),
            ("http", "1.1"),
            ("resume", "off"),
            ("streams", "1"),
        ];
        run.variants.push(Variant {
            name: format!("keepalive={on} c={c}"),
            axes: axes
                .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
                .into(),
        });
    }
    run
}

/// One slot of one variant in one round: a connection after the other.
struct Slot<'a> {
    variant: u32,
    round: u32,
    keep: bool,
    c: u64,
    at: f64,
    tally: &'a mut Tally,
    timeline: &'a mut Timeline,
    first: &'a mut Vec<Exchange>,
    rng: &'a mut Rng,
    next: &'a mut u64,
}

impl Slot<'_> {
    /// Nanoseconds around `ms`, with a tail to the slow side.
    fn around(&mut self, ms: f64) -> f64 {
        let noise = self.rng.unit() + self.rng.unit() + self.rng.unit();
        let tail = if self.rng.unit() < 0.02 { 1.6 } else { 1.0 };
        ms * MS * (0.92 + 0.06 * noise) * tail
    }

    fn record(&mut self, event: Event<'_>) {
        self.tally.record(event);
        self.timeline.record(event);
    }

    fn run(&mut self, requests: u64) {
        let mut carried = 0;
        let mut open: Option<ConnectionId> = None;
        for nth in 0..requests {
            let fresh = open.is_none();
            let begin = self.at;
            let mut now = begin;
            let mut one = Exchange::new(*self.next, Nanos(begin as u64));
            *self.next += 1;
            if fresh {
                let id = ConnectionId(*self.next);
                let mut connection = Connection::new(id, Nanos(begin as u64));
                let connect = self.around(30.0);
                let ssl = self.around(33.0);
                connection.variant = Some(self.variant);
                connection.round = Some(self.round);
                connection.setup.connect = span(now, connect);
                connection.setup.ssl = span(now + connect, ssl);
                one.spans.connect = connection.setup.connect;
                one.spans.ssl = connection.setup.ssl;
                now += connect + ssl;
                self.record(Event::Opened(&connection));
                open = Some(id);
                carried = 0;
            }
            let slower = if self.c == 10 && self.round > 12 {
                9.0
            } else {
                0.0
            };
            let wait = self.around(30.0 + self.c as f64 / 8.0 + slower);
            let send = self.around(0.05);
            let receive = self.around(0.4);
            one.spans.send = span(now, send);
            one.spans.wait = span(now + send, wait);
            one.spans.receive = span(now + send + wait, receive);
            now += send + wait + receive;
            one.connection = open;
            one.variant = Some(self.variant);
            one.round = Some(self.round);
            one.reuse = Some(if fresh { Reuse::Fresh } else { Reuse::Reused });
            one.warmup = self.keep && nth == 0;
            one.status = Some(200);
            one.end = Nanos(now as u64);
            if self.rng.unit() < 0.001 {
                one.outcome = Outcome::Failed(Failure::Reset);
            }
            carried += 1;
            self.record(Event::Exchange(&one));
            if self.first.len() < 100 {
                self.first.push(one);
            }
            self.at = now + 0.02 * MS;
            let last = nth + 1 == requests;
            if !self.keep || carried == 40 || last {
                let by_server = self.keep && carried == 40;
                self.close(open.take(), now, carried, by_server);
            }
        }
    }

    fn close(&mut self, id: Option<ConnectionId>, now: f64, carried: u64, by_server: bool) {
        let Some(connection) = id else { return };
        let (by, announced_by) = if by_server {
            (Side::Server, Some(Side::Server))
        } else {
            (Side::Client, None)
        };
        let closed = Closed {
            connection,
            variant: Some(self.variant),
            round: Some(self.round),
            close: Close {
                at: Nanos(now as u64),
                by: Some(by),
                how: Some(CloseKind::Fin),
                other_end: None,
                announced_by,
                moment: Some(ClosePoint::AfterExchange),
                exchanges: Some(carried),
                bytes: ConnectionBytes::default(),
                probes: Probes::default(),
            },
        };
        self.record(Event::Closed(&closed));
    }
}

fn span(from: f64, nanos: f64) -> Option<Span> {
    Some(Span::new(Nanos(from as u64), Nanos((from + nanos) as u64)))
}

/// A bench with this number of requests in each variant and round; `hostile` is put wherever a
/// person or a server may put text.
pub(crate) fn bench(requests: u64, hostile: &str) -> Document {
    let run = head(hostile);
    let mut tally = Tally::new();
    let mut timeline = Timeline::of_variants();
    let mut first = Vec::new();
    let mut rng = Rng::seeded(7);
    let mut next = 1;
    let mut at = 0.0;
    for (nth, time_wait) in [5, 305].into_iter().enumerate() {
        tally.record(Event::Sockets(&Sockets {
            at: Nanos(nth as u64),
            time_wait,
            free_ports: Some(28_000 - time_wait),
        }));
    }
    tally.record(Event::Caveat(&Caveat::new(
        "made-up",
        format!("this run was made up{hostile}"),
    )));
    for (index, (on, c)) in VARIANTS.into_iter().enumerate() {
        let mut calls = Vec::new();
        for round in 1..=20u32 {
            let begin = at;
            let mut end = begin;
            for _ in 0..c.min(requests) {
                let mut slot = Slot {
                    variant: index as u32,
                    round,
                    keep: on == "on",
                    c,
                    at: begin,
                    tally: &mut tally,
                    timeline: &mut timeline,
                    first: &mut calls,
                    rng: &mut rng,
                    next: &mut next,
                };
                slot.run((requests / c).max(1));
                end = f64::max(end, slot.at);
            }
            tally.record(Event::Round(&Round {
                client_cpu: Some(3_000_000),
                server_cpu: Some(6_000_000),
                ..Round::new(
                    index as u32,
                    round,
                    Span::new(Nanos(begin as u64), Nanos(end as u64)),
                )
            }));
            at = end + MS;
        }
        first.append(&mut calls);
    }
    let facts = BenchFacts::new(&run, &tally, &first).unwrap();
    let charts = Charts::new(&run, &tally, &facts, &timeline);
    Document::new(run, Parts::Bench(Box::new(BenchParts { facts, charts })))
}
