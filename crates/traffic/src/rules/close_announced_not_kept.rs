//! `close-announced-not-kept`: the server promised to keep the connection and closed it.

use super::server_closes_early::{Ends, REQUESTS, is_unannounced, restarted};
use super::{Attribution, Fold, OF_ERRORS, RuleRow, ServerLimit};
use crate::open_connection::is_error;
use crate::open_reason::SEVERAL;
use crate::{Context, Counts, OpenReason};
use intact_document::finding::{Finding, RuleDoc};
use intact_document::statement::{Value, nanos, requests, statement};
use intact_ledger::{ClosePoint, Event, Evidence};
use std::collections::BTreeMap;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "close-announced-not-kept",
        what: "The server's response announced a persistent connection (`Keep-Alive: timeout=`, or HTTP/1.1 without `Connection: close`), and the server closed immediately. The client notices with its next request.",
        evidence: "No announcement of the end, and the server's FIN right after a complete response; the announced `Keep-Alive`; whether each came after the same number of requests, as a limit that is not announced, or after an error response.",
        threshold: many!(
            "One opening in vain whose predecessor ended so.",
            "Informational at a restart: all ends came within 2 s, of connections open before, and three times as many idle times were as long."
        ),
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
        let at_once = close.moment == Some(ClosePoint::AfterExchange);
        if at_once && is_unannounced(close, live) {
            Ends::add(&mut self.seen, live, close.at);
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
                    latest = nanos(ends.idle.most as f64)
                ));
            }
            let mut finding = one.finding(&RULE.doc, one.opened(WHY), evidence);
            match ends.map(|ends| (ends, follows_errors(ends, one.counts))) {
                Some((_, true)) => {
                    let of_errors = "each followed an error response, and no error response left the connection open";
                    finding.evidence = finding.evidence.and(of_errors);
                    finding.fix = OF_ERRORS.into();
                }
                Some((ends, false)) if ends.are_of_one_number() => {
                    finding.evidence = finding.evidence.and(statement!(
                        "each came after {requests}",
                        requests = requests(ends.requests.most)
                    ));
                    finding.fix = one.server_fix(ServerLimit::Requests, REQUESTS);
                }
                _ => {}
            }
            finding
        });
        found.collect()
    }
}

/// Why the connections were opened.
const WHY: &str = "because the server closed the last one without an announcement";

/// Whether several ends followed error responses, and no error response was without one.
fn follows_errors(ends: Ends, counts: &Counts) -> bool {
    let errors = counts
        .status
        .iter()
        .filter(|(status, _)| is_error(**status));
    let errors: u64 = errors.map(|(_, responses)| *responses).sum();
    ends.count >= SEVERAL && ends.errors == ends.count && errors <= ends.errors
}
