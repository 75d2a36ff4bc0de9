//! `body-not-drained`: the client closed connections because it had not read the response to its
//! end.

use super::{Attribution, Fold, Remedy, RuleRow, for_client};
use crate::{Context, OpenReason};
use intact_document::finding::{Finding, RuleDoc};
use intact_document::statement::{Value, statement, text};
use intact_ledger::Evidence;
use intact_ledger::{Event, Exchange};
use std::collections::BTreeMap;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "body-not-drained",
        what: "The client did not read a response to its end. The unread rest blocks the connection, so the library closes it and the next request pays for a new one.",
        evidence: "The client closed the connection right after it read fewer bytes than `Content-Length` announced (or a truncated response). A FIN 100 ms or more after the response began is a client that gave up waiting for the rest, not this. Or the client sent a RST right after a complete response, as a close with unread bytes does (RFC 2525 section 2.17).",
        threshold: "One avoidable opening whose predecessor ended so. A warning from 3 on, or from 2 on that are half of the connections.",
        false_positives: "A download that a person cancelled; a client that resets on purpose (SO_LINGER 0). A client that closes on purpose rather than read a large body: this is right where the rest is more expensive than a new connection.",
        fix: "Read every response to its end, even if only its status matters",
        risk: "A large or endless body costs more to read than a new connection: set a limit, and close the connection beyond it",
        needs: &[Evidence::Ends, Evidence::Bodies],
    },
    fold: || Box::<BodyNotDrained>::default(),
};

struct Example {
    /// The bytes of the body that were read, and that were announced.
    bytes: Option<(u64, u64)>,
    what: String,
}

#[derive(Default)]
struct BodyNotDrained {
    examples: BTreeMap<usize, Example>,
}

impl Fold for BodyNotDrained {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
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
                bytes: body.read.zip(body.announced),
                what: request(exchange),
            });
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let claims = attribution.claim_by(OpenReason::Undrained, 1);
        let found = claims.iter().map(|one| {
            let evidence = match self.examples.get(&one.destination) {
                Some(Example { bytes, what }) => match *bytes {
                    Some((read, announced)) => statement!(
                        "first seen: {read} of {announced} of {request} were read",
                        read = Value::Number(read),
                        announced = Value::Bytes(announced),
                        request = text(what),
                    ),
                    None => statement!(
                        "first seen: the client closed the connection before {request} was complete",
                        request = text(what),
                    ),
                },
                None => "the client reset the connection right after the response, which a close with unread bytes does".into(),
            };
            let said = one.opened("because the last response was not read to its end");
            let finding = one.finding(&RULE.doc, said, evidence);
            for_client(Remedy::Drain, one.client, finding)
        });
        found.collect()
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
