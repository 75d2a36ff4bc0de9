//! `stale-reuse`: requests were sent onto connections that the server had closed.

use super::{Attribution, Claim, Fold, Remedy, RuleRow, for_client, is_unsafe};
use crate::{Context, OpenReason};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Statement, requests, statement, timer_nanos};
use intact_ledger::{ClosePoint, Event, Evidence, Failure, Outcome, Side};
use std::collections::BTreeMap;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "stale-reuse",
        what: "A request was sent on a pooled connection that the server had closed: \"socket hang up\", \"connection closed before message completed\", BadStatusLine.",
        evidence: "Exchanges with the outcome `stale`: a used connection ended before the first byte of the response. The server's TCP had not acknowledged the request, so the close can have preceded the request. Connections with the close point `stale`, and the idle times before both.",
        threshold: "One is enough. An error where the lost request may not be repeated (POST, PATCH), else a warning.",
        false_positives: "A server that is restarted closes all its connections together: a burst at one moment is a deployment, not a timer.",
        fix: "Let the client close idle connections before the server does (client's idle limit < server's), and retry idempotent requests once",
        risk: "A retry of a request that is not idempotent may be processed twice; shortening the client's idle limit costs a few more connections",
        needs: &[Evidence::Attempts, Evidence::Ends],
    },
    fold: || Box::<StaleReuse>::default(),
};

#[derive(Default)]
struct Seen {
    requests: u64,
    unsafe_to_repeat: u64,
    closes: u64,
    idle: Option<(u64, u64)>,
}

#[derive(Default)]
struct StaleReuse {
    seen: BTreeMap<usize, Seen>,
}

impl Fold for StaleReuse {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let Some(destination) = context.destination else {
            return;
        };
        let last = context.live.and_then(|live| live.last.as_ref());
        match event {
            // an announced end is `lost-in-drain`, or was the client's
            Event::Exchange(exchange)
                if exchange.outcome == Outcome::Failed(Failure::Stale)
                    && last.is_none_or(|last| last.stale)
                    && exchange.close_announced_at.is_none()
                    && exchange.sharers == 0 =>
            {
                let seen = self.seen.entry(destination).or_default();
                seen.requests += 1;
                seen.unsafe_to_repeat += u64::from(is_unsafe(exchange));
                if let Some(gap) = context.gap {
                    let (least, most) = seen.idle.unwrap_or((gap, gap));
                    seen.idle = Some((least.min(gap), most.max(gap)));
                }
            }
            Event::Closed(closed) if closed.close.moment == Some(ClosePoint::Stale) => {
                // counted with its exchange already, where that was seen
                let is_counted = last.is_some_and(|last| last.stale);
                let is_asked = last.is_some_and(|last| last.close_sent_by == Some(Side::Client));
                let is_announced = is_asked || closed.close.announced_by == Some(Side::Server);
                if !is_counted && !is_announced {
                    self.seen.entry(destination).or_default().closes += 1;
                }
            }
            _ => {}
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let claims = attribution.claim_by(OpenReason::Stale, 1).into_iter();
        let claims: BTreeMap<usize, Claim> =
            claims.map(|one| (one.destination, one.claim)).collect();
        let mut findings = Vec::new();
        for (&destination, seen) in &self.seen {
            let claim = claims.get(&destination).copied().unwrap_or_default();
            let severity = Severity::Warning.unless(seen.unsafe_to_repeat > 0, Severity::Error);
            let total = seen.requests + seen.closes;
            let mut evidence = match seen.idle {
                Some((least, _)) if total == 1 => {
                    statement!(
                        "the connection was idle for {idle}",
                        idle = timer_nanos(least)
                    )
                }
                Some((least, most))
                    if timer_nanos(least).to_string() == timer_nanos(most).to_string() =>
                {
                    statement!(
                        "the connections were idle for {idle}",
                        idle = timer_nanos(least)
                    )
                }
                Some((least, most)) => statement!(
                    "the connections were idle for {least} to {most}",
                    least = timer_nanos(least),
                    most = timer_nanos(most)
                ),
                None => {
                    Statement::from("the connection ended before the first byte of the response")
                }
            };
            if seen.unsafe_to_repeat > 0 {
                evidence = evidence.and(statement!(
                    "{unsafe_to_repeat} may not be repeated",
                    unsafe_to_repeat = requests(seen.unsafe_to_repeat)
                ));
            }
            let said = statement!(
                "{stale:#} sent on a connection that the server had closed",
                stale = requests(total)
            );
            let finding = attribution.finding(&RULE.doc, severity, destination, said, evidence);
            let client = attribution.client(destination);
            let finding = finding.costing(claim.cost_ms, claim.share);
            findings.push(for_client(Remedy::ShortenIdle, client, finding));
        }
        findings
    }
}
