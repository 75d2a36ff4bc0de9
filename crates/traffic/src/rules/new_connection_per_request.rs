//! `new-connection-per-request`: more connections than the requests needed, and no more specific
//! rule knows why.

use super::new_connection_per_query::spoken;
use super::{Attribution, Remedy, RuleRow, for_client};
use crate::open_reason::MANY;
use crate::pool_renewal::Renewal;
use crate::{Counts, OpenReason, server_limit};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{
    Statement, Value, connections, counts, requests, statement, timer_nanos,
};
use intact_ledger::Evidence;

/// Avoidable connections from which on it speaks: some clients use one more than they need, by
/// design.
const LEAST: u64 = 2;

/// A client that does keep connections closes one all the same after an unread response, which an
/// observer cannot always see.
const DROPPED: &str = "If there is one already, look for responses that are not read to their end (`body-not-drained`), and for an idle limit below the pauses";

/// Nor does it see whether a client that closes a connection before it opens the next one is new,
/// or finds that its idle limit is over.
const PAUSES: &str = "If there is one already, its idle limit may be below its pauses";

/// Where the input does not show which side ends connections, what the client does is a guess.
const UNSEEN_ENDS: &str = "Find out which side closes: `intact check URL` prints the server's limits, `intact watch` shows the client. If it is the client: one client with keep-alive for the life of the program";

/// What shows it there.
const UNSEEN_EVIDENCE: &str =
    "the server may have ended the others: the input does not show how connections end";

/// The same where connections end after the same number of requests.
const UNSEEN_LIMIT: &str = "Find out which side has the limit, and raise it: `intact check URL` prints that of the server (nginx: `keepalive_requests`)";

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "new-connection-per-request",
        what: "The client opens more connections than it needs: each pays for lookup, TCP and TLS again.",
        evidence: "Connections opened against those that the peak overlap of requests needs, minus those that more specific rules have claimed; the end of the connection that each one replaces.",
        threshold: many!(
            "Two avoidable connections, since some clients use one more than they need.",
            "Informational where the client closes idle connections, unless the server is known to keep them much longer, or renews them after ten requests. Never reported without HTTP or TLS, nor where ends are not shown and connections carried ten requests on average."
        ),
        false_positives: "Requests minutes apart, where no idle limit would have kept the connection; programs that make one call and end.",
        fix: "Keep connections open between requests: one client with keep-alive for the life of the program",
        risk: "A kept connection can meet the server's idle timer (`stale-reuse`), stays with one address (`pinned-to-old-address`) and one server of several",
        needs: &[],
    },
    fold: || Box::new(findings),
};

fn findings(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let mut findings = idle_limits(attribution);
    for (destination, name, counts) in attribution.destinations() {
        let left = attribution.left(destination);
        let shows_ends = attribution.tracker().run().sees(Evidence::Ends);
        // where ends are not shown, limits of the server explain so few connections
        let is_used_often = !shows_ends && counts.requests >= MANY * counts.opened;
        // for these even three are nothing: `new-connection-per-query` decides
        if left < LEAST || is_used_often || spoken(counts).is_some() {
            continue;
        }
        let claim = attribution.claim(destination, left);
        let reasons = attribution.unexplained(destination);
        let evidence = if !shows_ends {
            Statement::text(UNSEEN_EVIDENCE)
        } else if reasons.is_empty() {
            claim.statement()
        } else {
            opened_for(&reasons)
        };
        let needed = attribution.needed(destination);
        let said = if !shows_ends {
            unseen_ends(counts, needed)
        } else if left < counts.opened - needed {
            statement!(
                "{others} of {opened} connections for {requests} were avoidable that no other finding counts",
                others = Value::Number(left),
                opened = Value::Number(counts.opened),
                requests = requests(counts.requests)
            )
        } else {
            let by_server = reasons.iter().any(|(_, why)| why.is_of_server());
            opened(counts, needed, by_server)
        };
        let first = reasons.first().map(|(_, why)| *why);
        let renewal = attribution.renewal(destination);
        let is_renewed = matches!(
            first,
            Some(OpenReason::ClientAtOnce | OpenReason::ClientRenewed)
        );
        let renewal = renewal.filter(|_| !shows_ends || is_renewed);
        let evidence = match renewal {
            Some(renewal) if shows_ends => evidence.and(renewed(renewal)),
            Some(renewal) => evidence.and(limited(renewal)),
            None => evidence,
        };
        let client = attribution.client(destination);
        // nothing shows that such a connection can be used again
        let severity = match is_unread(counts, &name) {
            true => Severity::Info,
            false => claim.severity(),
        };
        let mut finding = Finding::by(&RULE.doc, severity, name, said, evidence)
            .costing(claim.cost_ms, claim.share);
        let remedy = match first {
            Some(OpenReason::ClientIdle | OpenReason::ServerHidden) => Remedy::LengthenIdle,
            _ => Remedy::ShareClient,
        };
        let is_limited = !shows_ends && renewal.is_some();
        if is_limited {
            finding.fix = UNSEEN_LIMIT.into();
        } else if !shows_ends {
            finding.fix = UNSEEN_ENDS.into();
        }
        if let Some(fix) = first.and_then(other_fix) {
            finding.fix = fix.into();
            let idle = attribution.client_idle(destination);
            if let (Some(idle), Remedy::LengthenIdle) = (idle, remedy) {
                let now = statement!(
                    "(it closes after {client_idle} now)",
                    client_idle = timer_nanos(idle)
                );
                finding.fix = finding.fix.then(" ", now);
            }
        }
        if first
            .is_some_and(|first| is_deliberate(first, attribution.client_idle(destination), counts))
            && renewal.is_none_or(Renewal::is_usual)
        {
            finding.severity = Severity::Info;
        }
        // what a client can do is not known before why its connections end
        let is_of_client = !matches!(
            first,
            Some(
                OpenReason::ServerHidden
                    | OpenReason::Unused
                    | OpenReason::Rejected
                    | OpenReason::ExcessBytes
            )
        );
        let client = client.filter(|_| is_of_client && !is_limited);
        if first == Some(OpenReason::Unused) {
            finding.risk = None;
        }
        finding = for_client(remedy, client, finding);
        finding = match first {
            Some(OpenReason::ClientAtOnce) => with_alternative(finding, DROPPED),
            Some(OpenReason::PerCall) => {
                let finding = with_alternative(finding, PAUSES);
                for_client(Remedy::LengthenIdle, client, finding)
            }
            _ => finding,
        };
        findings.push(finding);
    }
    findings
}

/// The finding with what else leaves the same traces.
fn with_alternative(mut finding: Finding, alternative: &'static str) -> Finding {
    finding.fix = finding.fix.then(". ", alternative);
    finding
}

/// After what a client closes connections.
fn renewed(renewal: Renewal) -> Statement {
    match renewal {
        Renewal::Requests(carried) => statement!(
            "it closes each after {carried}",
            carried = requests(carried)
        ),
        Renewal::Age(age) => {
            statement!("it closes each at an age of {age}", age = timer_nanos(age))
        }
    }
}

/// What one of both sides counts, where it is not seen which.
fn limited(renewal: Renewal) -> Statement {
    match renewal {
        Renewal::Requests(carried) => statement!(
            "each carried {carried}, so the client or the server has a limit",
            carried = requests(carried)
        ),
        Renewal::Age(_) => renewed(renewal),
    }
}

/// Connections that were opened because the client had closed others at its idle limit. Whether
/// that is too short is not known where the server's is not.
fn idle_limits(attribution: &Attribution<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (destination, name, _) in attribution.destinations() {
        let openings = attribution.idle_limited(destination);
        let (true, Some(idle)) = (openings >= LEAST, attribution.client_idle(destination)) else {
            continue;
        };
        let opened = connections(openings);
        let text = format!("{opened:#} opened {}", OpenReason::ClientIdle.words());
        let said = Statement::written(text, vec![("openings", opened)]);
        let evidence = statement!(
            "it closes after {client_idle}; how long the server keeps connections was not observed",
            client_idle = timer_nanos(idle)
        );
        let mut finding = Finding::by(&RULE.doc, Severity::Info, name, said, evidence);
        finding.fix = CLIENT_IDLE.into();
        let client = attribution.client(destination);
        findings.push(for_client(Remedy::LengthenIdle, client, finding));
    }
    findings
}

/// The remedy for an idle limit of the client.
const CLIENT_IDLE: &str = "Leave the limit as it is if it has to be below the server's (`stale-reuse`, `idle-timeout-race`). Otherwise let the client keep idle connections for longer than its pauses, and for less than the server does";

/// Whether its connections carried something of which neither HTTP nor TLS is known. `name` is that
/// of the destination.
fn is_unread(counts: &Counts, name: &str) -> bool {
    let is_used = counts.unused < counts.opened;
    counts.requests == 0 && is_used && name.starts_with("tcp://")
}

/// How many connections there were, for what, and how many were busy at the same time.
fn unseen_ends(counts: &Counts, needed: u64) -> Statement {
    let said = statement!(
        "{opened} for {requests}, at most {needed} busy at the same time",
        opened = connections(counts.opened),
        requests = requests(counts.requests),
        needed = Value::Number(needed)
    );
    and_reuse(said, counts)
}

/// How many connections there were, for what, and how many were needed.
fn opened(counts: &Counts, needed: u64, by_server: bool) -> Statement {
    let opened = connections(counts.opened);
    let said = if counts.requests > 0 && by_server {
        statement!(
            "{opened} for {requests}, {needed} would do if the server ended none",
            opened = opened,
            requests = requests(counts.requests),
            needed = Value::Number(needed)
        )
    } else if counts.requests > 0 {
        statement!(
            "{opened} for {requests}, {needed} needed",
            opened = opened,
            requests = requests(counts.requests),
            needed = Value::Number(needed)
        )
    } else if counts.unused == counts.opened {
        statement!("{opened} opened and never used", opened = opened)
    } else {
        statement!(
            "{opened}, at most {needed} at the same time; their requests cannot be seen",
            opened = opened,
            needed = Value::Number(needed)
        )
    };
    and_reuse(said, counts)
}

fn and_reuse(said: Statement, counts: &Counts) -> Statement {
    let known = counts.first + counts.reused;
    if known == 0 {
        return said;
    }
    let share = |count: u64, all: u64| Value::Share(count as f64 / all as f64);
    let unknown = counts.requests.saturating_sub(known);
    said.and(if unknown == 0 {
        statement!(
            "{reused} of the requests reused one",
            reused = share(counts.reused, known)
        )
    } else {
        statement!(
            "{least} to {most} of the requests reused one",
            least = share(counts.reused, counts.requests),
            most = share(counts.reused + unknown, counts.requests)
        )
    })
}

/// How many connections were opened for each reason.
fn opened_for(reasons: &[(u64, OpenReason)]) -> Statement {
    let each = reasons
        .iter()
        .map(|(openings, why)| format!("{} opened {}", Value::Number(*openings), why.words()));
    let text = each.collect::<Vec<_>>().join("; ");
    let reasons = counts(
        reasons
            .iter()
            .map(|(openings, why)| (why.words(), *openings)),
    );
    Statement::written(text, vec![("reasons", reasons)])
}

/// Whether the client ends connections as the remedies of other rules advise, or may: by an idle
/// limit below the server's, or by renewing them. An idle limit is too short only where the server
/// is known to keep connections for longer.
fn is_deliberate(why: OpenReason, client_idle: Option<u64>, counts: &Counts) -> bool {
    let limits = client_idle.zip(server_limit(counts));
    match why {
        OpenReason::ClientIdle => limits.is_none_or(|(client, server)| client * 2 >= server),
        OpenReason::ClientRenewed => true,
        _ => false,
    }
}

/// What helps where the client does keep connections, but not for long enough, or does not live for
/// long enough itself.
fn other_fix(why: OpenReason) -> Option<&'static str> {
    Some(match why {
        OpenReason::Unused => {
            "Find what opens connections and closes them without a request: a health check or port probe, a pool that connects ahead, a client that races two addresses"
        }
        OpenReason::ClientIdle => CLIENT_IDLE,
        OpenReason::ClientRenewed => {
            "Nothing, if the client renews connections to follow its name to other addresses (`pinned-to-old-address`). Else raise its limit of requests or of age, or let one client live for longer"
        }
        OpenReason::NewProcess => {
            "Make the calls from one process that lives on: connections end with the process that opened them"
        }
        OpenReason::ServerHidden => {
            "Find out why the server closes: decrypt the connection (`watch --keys`, `audit --keylog`), or look at the server's limits of requests, age and idle time"
        }
        OpenReason::Rejected => {
            "Find out why the server closes connections that it has just accepted: a limit of connections or addresses, a crash, another protocol on this port"
        }
        OpenReason::ExcessBytes => {
            "Let the server send no bytes after a response: its body is longer than `Content-Length`, or a response to HEAD, 204 or 304 has a body"
        }
        _ => return None,
    })
}
