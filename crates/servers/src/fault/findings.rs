//! What stands out on the card, and what to change. Each remedy is general; the setting of a client
//! belongs to `intact fix`.

use super::card::{FaultCell, FaultOutcome};
use super::strike_counts::may_be;
use intact_document::finding::{Finding, Severity};
use intact_document::statement::{Statement, Value, connections, nanos, requests, statement, text};
use intact_ledger::StallEnd;

/// The findings that a card can have.
pub const RULES: &[&str] = &[
    "duplicate-request",
    "failed-on-dead-connection",
    "hang-on-dead-connection",
    "leaked-dead-connection",
    "truncated-as-complete",
];

const NO_DUPLICATE: &str = "Let the client retry requests that are not idempotent only where no byte of them was sent, and give them an idempotency key that the server checks";
const TIMEOUT: &str = "Set a timeout for the response (`intact fix CLIENT --full` prints the setting), and let the client check silent connections (HTTP/2 PING, TCP keep-alive, `TCP_USER_TIMEOUT`)";
const RETRY: &str = "Let the client send idempotent requests again on a new connection, and limit the idle time of pooled connections below that of the server and of the path";
const CHECK_LENGTH: &str = "Compare the length of each body with `Content-Length` or the last chunk, and treat a shorter one as an error";
const RETRY_ON_NEW: &str = "Let the client send the request again on a new connection, not on the next one of its pool, which ends by the same restart, NAT or balancer";
const LOOK_UP: &str = "Let the client look the name up again before it opens a connection, and limit how long it keeps an address";
const VERIFY: &str = "Use TLS, and verify the certificate and its name: only that shows which server responds. Let the client look the name up again before it opens a connection";
const CLOSE: &str = "Close pooled connections whose peer has sent a FIN: limit the idle time of the pool, or let it check connections in the background";

/// What a finding or a requirement calls the cell.
pub(super) fn subject(cell: &FaultCell) -> String {
    match cell.destination.as_str() {
        "" => cell.name.clone(),
        destination => format!("{} at {destination}", cell.name),
    }
}

/// The findings of all cells, the worst first.
pub(super) fn findings(cells: &[FaultCell]) -> Vec<Finding> {
    let mut findings: Vec<(FaultOutcome, Finding)> = cells
        .iter()
        .flat_map(|cell| of_cell(cell).into_iter().map(|one| (cell.outcome, one)))
        .collect();
    findings.sort_by_key(|(outcome, one)| std::cmp::Reverse((one.severity, *outcome)));
    findings.into_iter().map(|(_, one)| one).collect()
}

fn of_cell(cell: &FaultCell) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |rule, severity, claim: Statement, fix: &'static str| {
        let finding = Finding::new(rule, severity, subject(cell), claim);
        findings.push(finding.evidence(evidence(cell)).fix(fix));
    };
    let counted = &cell.counted;
    let duplicated = &counted.duplicated;
    if may_be(duplicated) {
        let claim = match duplicated.is_positive() {
            true => statement!(
                "{duplicated:#} sent again after the server had received a part of it",
                duplicated = requests(duplicated.low() as u64)
            ),
            false => statement!(
                "{duplicated} may have reached the server twice",
                duplicated = requests(duplicated.high() as u64)
            ),
        };
        add("duplicate-request", Severity::Error, claim, NO_DUPLICATE);
    }
    if may_be(&counted.truncated) {
        let claim = statement!(
            "the program may have taken {responses} that the fault cut short as complete",
            responses = Value::Count(counted.truncated.high() as u64, "response")
        );
        add("truncated-as-complete", Severity::Info, claim, CHECK_LENGTH);
    }
    if matches!(cell.outcome, FaultOutcome::Hung) || counted.is_open_ended {
        let waited = nanos(counted.hung_ms.unwrap_or(0.0) * 1e6);
        let claim = match counted.is_open_ended {
            true if cell.hung_until == Some(StallEnd::ProgramClosed) => statement!(
                "a request waited at least {waited}, and its end was not seen",
                waited = waited
            ),
            true => statement!(
                "a request waited at least {waited}, and no timeout of the program ended it",
                waited = waited
            ),
            false => statement!(
                "a request waited {waited} until the program gave up, and failed",
                waited = waited
            ),
        };
        add("hang-on-dead-connection", Severity::Warning, claim, TIMEOUT);
    } else if counted.failed.is_positive() {
        let failed = requests(counted.failed.low() as u64);
        let retry = match cell.kind.row().is_of_address {
            true => LOOK_UP,
            false => RETRY,
        };
        let (claim, fix) = match (counted.misled, counted.met_again) {
            (1.., _) => (
                statement!(
                    "{misled} came from another server, which has the address now",
                    misled = Value::Count(counted.misled, "response")
                ),
                VERIFY,
            ),
            (0, 0) => (
                statement!(
                    "{failed} failed, without a further attempt that got a response",
                    failed = failed
                ),
                retry,
            ),
            (0, again) => (
                statement!(
                    "{failed} failed: {again} on the next dead connection of the pool",
                    failed = failed,
                    again = Value::Count(again, "attempt")
                ),
                RETRY_ON_NEW,
            ),
        };
        add("failed-on-dead-connection", Severity::Warning, claim, fix);
    }
    if counted.leaked > 0 {
        let claim = statement!(
            "the program did not close {leaked} before its end, although the peer had",
            leaked = connections(counted.leaked)
        );
        add("leaked-dead-connection", Severity::Info, claim, CLOSE);
    }
    findings
}

/// What shows it: the counts of both sides.
fn evidence(cell: &FaultCell) -> Statement {
    let mut evidence = statement!("the program sent {sent}", sent = requests(cell.sent));
    let reached = &cell.counted.reached;
    let (least, most) = (reached.low() as u64, reached.high() as u64);
    let reached = match reached.is_known() {
        true => statement!(
            "{reached} reached the server",
            reached = Value::Number(least)
        ),
        false => statement!(
            "{reached_least} to {reached_most} reached the server",
            reached_least = Value::Number(least),
            reached_most = Value::Number(most)
        ),
    };
    evidence = evidence.then(", ", reached);
    if let Some(example) = &cell.example {
        evidence = evidence.and(statement!("for example {example}", example = text(example)));
    }
    if let (Some(StallEnd::Limit), Some(_)) = (cell.hung_until, cell.counted.hung_ms) {
        evidence = evidence.and("intact ended the wait (`--fault-wait`)");
    }
    if let Some(reason) = cell.undecided {
        evidence = evidence.and(reason);
    }
    evidence
}
