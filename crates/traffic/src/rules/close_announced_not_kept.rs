//! `close-announced-not-kept`: the server promised to keep the connection and closed it.

use super::server_closes_early::{Ends, restarted};
use super::{Attribution, Fold, RuleRow};
use crate::{Context, OpenReason};
use intact_document::finding::{Finding, RuleDoc};
use intact_document::statement::{Value, nanos, statement};
use intact_ledger::Evidence;
use intact_ledger::{ClosePoint, Event, Side};
use std::collections::BTreeMap;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "close-announced-not-kept",
        what: "The server's response announced a persistent connection (`Keep-Alive: timeout=`, or HTTP/1.1 without `Connection: close`), and the server closed immediately. The client notices with its next request.",
        evidence: "No announcement of the end, and the server's FIN right after a complete response; the announced `Keep-Alive`.",
        threshold: "One opening in vain whose predecessor ended so. A warning from 3 on, or from 2 on that are half of the connections. Informational if all ends came within 2 s and three times as many idle times were as long: a restart.",
        false_positives: "A server that is restarted right after its first responses; a load balancer without a back end.",
        fix: "Find what closes the connection: a worker that ends after each request, a timeout of another layer, a balancer. If the close is intended, let the server send `Connection: close`, so that clients know",
        risk: "Until this is fixed, a request may race the server's FIN and fail (`stale-reuse`)",
        needs: &[Evidence::Ends, Evidence::Announcements],
    },
    fold: || Box::<CloseAnnouncedNotKept>::default(),
};

#[derive(Default)]
struct CloseAnnouncedNotKept {
    /// Closes that broke a promise, by the nanoseconds from the response to the FIN.
    seen: BTreeMap<usize, Ends>,
}

impl Fold for CloseAnnouncedNotKept {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let (Event::Closed(closed), Some(live)) = (event, context.live) else {
            return;
        };
        let close = &closed.close;
        let Some(last) = &live.last else { return };
        let is_announced = close.announced_by.is_some() || last.close_sent_by.is_some();
        let at_once = close.moment == Some(ClosePoint::AfterExchange);
        if close.by == Some(Side::Server) && at_once && last.ok && !is_announced {
            let idle = close.at.since(last.end);
            Ends::add(&mut self.seen, live, close.at, idle, None);
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let claims = attribution.claim_by(OpenReason::NotKept, 1);
        let found = claims.iter().map(|one| {
            let ends = self.seen.get(&one.destination).copied();
            if let Some(ends) = ends.filter(|ends| ends.are_within_limit(one.counts)) {
                return restarted(&RULE.doc, one, ends);
            }
            let mut evidence = match one.counts.announced_timeout_s {
                Some(seconds) => statement!(
                    "the server announced `Keep-Alive: timeout={announced}`",
                    announced = Value::Seconds(seconds.into())
                ),
                None => "nothing announced the end".into(),
            };
            if let Some(ends) = ends {
                evidence = evidence.and(statement!(
                    "{closes} by the server came within {latest} of the response",
                    closes = Value::Count(ends.count, "FIN"),
                    latest = nanos(ends.measure.most as f64)
                ));
            }
            let said = one.opened("because the server closed the last one without an announcement");
            one.finding(&RULE.doc, said, evidence)
        });
        found.collect()
    }
}
