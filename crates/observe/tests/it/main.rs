//! The decisions of `observe`: bytes with times in, rows out. The captures of `audit` and the
//! programs of `watch` test TLS.

mod splits;

use intact_ledger::{
    CloseKind, ClosePoint, Closed, Connection, ConnectionId, Event, Exchange, Failure,
    FingerprintKey, Nanos, OtherEnd, Outcome, Phase, Reuse, Row, SetupPhase, Side as LedgerSide,
    Sink, Span,
};
use intact_observe::Side::{Client, Server};
use intact_observe::{Ending, ObservedConnection, ResponsePart, RunContext, TlsReading};
use intact_wire::tls::decrypt::KeyLog;

const MS: u64 = 1_000_000;

/// Stores the rows.
struct Run {
    rows: Vec<Row>,
    key: FingerprintKey,
    exchanges: u64,
}

impl RunContext for Run {
    fn record(&mut self, event: Event<'_>) {
        self.rows.record(event);
    }

    fn next_exchange(&mut self) -> u64 {
        self.exchanges += 1;
        self.exchanges
    }

    fn fingerprint_key(&self) -> &FingerprintKey {
        &self.key
    }

    fn add_secrets(&mut self, _client_random: &[u8; 32], _into: &mut KeyLog) -> bool {
        false
    }
}

/// One connection, set up from 1 to 2 ms, to 192.0.2.1:8080.
struct Observed {
    connection: ObservedConnection,
    run: Run,
}

impl Observed {
    fn new() -> Observed {
        Observed::begun(false)
    }

    fn begun(is_late: bool) -> Observed {
        let mut about = Connection::new(ConnectionId(1), Nanos(MS));
        about.peer = Some("192.0.2.1:8080".parse().unwrap());
        let mut connection = ObservedConnection::new(about, is_late, TlsReading::default());
        if !is_late {
            connection.establish(Span::new(Nanos(MS), Nanos(2 * MS)));
            connection.hear_client();
        }
        let run = Run {
            rows: Vec::new(),
            key: FingerprintKey::new(&[7; 32]),
            exchanges: 0,
        };
        Observed { connection, run }
    }

    fn client(mut self, at: u64, bytes: &[u8]) -> Observed {
        let at = Nanos(at * MS);
        self.connection.read(Client, bytes, at, &mut self.run);
        self
    }

    fn server(mut self, at: u64, bytes: &[u8]) -> Observed {
        let at = Nanos(at * MS);
        self.connection.read(Server, bytes, at, &mut self.run);
        self
    }

    fn end(mut self, by: intact_observe::Side, how: CloseKind, at: u64) -> Observed {
        let at = Nanos(at * MS);
        self.connection.end(by, how, at, &mut self.run);
        self
    }

    fn finish_rows(mut self, at: u64, ending: Ending) -> Vec<Row> {
        let at = Nanos(at * MS);
        self.connection.finish(at, ending, &mut self.run);
        self.run.rows
    }

    fn finish(self, at: u64, ending: Ending) -> Finished {
        let mut finished = Finished::default();
        for row in self.finish_rows(at, ending) {
            match row {
                Row::Opened(connection) | Row::Revised(connection) => {
                    finished.connection = Some(*connection);
                }
                Row::Exchange(exchange) => finished.exchanges.push(*exchange),
                Row::Closed(closed) => finished.closed = Some(closed),
                _ => {}
            }
        }
        for exchange in &finished.exchanges {
            let spans = Phase::ALL.iter();
            let spans = spans.filter_map(|&phase| exchange.spans.of(phase));
            let sum: u64 = spans.map(Span::nanos).sum();
            assert_eq!(sum, exchange.latency(), "{exchange:#?}");
        }
        finished
    }
}

/// The rows of an ended connection.
#[derive(Debug, Default, PartialEq)]
struct Finished {
    connection: Option<Connection>,
    exchanges: Vec<Exchange>,
    closed: Option<Closed>,
}

impl Finished {
    fn outcomes(&self) -> Vec<Option<Failure>> {
        let outcomes = self.exchanges.iter();
        outcomes
            .map(|exchange| exchange.outcome.failure())
            .collect()
    }

    fn moment(&self) -> Option<ClosePoint> {
        self.closed.as_ref().unwrap().close.moment
    }

    fn origin(&self) -> String {
        let connection = self.connection.as_ref().unwrap();
        connection.origin.as_ref().unwrap().to_string()
    }
}

const GET: &[u8] = b"GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const PART: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe";

#[test]
fn a_body_until_close_is_complete_unless_the_connection_broke() {
    let begun = || {
        Observed::new()
            .client(3, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            .server(4, b"HTTP/1.1 200 OK\r\n\r\nbody")
    };
    let outcome = |observed: Observed, ending| observed.finish(9, ending).exchanges[0].outcome;
    let ended = |by, how| {
        outcome(
            begun().end(by, how, 5).end(Server, how, 6),
            Ending::Observed,
        )
    };
    assert_eq!(ended(Server, CloseKind::Fin), Outcome::Ok);
    // half-closed: it still reads
    assert_eq!(ended(Client, CloseKind::Fin), Outcome::Ok);
    let hung_up = Outcome::Failed(Failure::ClientClosed);
    assert_eq!(ended(Client, CloseKind::Rst), hung_up);
    // no FIN of the server ends the body
    let closed = || begun().end(Client, CloseKind::Fin, 5);
    assert_eq!(outcome(closed(), Ending::Observed), hung_up);
    let refused = closed().end(Client, CloseKind::Rst, 6);
    assert_eq!(outcome(refused, Ending::Observed), hung_up);
    let reset = Outcome::Failed(Failure::Reset);
    assert_eq!(ended(Server, CloseKind::Rst), reset);
    let aborted = Outcome::Failed(Failure::Aborted);
    assert_eq!(outcome(begun(), Ending::Observed), aborted);
    assert_eq!(outcome(begun(), Ending::Unobserved), Outcome::Unknown);
}

#[test]
fn a_client_that_closes_before_the_response_is_complete_is_client_closed() {
    for how in [CloseKind::Fin, CloseKind::Rst] {
        for response in [&b""[..], PART] {
            let mut one = Observed::new().client(3, GET);
            if !response.is_empty() {
                one = one.server(4, response);
            }
            let one = one.end(Client, how, 9);
            // the server sends on until it learns of it
            let one = match how {
                CloseKind::Fin if !response.is_empty() => one.server(15, b"o"),
                _ => one,
            };
            let one = one.finish(20, Ending::Observed);
            assert_eq!(one.outcomes(), [Some(Failure::ClientClosed)], "{how:?}");
            // it failed when the client closed
            assert_eq!(one.exchanges[0].end, Nanos(9 * MS));
            assert_eq!(one.moment(), Some(ClosePoint::MidExchange));
        }
    }
}

#[test]
fn an_exchange_whose_response_was_left_unread_ends_with_its_last_bytes() {
    let closed_at = |how, at| {
        let one = Observed::new().client(3, GET).server(4, PART);
        one.end(Client, how, at).finish(300, Ending::Observed)
    };
    // a RST shows bytes that were not read, and they had come long before
    for (how, at, end) in [
        (CloseKind::Rst, 200, 4),
        (CloseKind::Rst, 90, 90),
        (CloseKind::Fin, 200, 200),
    ] {
        let one = closed_at(how, at);
        assert_eq!(one.outcomes(), [Some(Failure::ClientClosed)]);
        let exchange = &one.exchanges[0];
        assert_eq!(exchange.end, Nanos(end * MS), "{how:?} {at}");
        assert_eq!(exchange.is_unread(), end == 4, "{how:?} {at}");
    }
}

#[test]
fn a_response_that_is_complete_after_a_half_close_is_ok() {
    let one = Observed::new()
        .client(3, GET)
        .end(Client, CloseKind::Fin, 4);
    let one = one.server(5, OK).end(Server, CloseKind::Fin, 6);
    let one = one.finish(6, Ending::Observed);
    assert_eq!(one.outcomes(), [None]);
}

#[test]
fn a_response_to_a_client_that_had_closed_both_directions_is_client_closed() {
    let ends: [&[(intact_observe::Side, CloseKind)]; 3] = [
        &[(Client, CloseKind::Rst)],
        &[(Client, CloseKind::Rst), (Server, CloseKind::Fin)],
        &[(Server, CloseKind::Fin), (Client, CloseKind::Rst)],
    ];
    for ends in ends {
        let mut one = Observed::new()
            .client(3, GET)
            .end(Client, CloseKind::Fin, 4)
            .server(8, OK);
        for (nth, &(by, how)) in ends.iter().enumerate() {
            one = one.end(by, how, 8 + nth as u64);
        }
        let one = one.finish(11, Ending::Observed);
        assert_eq!(one.outcomes(), [Some(Failure::ClientClosed)], "{ends:?}");
        let exchange = &one.exchanges[0];
        // it failed when the client closed, and the program has seen no status
        assert_eq!((exchange.end, exchange.status), (Nanos(4 * MS), None));
        assert_eq!(one.moment(), Some(ClosePoint::MidExchange));
        assert_eq!(one.closed.as_ref().unwrap().close.exchanges, Some(1));
    }
}

#[test]
fn a_run_that_is_stopped_aborts_open_exchanges() {
    let one = Observed::new().client(3, GET).server(4, PART);
    let one = one.finish(9, Ending::Observed);
    assert_eq!(one.outcomes(), [Some(Failure::Aborted)]);
}

#[test]
fn the_outcome_of_a_response_whose_end_was_not_observed_is_unknown() {
    let one = Observed::new().client(3, GET).server(4, PART);
    let one = one.finish(9, Ending::Unobserved);
    assert_eq!(one.exchanges[0].outcome, Outcome::Unknown);
    assert!(one.closed.is_none());
    // where the recording lacks nothing until it ends, the request still waits then
    let mut one = Observed::new().client(3, GET);
    one.connection.note_recorded_until(Nanos(50 * MS));
    let one = one.finish(9, Ending::Unobserved);
    assert_eq!(one.exchanges[0].outcome, Outcome::Pending);
    assert_eq!(one.exchanges[0].end, Nanos(50 * MS));
}

#[test]
fn the_failure_without_a_response_depends_on_reuse_and_the_kind_of_close() {
    let fresh = |how| {
        let one = Observed::new().client(3, GET).end(Server, how, 4);
        one.finish(4, Ending::Observed).outcomes()
    };
    assert_eq!(fresh(CloseKind::Fin), [Some(Failure::Closed)]);
    assert_eq!(fresh(CloseKind::Rst), [Some(Failure::Reset)]);
    let reused = Observed::new().client(3, GET).server(4, OK);
    let reused = reused.client(900, GET).end(Server, CloseKind::Rst, 901);
    let reused = reused.finish(901, Ending::Observed);
    assert_eq!(reused.outcomes(), [None, Some(Failure::Stale)]);
    assert_eq!(reused.moment(), Some(ClosePoint::Stale));
}

#[test]
fn a_server_that_ends_after_it_had_the_request_is_not_stale() {
    for (how, kind) in [
        (CloseKind::Fin, Failure::Closed),
        (CloseKind::Rst, Failure::Reset),
    ] {
        let one = Observed::new().client(3, GET).server(4, OK);
        // idle for 1 ms, then 50 ms with the request at the server: more than the round trip and 1
        // ms
        let one = one.client(5, GET).end(Server, how, 55);
        let one = one.finish(55, Ending::Observed);
        assert_eq!(one.outcomes(), [None, Some(kind)]);
        assert_eq!(one.moment(), Some(ClosePoint::MidExchange));
        let detail = one.exchanges[1].detail.as_deref().unwrap();
        assert!(detail.ends_with("it may have executed it"), "{detail}");
    }
}

#[test]
fn an_acknowledged_request_is_not_stale_for_any_time_of_the_end() {
    let second = |acknowledged: u64| {
        let one = Observed::new().client(3, GET).server(4, OK);
        let mut one = one.client(5, GET);
        one.connection.note_acknowledged(acknowledged);
        let one = one.end(Server, CloseKind::Fin, 5);
        one.finish(5, Ending::Observed).outcomes()[1]
    };
    let len = GET.len() as u64;
    assert_eq!(second(2 * len), Some(Failure::Closed));
    assert_eq!(second(len), Some(Failure::Stale));
    // in a tunnel, the proxy acknowledges
    let one = Observed::new().client(1, b"CONNECT a.example:80 HTTP/1.1\r\n\r\n");
    let one = one.server(2, b"HTTP/1.1 200 OK\r\n\r\n");
    let mut one = one.client(3, GET).server(4, OK).client(5, GET);
    one.connection.note_acknowledged(1 << 20);
    let one = one.end(Server, CloseKind::Fin, 5);
    let outcomes = one.finish(5, Ending::Observed).outcomes();
    assert_eq!(outcomes, [None, Some(Failure::Stale)]);
}

#[test]
fn the_first_response_names_the_server_in_one_product() {
    let named = |fields: &str| {
        let response = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 0\r\n\r\n");
        let one = Observed::new()
            .client(3, GET)
            .server(4, response.as_bytes());
        let later = b"HTTP/1.1 200 OK\r\nServer: later\r\nContent-Length: 0\r\n\r\n";
        let one = one.client(5, GET).server(6, later);
        let server = one.finish(9, Ending::Unobserved).connection.unwrap().server;
        server.map(|name| name.to_string())
    };
    assert_eq!(
        named("Server: nginx/1.22.1 (x)\r\n").as_deref(),
        Some("nginx/1.22.1")
    );
    let via = "Via: 1.1 inner\r\nServer: gunicorn\r\nVia: 1.1 varnish\r\n";
    assert_eq!(named(via).as_deref(), Some("varnish"));
    assert_eq!(named(""), None);
}

#[test]
fn the_connect_of_an_http10_client_announces_no_end() {
    let one = Observed::new().client(3, b"CONNECT api.example:443 HTTP/1.0\r\n\r\n");
    let one = one.server(4, b"HTTP/1.0 200 Connection established\r\n\r\n");
    let one = one.end(Client, CloseKind::Fin, 9);
    let close = one.finish(9, Ending::Observed).closed.unwrap().close;
    assert_eq!(close.by, Some(LedgerSide::Client));
    assert_eq!(close.announced_by, None, "the tunnel outlives its CONNECT");
}

#[test]
fn a_close_is_idle_only_some_time_after_the_last_response() {
    for (at, moment) in [(204, ClosePoint::AfterExchange), (205, ClosePoint::Idle)] {
        let one = Observed::new().client(3, GET).server(4, OK);
        let one = one.end(Server, CloseKind::Fin, at);
        let one = one.finish(at, Ending::Observed);
        assert_eq!(one.moment(), Some(moment), "{at}");
        let close = one.closed.unwrap().close;
        assert_eq!(close.by, Some(LedgerSide::Server));
        assert_eq!(close.exchanges, Some(1));
    }
}

#[test]
fn a_response_of_http_1_0_ends_with_the_servers_fin() {
    let one = Observed::new().client(3, b"GET / HTTP/1.0\r\n\r\n");
    let one = one
        .server(4, b"HTTP/1.0 200 OK\r\n\r\nhe")
        .server(7, b"llo");
    let one = one.end(Server, CloseKind::Fin, 8);
    let one = one
        .end(Client, CloseKind::Fin, 50)
        .finish(50, Ending::Observed);
    assert_eq!(one.outcomes(), [None]);
    assert_eq!(one.exchanges[0].end, Nanos(8 * MS));
    assert_eq!(one.exchanges[0].body.read, Some(5));
    assert_eq!(one.moment(), Some(ClosePoint::AfterExchange));
    assert_eq!(one.origin(), "http://192.0.2.1:8080");
}

#[test]
fn the_first_exchange_is_preconnected_if_it_came_long_after_the_setup() {
    for (at, reuse, blocked) in [
        (252, Reuse::Fresh, Some(250 * MS)),
        (253, Reuse::Preconnected, None),
    ] {
        let one = Observed::new().client(at, GET).server(at + 1, OK);
        let one = one.client(at + 2, GET).server(at + 3, OK);
        let one = one.finish(at + 3, Ending::Observed);
        let [first, second] = &one.exchanges[..] else {
            panic!("{at}");
        };
        assert_eq!(first.reuse, Some(reuse));
        assert_eq!(first.spans.blocked.map(Span::nanos), blocked);
        assert_eq!(second.reuse, Some(Reuse::Reused));
        let waits = reuse == Reuse::Fresh;
        assert_eq!(first.at, Nanos(if waits { MS } else { at * MS }));
    }
}

#[test]
fn the_first_exchange_of_a_connection_that_is_joined_late_is_unknown() {
    let one = Observed::begun(true).client(3, GET).server(4, OK);
    let one = one.client(5, GET).server(6, OK).finish(6, Ending::Observed);
    let reuse: Vec<_> = one.exchanges.iter().map(|one| one.reuse).collect();
    assert_eq!(reuse, [None, Some(Reuse::Reused)]);
    assert!(one.exchanges.iter().all(|one| one.ordinal.is_none()));
}

fn post(body: &[u8]) -> Vec<u8> {
    let len = body.len();
    let head = format!("POST /a?b HTTP/1.1\r\nHost: a.example\r\nContent-Length: {len}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

#[test]
fn fingerprints_cover_the_whole_body_of_any_length() {
    let mut body = vec![b'x'; 100_000];
    let same = post(&body);
    body[99_999] = b'y';
    let other = post(&body);
    let mut one = Observed::new().client(3, &same).server(4, OK);
    for piece in same.chunks(7_000) {
        one = one.client(5, piece);
    }
    let one = one.server(6, OK).client(7, &other).server(8, OK);
    let one = one.finish(9, Ending::Observed);
    let prints: Vec<_> = one.exchanges.iter().map(|one| one.fingerprint).collect();
    assert!(prints[0].is_some());
    assert_eq!(prints[0], prints[1]);
    assert_ne!(prints[1], prints[2]);
}

#[test]
fn a_body_with_a_missing_part_has_no_fingerprint() {
    let request = post(&[b'x'; 1000]);
    let mut one = Observed::new().client(3, &request[..500]);
    one.connection.lose(Client, 100, Nanos(9), &mut one.run);
    let one = one.client(4, &request[600..]).server(5, OK);
    let one = one.finish(9, Ending::Unobserved);
    assert_eq!(one.outcomes(), [None]);
    assert_eq!(one.exchanges[0].bytes.request_body, 1000);
    assert_eq!(one.exchanges[0].fingerprint, None);
}

#[test]
fn the_origin_is_the_authority_of_the_first_request() {
    for (request, origin) in [
        (
            &b"GET / HTTP/1.1\r\nHost: A.example\r\n\r\n"[..],
            "http://a.example",
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a.example:81\r\n\r\n",
            "http://a.example:81",
        ),
        (
            // to a proxy, which takes requests for any origin
            b"GET http://b.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n",
            "http://192.0.2.1:8080",
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
            "http://192.0.2.1:8080",
        ),
    ] {
        let one = Observed::new().client(3, request).server(4, OK);
        let one = one
            .client(5, b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n")
            .server(6, OK);
        assert_eq!(one.finish(6, Ending::Observed).origin(), origin);
    }
}

#[test]
fn a_granted_tunnel_is_setup_and_its_target_is_the_origin() {
    let one = Observed::new().client(3, b"CONNECT c.example:99 HTTP/1.1\r\nHost: p\r\n\r\n");
    let one = one.server(7, b"HTTP/1.1 200 OK\r\n\r\n");
    let one = one.client(8, b"GET / HTTP/1.0\r\n\r\n").server(9, OK);
    let one = one
        .end(Server, CloseKind::Fin, 10)
        .finish(10, Ending::Observed);
    assert_eq!(one.origin(), "http://c.example:99");
    assert_eq!(one.exchanges.len(), 1);
    assert_eq!(one.exchanges[0].ordinal, Some(1));
    let connect = one.connection.unwrap().setup.connect;
    assert_eq!(connect.unwrap().end, Nanos(7 * MS));
}

const CONNECT: &[u8] = b"CONNECT c.example:99 HTTP/1.1\r\nHost: p\r\n\r\n";
const REFUSAL: &[u8] = b"HTTP/1.1 407 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

#[test]
fn a_refused_tunnel_is_a_failed_dial() {
    let refused = || Observed::new().client(3, CONNECT).server(7, REFUSAL);
    let unanswered = || Observed::new().client(3, CONNECT);
    for (one, kind) in [
        (refused(), Failure::Proxy),
        (
            refused().client(8, CONNECT).server(9, REFUSAL),
            Failure::Proxy,
        ),
        (refused().end(Client, CloseKind::Fin, 9), Failure::Proxy),
        (unanswered().end(Server, CloseKind::Fin, 9), Failure::Proxy),
        (
            unanswered().end(Client, CloseKind::Fin, 9),
            Failure::ClientClosed,
        ),
        (unanswered(), Failure::Aborted),
    ] {
        let one = one.finish(10, Ending::Observed);
        assert_eq!((one.exchanges.len(), &one.closed), (0, &None));
        assert_eq!(one.origin(), "tcp://c.example:99");
        let failed = one.connection.unwrap().failed.unwrap();
        assert_eq!((failed.phase, failed.kind), (SetupPhase::Connect, kind));
    }
}

#[test]
fn a_tunnel_that_is_granted_at_the_second_request_is_setup() {
    let one = Observed::new().client(3, CONNECT).server(7, REFUSAL);
    let one = one.client(8, CONNECT).server(9, b"HTTP/1.1 200 OK\r\n\r\n");
    let one = one.client(10, b"GET / HTTP/1.1\r\n\r\n").server(11, OK);
    let one = one
        .end(Client, CloseKind::Fin, 12)
        .finish(12, Ending::Observed);
    assert_eq!(one.origin(), "http://c.example:99");
    assert_eq!(one.exchanges[0].ordinal, Some(1));
    assert_eq!(one.closed.unwrap().close.announced_by, None);
    let connection = one.connection.unwrap();
    assert_eq!(connection.failed, None);
    assert_eq!(connection.setup.connect.unwrap().end, Nanos(9 * MS));
}

#[test]
fn a_tunnel_that_is_refused_between_requests_to_the_proxy_is_an_exchange() {
    let get = b"GET http://c.example/ HTTP/1.1\r\nHost: c.example\r\n\r\n";
    let one = Observed::new().client(3, get).server(4, OK);
    let one = one.client(5, CONNECT).server(7, REFUSAL);
    let one = one.finish(8, Ending::Observed);
    assert_eq!(one.exchanges[1].status, Some(407));
    assert_eq!(one.origin(), "http://192.0.2.1:8080");
    assert_eq!(one.connection.unwrap().failed, None);
}

#[test]
fn a_connection_of_another_protocol_has_no_exchanges_and_an_unused_one_certainly_none() {
    let redis = Observed::new().client(3, b"*1\r\n$4\r\nPING\r\n");
    let redis = redis.server(4, b"+PONG\r\n").end(Client, CloseKind::Fin, 5);
    let redis = redis.finish(5, Ending::Observed);
    let close = redis.closed.unwrap().close;
    assert_eq!((close.exchanges, close.moment), (None, None));
    let unused = Observed::new().end(Client, CloseKind::Fin, 5);
    let close = unused.finish(5, Ending::Observed).closed.unwrap().close;
    let expected = (Some(0), Some(ClosePoint::Unused));
    assert_eq!((close.exchanges, close.moment), expected);
}

#[test]
fn an_unsolicited_response_is_no_exchange_and_announces_the_end() {
    let one = Observed::new().client(3, GET).server(4, OK);
    let late = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let one = one.server(900, late).end(Server, CloseKind::Fin, 900);
    let one = one.finish(900, Ending::Observed);
    assert_eq!(one.exchanges.len(), 1);
    let close = one.closed.unwrap().close;
    assert_eq!(close.announced_by, Some(LedgerSide::Server));
}

#[test]
fn the_other_end_is_that_of_a_client_that_closed_second() {
    let other_end = |one: Observed| one.finish(90, Ending::Observed).closed.unwrap().close;
    let used = || Observed::new().client(3, GET).server(4, OK);
    let closed = used().end(Server, CloseKind::Fin, 10);
    let both = other_end(closed.end(Client, CloseKind::Fin, 20));
    assert_eq!(
        (both.by, both.at),
        (Some(LedgerSide::Server), Nanos(10 * MS))
    );
    assert_eq!(both.other_end, Some(OtherEnd::ClosedAt(Nanos(20 * MS))));
    let held = other_end(used().end(Server, CloseKind::Fin, 10));
    assert_eq!(held.other_end, Some(OtherEnd::Open));
    let reset = other_end(used().end(Server, CloseKind::Rst, 10));
    assert_eq!(reset.other_end, Some(OtherEnd::ClosedAt(Nanos(10 * MS))));
    let first = used().end(Client, CloseKind::Fin, 10);
    let first = other_end(first.end(Server, CloseKind::Fin, 20));
    assert_eq!(
        (first.by, first.other_end),
        (Some(LedgerSide::Client), None)
    );
    let stopped = other_end(used());
    assert_eq!((stopped.by, stopped.other_end), (None, None));
}

#[test]
fn a_lost_request_after_an_announced_end_has_the_time_of_the_announcement() {
    let last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let one = Observed::new().client(3, GET).server(4, last);
    let one = one.client(5, GET).end(Server, CloseKind::Fin, 6);
    let one = one.finish(6, Ending::Observed);
    let announced = |one: &Finished| {
        let each = one.exchanges.iter();
        each.map(|exchange| exchange.close_announced_at)
            .collect::<Vec<_>>()
    };
    assert_eq!(announced(&one), [None, Some(Nanos(4 * MS))]);
    // the response that announces the end is cut itself
    let cut = Observed::new().client(3, GET).server(
        4,
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nhalf",
    );
    let cut = cut
        .end(Server, CloseKind::Fin, 5)
        .finish(5, Ending::Observed);
    assert_eq!(announced(&cut), [None]);
}

/// HTTP/2 frames: GET / on a stream, a call of gRPC, its response, and GOAWAY.
mod h2 {
    fn headers(stream: u8, block: &[&[u8]]) -> Vec<u8> {
        let block = block.concat();
        let head = [0, 0, block.len() as u8, 1, 5, 0, 0, 0, stream];
        [&head[..], &block].concat()
    }

    /// POST / with `Content-Type: application/grpc`.
    pub(super) fn call(stream: u8) -> Vec<u8> {
        let kind = b"\x0f\x10\x10application/grpc";
        headers(stream, &[&[0x83, 0x84, 0x86], kind])
    }

    /// The status 200 and a `grpc-status`, alone.
    pub(super) fn call_status(stream: u8, status: &str) -> Vec<u8> {
        let length = [status.len() as u8];
        let field = [b"\0\x0bgrpc-status", &length[..], status.as_bytes()].concat();
        headers(stream, &[&[0x88], &field])
    }

    /// The status 200 alone.
    pub(super) fn ok(stream: u8) -> Vec<u8> {
        headers(stream, &[&[0x88]])
    }

    pub(super) fn get(stream: u8) -> [u8; 12] {
        [0, 0, 3, 1, 5, 0, 0, 0, stream, 0x82, 0x84, 0x86]
    }

    pub(super) fn go_away(last_stream: u8, code: u8) -> [u8; 17] {
        [
            0,
            0,
            8,
            7,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            last_stream,
            0,
            0,
            0,
            code,
        ]
    }
}

#[test]
fn lost_streams_after_a_goaway_have_its_time_unless_it_was_an_error() {
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let streams = [h2::get(1), h2::get(3)].concat();
    let opening = [&intact_wire::h2::PREFACE[..], &settings, &streams].concat();
    let lost = |code| {
        let one = Observed::new().client(3, &opening).server(4, &settings);
        let one = one.server(5, &h2::go_away(1, code)).client(6, &h2::get(5));
        let one = one
            .end(Server, CloseKind::Fin, 9)
            .finish(9, Ending::Observed);
        let carried = one
            .closed
            .as_ref()
            .and_then(|closed| closed.close.exchanges);
        let each = one.exchanges.iter();
        let each: Vec<_> = each
            .map(|exchange| (exchange.outcome.failure(), exchange.close_announced_at))
            .collect();
        (each, carried)
    };
    let at = Some(Nanos(5 * MS));
    // the server did not process streams 3 and 5
    let (drained, carried) = lost(0);
    assert_eq!(carried, Some(1));
    assert_eq!(drained[0], (Some(Failure::Refusal), at), "stream 3");
    assert_eq!(drained.len(), 3);
    assert!(
        drained
            .iter()
            .all(|(failure, when)| failure.is_some() && *when == at)
    );
    // ENHANCE_YOUR_CALM
    assert!(lost(11).0.iter().all(|(_, when)| when.is_none()));
}

#[test]
fn what_is_no_http2_fails_the_open_streams_of_a_client_that_ends() {
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let opening = [&intact_wire::h2::PREFACE[..], &settings, &h2::get(1)].concat();
    let outcomes = |goes_on: bool| {
        let one = Observed::new().client(3, &opening).server(4, &settings);
        let one = one.server(5, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let one = match goes_on {
            true => one.client(6, &h2::get(3)),
            false => one,
        };
        let one = one.end(Client, CloseKind::Fin, 9);
        let one = one.finish(9, Ending::Observed);
        let each = one.exchanges.iter().map(|one| one.outcome);
        each.collect::<Vec<Outcome>>()
    };
    assert_eq!(outcomes(false), [Outcome::Failed(Failure::Malformed)]);
    // a client that sends the next request has read what we could not
    assert_eq!(outcomes(true), [Outcome::Unknown; 2]);
}

#[test]
fn a_call_of_grpc_is_ok_with_the_status_0_only() {
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let calls = [h2::call(1), h2::call(3), h2::call(5), h2::get(7).to_vec()].concat();
    let opening = [&intact_wire::h2::PREFACE[..], &settings, &calls].concat();
    let responses = [
        h2::call_status(1, "0"),
        h2::call_status(3, "5"),
        h2::ok(5),
        h2::call_status(7, "5"),
    ];
    let one = Observed::new().client(3, &opening).server(4, &settings);
    let one = one.server(5, &responses.concat());
    let one = one.end(Client, CloseKind::Fin, 9);
    let one = one.finish(9, Ending::Observed);
    let outcomes: Vec<_> = one.exchanges.iter().map(|one| one.outcome).collect();
    let failed = Outcome::Failed(Failure::GrpcStatus);
    assert_eq!(outcomes, [Outcome::Ok, failed, failed, Outcome::Ok]);
    let details: Vec<_> = one
        .exchanges
        .iter()
        .map(|one| one.detail.as_deref())
        .collect();
    let expected = [
        None,
        Some("grpc-status 5 (NOT_FOUND)"),
        Some("no grpc-status, HTTP status 200"),
        None,
    ];
    assert_eq!(details, expected);
}

#[test]
fn a_call_whose_end_was_not_observed_did_not_fail_by_its_status() {
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let opening = [&intact_wire::h2::PREFACE[..], &settings, &h2::call(1)].concat();
    let mut one = Observed::new().client(3, &opening).server(4, &settings);
    one.connection
        .lose(Server, 100, Nanos(5 * MS), &mut one.run);
    let one = one.finish(9, Ending::Unobserved);
    let outcomes = one.exchanges.iter().map(|one| one.outcome);
    assert_eq!(outcomes.collect::<Vec<_>>(), [Outcome::Unknown]);
}

#[test]
fn progress_is_that_of_the_bytes_so_far() {
    let part = |one: &Observed| {
        let now = one.connection.progress().unwrap();
        (now.done, now.open, now.response, now.is_kept())
    };
    let one = Observed::new();
    assert_eq!(part(&one), (0, 0, None, false));
    let one = one.client(10, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(part(&one), (0, 1, None, false));
    let one = one.server(20, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(part(&one), (0, 1, Some(ResponsePart::Head), false));
    let one = one.server(21, b"o");
    assert_eq!(part(&one), (0, 1, Some(ResponsePart::Body), false));
    let one = one.server(22, b"k");
    assert_eq!(part(&one), (1, 0, None, true));
    let one = one
        .client(
            30,
            b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        )
        .server(40, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(part(&one), (2, 0, None, false), "its end was announced");
}
