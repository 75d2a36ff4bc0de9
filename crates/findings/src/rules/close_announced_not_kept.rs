//! `close-announced-not-kept`: the server promised to keep the connection and closed it.

use super::body_not_drained::were;
use super::{Attribution, Doc, Rule};
use crate::finding::Finding;
use crate::traffic::{Context, OpenReason};
use intact_ledger::{ClosePoint, Event, Side};
use intact_units::number::time;
use intact_units::plural::counted;
use std::collections::BTreeMap;

static DOC: Doc = Doc {
    id: "close-announced-not-kept",
    what: "The server's answer promised to keep the connection (`Keep-Alive: timeout=`, or HTTP/1.1 without `Connection: close`), and it closed at once. The client finds out with its next request.",
    evidence: "No announcement of the end, and the server's FIN right after a complete answer; what `Keep-Alive` had promised.",
    threshold: "One avoidable opening whose predecessor ended so. A warning from three, or from a twentieth of the destination's time, on.",
    false_positives: "A server that is being restarted; a balancer whose back end went away.",
    fix: "Find what closes: a worker that ends after each request, a timeout of the wrong layer, a balancer; if it cannot be helped let it send `Connection: close`, so that clients know",
    risk: "Until it is mended, a request may race the server's FIN and fail (`stale-reuse`)",
};

#[derive(Default)]
pub(super) struct CloseAnnouncedNotKept {
    /// Closes that broke a promise, and the longest time from the answer to the FIN in nanoseconds.
    seen: BTreeMap<usize, (u64, u64)>,
}

impl Rule for CloseAnnouncedNotKept {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let (Event::Closed(closed), Some(live)) = (event, context.live) else {
            return;
        };
        let close = &closed.close;
        let Some(last) = &live.last else { return };
        let told = close.announced_by.is_some() || last.close_sent_by.is_some();
        let at_once = close.moment == Some(ClosePoint::AfterExchange);
        if close.by == Some(Side::Server) && at_once && last.ok && !told {
            let seen = self.seen.entry(live.destination).or_default();
            seen.0 += 1;
            seen.1 = seen.1.max(close.at.since(last.end));
        }
    }

    fn findings(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let claims = bill.claim_by(&[OpenReason::NotKept], 1);
        let found = claims.into_iter().map(|(destination, openings, claim)| {
            let (closes, latest) = self.seen.get(&destination).copied().unwrap_or_default();
            let promised = bill.counts(destination).announced_timeout_s;
            let promise = promised.map_or_else(
                || "nothing announced the end".to_owned(),
                |seconds| format!("`Keep-Alive: timeout={seconds}` was promised"),
            );
            let evidence = if closes == 0 {
                promise
            } else {
                format!(
                    "{promise}; {} by the server came within {} of the answer",
                    counted(closes, "FIN"),
                    time(latest as f64 / 1e6)
                )
            };
            let words = format!(
                "{} opened because the server had closed the last one without a word",
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
        });
        found.collect()
    }
}
