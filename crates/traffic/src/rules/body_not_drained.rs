//! `body-not-drained`: the client closed connections because it had not read the response to its
//! end, or holds connections with unread responses.

use super::standstill::{Pools, Standstill};
use super::{Attribution, Fold, Remedy, RuleRow, for_client};
use crate::{Context, OpenReason};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Statement, Value, connections, statement, text, timer_nanos};
use intact_ledger::{Event, Evidence, Exchange};
use std::collections::BTreeMap;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "body-not-drained",
        what: "The client did not read a response to its end. The unread rest blocks the connection: the library closes it, or holds it for ever, and the next request pays for a new one. A pool with a maximum size stands still when all of its connections hold unread responses. A streamed response (`text/event-stream`, chunked) has an end, too: a client that leaves it after the last event loses the connection.",
        evidence: "The client closed the connection right after it read fewer bytes than `Content-Length` announced. A FIN 100 ms or more after the response began (of a streamed one: after its last bytes) is another case. Or it sent a RST after a complete response of more than 1 kB, as a close with unread bytes does (RFC 2525 section 2.17). Or unread bytes of it were in the program's socket until the program closed it (Recv-Q, once a second).",
        threshold: many!(
            "One opening in vain whose predecessor ended so, or was held so at that moment.",
            "Also a warning where connections held unread responses and nothing was sent for 1 s or longer, until the program closed all of them."
        ),
        false_positives: "A download that a person cancelled; a client that resets on purpose (SO_LINGER 0). A stream without an end, which has to be left. A client that closes on purpose rather than read a large body: this is right where the rest is more expensive than a new connection.",
        fix: "Read every response to its end, even if only its status matters",
        risk: "A large or endless body costs more to read than a new connection: set a limit, and close the connection beyond it",
        needs: &[Evidence::Ends, Evidence::Bodies],
    },
    fold: || Box::<BodyNotDrained>::default(),
};

struct Example {
    /// The bytes of a streamed response that the client left.
    left: Option<u64>,
    /// The bytes of the body that were read, and that were announced.
    bytes: Option<(u64, u64)>,
    what: String,
}

/// The fix for a streamed response.
const STREAM: &str = "Read a streamed response on to the end of its body: the last chunk follows the last event. Or close it later, when the end has come. A stream without an end costs its connection in HTTP/1.1; in HTTP/2 it ends alone";

#[derive(Default)]
struct BodyNotDrained {
    examples: BTreeMap<usize, Example>,
    pools: Pools,
}

impl BodyNotDrained {
    /// The pool of a destination whose connections held unread responses.
    fn unread(&self, destination: usize) -> Option<&Standstill> {
        let pools = self.pools.all().filter(|(at, _)| *at == destination);
        let unread = pools.map(|(_, pool)| pool).filter(|pool| pool.unread > 0);
        unread.max_by_key(|pool| (pool.nanos(), pool.unread))
    }

    /// What was seen first.
    fn evidence(&self, destination: usize) -> Statement {
        if let Some(pool) = self.unread(destination) {
            return unread_evidence(pool);
        }
        match self.examples.get(&destination) {
            Some(example) => example.evidence(),
            None => "the client reset the connection after the response, which a close with unread bytes does".into(),
        }
    }

    fn is_stream(&self, destination: usize) -> bool {
        let example = self.examples.get(&destination);
        self.unread(destination).is_none() && example.is_some_and(|example| example.left.is_some())
    }
}

/// The rest in the sockets of a pool.
fn rest(pool: &Standstill) -> Statement {
    if pool.bytes == 0 {
        return statement!(
            "a part of a response was in the socket of each of {unread}, unread, until the program closed them",
            unread = connections(pool.unread),
        );
    }
    statement!(
        "{rest} of responses were in the sockets of {unread}, unread, until the program closed them",
        rest = Value::Bytes(pool.bytes),
        unread = connections(pool.unread),
    )
}

/// The rest, and for how long the pool stood still.
fn unread_evidence(pool: &Standstill) -> Statement {
    match pool.nanos() {
        Some(nanos) => statement!(
            "nothing was sent for {standstill}, while the program held all {opened}",
            standstill = timer_nanos(nanos),
            opened = connections(pool.connections),
        )
        .and(rest(pool)),
        None => rest(pool),
    }
}

impl Example {
    fn evidence(&self) -> Statement {
        let request = text(&self.what);
        match (self.left, self.bytes) {
            (Some(bytes), _) => statement!(
                "first seen: the client left the streamed response to {request} before its last chunk, after {left}",
                request = request,
                left = Value::Bytes(bytes),
            ),
            (None, Some((read, announced))) => statement!(
                "first seen: {read} of {announced} of {request} were read",
                read = Value::Number(read),
                announced = Value::Bytes(announced),
                request = request,
            ),
            (None, None) => statement!(
                "first seen: the client closed the connection before {request} was complete",
                request = request,
            ),
        }
    }
}

impl Fold for BodyNotDrained {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        self.pools.observe(event, context);
        let (Event::Exchange(exchange), Some(destination)) = (event, context.destination) else {
            return;
        };
        let undrained = context
            .live
            .and_then(|live| live.last.as_ref())
            .is_some_and(|last| last.undrained);
        if undrained {
            let body = &exchange.body;
            self.examples.entry(destination).or_insert_with(|| Example {
                left: exchange.is_left_stream().then_some(exchange.bytes.body),
                bytes: body.read.zip(body.announced),
                what: request(exchange),
            });
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let claims = attribution.claim_by(OpenReason::Undrained, 1);
        let mut found = Vec::new();
        for one in &claims {
            let said = one.opened("because the client had not read the last response to its end");
            let mut finding = one.finding(&RULE.doc, said, self.evidence(one.destination));
            let pool = self.unread(one.destination);
            if pool.is_some_and(|pool| pool.nanos().is_some()) {
                finding.severity = Severity::Warning;
            }
            if self.is_stream(one.destination) {
                finding.fix = Statement::text(STREAM);
            }
            found.push(for_client(Remedy::Drain, one.client, finding));
        }
        // a pool of one connection opens no other
        for (destination, pool) in self.pools.all() {
            let is_claimed = claims.iter().any(|one| one.destination == destination);
            if let (Some(nanos), true, false) = (pool.nanos(), pool.unread > 0, is_claimed) {
                let said = statement!(
                    "nothing was sent for {standstill}, while the program held {opened} with an unread response",
                    standstill = timer_nanos(nanos),
                    opened = connections(pool.connections),
                );
                let evidence = rest(pool);
                let finding =
                    attribution.finding(&RULE.doc, Severity::Warning, destination, said, evidence);
                let client = attribution.client(destination);
                found.push(for_client(Remedy::Drain, client, finding));
            }
        }
        found
    }
}

/// Method and path, where they are known.
fn request(exchange: &Exchange) -> String {
    match (&exchange.method, &exchange.target) {
        (Some(method), Some(target)) => format!("{method} {target}"),
        (Some(method), None) => format!("a {method}"),
        _ => "a response".to_owned(),
    }
}
