//! `body-not-drained`: the client closed connections because it had not read the answer to its end.

use super::{Attribution, Doc, Remedy, Rule};
use crate::finding::Finding;
use crate::traffic::{Context, OpenReason};
use intact_ledger::{Event, Exchange};
use intact_units::plural::counted;
use std::collections::BTreeMap;

static DOC: Doc = Doc {
    id: "body-not-drained",
    what: "The client dropped an answer before its end. What is left of it blocks the connection, so the library closes it and the next request pays for a new one.",
    evidence: "Fewer bytes read than `Content-Length` announced (or an answer that was cut off), and the client closed the connection right after; or its RST right after an answer that had been sent in full, which is what closing a socket with unread bytes in it sends (RFC 2525 section 2.17).",
    threshold: "One avoidable opening whose predecessor ended so. A warning from three, or from a twentieth of the destination's time, on.",
    false_positives: "A download that a person cancelled; a client that resets on purpose (SO_LINGER 0); a client that closes on purpose rather than read a large body, which is right where the rest is dearer than a new connection.",
    fix: "Read every answer to its end before you let go of it, also when only its status matters",
    risk: "Reading a large or endless body to its end costs more than a new connection: put a limit on it and close beyond",
};

struct Example {
    read: u64,
    announced: u64,
    what: String,
}

#[derive(Default)]
pub(super) struct BodyNotDrained {
    examples: BTreeMap<usize, Example>,
}

impl Rule for BodyNotDrained {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let (Event::Exchange(exchange), Some(destination)) = (event, context.destination) else {
            return;
        };
        let undrained = context
            .live
            .and_then(|live| live.last.as_ref())
            .is_some_and(|last| last.undrained);
        if let (true, Some(announced), Some(read)) =
            (undrained, exchange.body.announced, exchange.body.read)
        {
            self.examples.entry(destination).or_insert_with(|| Example {
                read,
                announced,
                what: request(exchange),
            });
        }
    }

    fn findings(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let claims = bill.claim_by(&[OpenReason::Undrained], 1);
        let found = claims.into_iter().map(|(destination, openings, claim)| {
            let example = self.examples.get(&destination);
            let evidence = example.map_or_else(
                || "the client reset the connection right after the answer, as closing with unread bytes does".to_owned(),
                |one| {
                    format!(
                        "first seen: {} of {} bytes of {} were read",
                        one.read, one.announced, one.what
                    )
                },
            );
            let words = format!(
                "{} opened because the last answer had not been read to its end",
                were(openings)
            );
            Finding::by(
                &DOC,
                claim.severity(),
                bill.name(destination),
                words,
                evidence,
            )
            .costing(claim)
            .in_words_of(bill.client(destination), Remedy::Drain)
        });
        found.collect()
    }
}

/// "3 connections were".
pub(super) fn were(connections: u64) -> String {
    let verb = if connections == 1 { "was" } else { "were" };
    format!("{} {verb}", counted(connections, "connection"))
}

/// Method and path, as far as they are known.
fn request(exchange: &Exchange) -> String {
    match (&exchange.method, &exchange.target) {
        (Some(method), Some(target)) => format!("{method} {target}"),
        (Some(method), None) => format!("a {method}"),
        _ => "an answer".to_owned(),
    }
}
