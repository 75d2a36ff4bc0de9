//! What stands out about the end of a server's process, and the summary in sentences.

use super::{DrainFacts, ProcessEnd, REACTION};
use crate::check::{CheckFacts, finding};
use intact_advice::ServerLimit;
use intact_document::finding::{Finding, Severity};
use intact_document::statement::{
    Statement, Value, connections, counts, requests, statement, text,
};
use intact_document::{Claim, ClaimKind};
use intact_units::number::{time, timer};
use intact_units::plural::counted;

/// How a server loses nothing that is in flight.
const FINISH: &str = "on the signal, finish what is in flight, then close and exit: Go `http.Server.Shutdown`, Node `server.close()` in a handler of the signal, Java `HttpServer.stop(SECONDS)`, Spring `server.shutdown=graceful`";
/// How a server announces its end.
const ANNOUNCE: &str = "from the signal on, respond with `Connection: close` (HTTP/2: GOAWAY) before the port closes, as Go's `http.Server.Shutdown` does; Node's `server.close()` and Java's `HttpServer.stop` do not: there, a handler of the signal makes each response carry the field";
/// What helps with a server that ends in good order already.
const STOP_SENDING: &str = "let the platform stop sending before it sends the signal: a `preStop` sleep in Kubernetes, a deregistration delay of the balancer";
/// How a server ends before it is killed.
const END_IN_TIME: &str = "handle the signal, and limit the wait for open connections below the platform's limit (30 s in Kubernetes, 10 s in Docker)";
/// A response this late shows that the server handles the signal.
const REACTION_MS: f64 = REACTION as f64 / 1e6;
/// What a client cannot do about it.
const LOST_RISK: &str = "a client may repeat GET; a POST that was lost may have been executed";
/// The connections that a server refuses once it does not listen.
const REFUSED_AT_ONCE_MS: f64 = 1_000.0;

/// The summary.
pub(in crate::check) fn claims(drain: &DrainFacts) -> Vec<Claim> {
    use ClaimKind::{Failed, Note, Unseen, Warned, Well};
    let signal = &drain.signal;
    let ended = &drain.process.ended_ms;
    let (kind, loss, text) = match (drain.process.end, ended.value()) {
        (ProcessEnd::Ended, Some(ended)) => {
            let text = format!("The server ended {} after {signal}.", time(ended));
            (Well, 0.0, text)
        }
        (ProcessEnd::Killed, _) => {
            let least = timer(ended.low());
            let text = format!(
                "The server did not end within {least} after {signal}: SIGKILL was needed."
            );
            (Failed, 1.0, text)
        }
        (ProcessEnd::LeftBehind, _) => {
            let text = format!(
                "The command ended after {signal}, and its server goes on in another process group."
            );
            (Failed, 1.0, text)
        }
        _ => {
            let text = format!("Stopped before the server had ended after {signal}.");
            (Unseen, 1.0, text)
        }
    };
    let ended = Claim::new(kind, loss, text);
    let all = drain.all();
    let sent = counted(all.sent, "request");
    let lost = match (all.sent, all.lost) {
        (0, _) => {
            let text = "No request was in flight at the signal or could be sent after it.";
            Claim::new(Unseen, 0.0, text)
        }
        (_, 0) => Claim::new(Well, 0.0, format!("It lost none of {sent}.")),
        (of, lost) => {
            let share = lost as f64 / of as f64;
            Claim::new(Failed, share, format!("The server lost {lost} of {sent}."))
        }
    };
    let (announced, of) = drain.announcements();
    let connections = counted(of, "connection");
    let announced = match (announced, of) {
        (_, 0) => Claim::new(Well, 0.0, "It had no occasion to announce the end."),
        (announced, of) if announced == of => {
            let text = format!("It announced the end on {announced} of {connections}.");
            Claim::new(Well, 0.0, text)
        }
        (announced, of) => {
            let announced_on = match announced {
                0 => "none".to_owned(),
                some => some.to_string(),
            };
            let text = format!("The server announced the end on {announced_on} of {connections}.");
            Claim::new(Warned, 1.0 - announced as f64 / of as f64, text)
        }
    };
    let missing = (drain.in_flight.sent == 0).then(|| {
        let text = "No request was in flight at the signal: name one that takes its time, --drain-slow PATH.";
        Claim::new(Note, 0.0, text)
    });
    [ended, lost, announced]
        .into_iter()
        .chain(missing)
        .collect()
}

pub(in crate::check) fn findings(facts: &CheckFacts) -> Vec<Finding> {
    let Some(drain) = &facts.drain else {
        return Vec::new();
    };
    let all = [
        lost(facts, drain),
        not_ended(facts, drain),
        not_handled(facts, drain),
        not_announced(facts, drain),
        refused_at_once(facts, drain),
    ];
    all.into_iter().flatten().collect()
}

/// The remedy: the product's own, where the server names one.
fn remedy(facts: &CheckFacts, otherwise: &str) -> Statement {
    let own = facts
        .server()
        .and_then(|server| server.advice(ServerLimit::Drain));
    Statement::text(own.unwrap_or_else(|| otherwise.to_owned()))
}

/// Whether the server acts on the signal: it announced its end, or responded long after it.
fn handles_signal(drain: &DrainFacts) -> bool {
    let responds = drain
        .last_response_ms()
        .is_some_and(|last| last >= REACTION_MS);
    responds || drain.announcements().0 > 0
}

/// No server can help with requests on new connections, which are lost in the kernel's queue, and
/// with those that cross a FIN. One that is killed has other remedies.
fn lost_remedy(facts: &CheckFacts, drain: &DrainFacts) -> Statement {
    if drain.process.end == ProcessEnd::Killed {
        return END_IN_TIME.into();
    }
    let mut fix = Statement::default();
    if drain.in_flight.lost + drain.kept.lost > 0 {
        fix = remedy(facts, FINISH);
    }
    if drain.new.lost > 0 || handles_signal(drain) {
        fix = fix.and(STOP_SENDING);
    }
    fix
}

fn lost(facts: &CheckFacts, drain: &DrainFacts) -> Option<Finding> {
    let all = drain.all();
    if all.lost == 0 {
        return None;
    }
    let groups = [
        ("in flight at the signal", drain.in_flight),
        ("on kept connections after it", drain.kept),
        ("on new connections after it", drain.new),
    ];
    let groups = groups.into_iter().filter(|(_, group)| group.lost > 0);
    let by = drain.lost_by.iter().map(|(kind, count)| (*kind, *count));
    let claim = statement!(
        "the server lost {lost} of {requests} while it ended",
        lost = Value::Number(all.lost),
        requests = requests(all.sent)
    );
    let evidence = statement!(
        "{lost_by_time}; by kind: {lost_by}",
        lost_by_time = counts(groups.map(|(when, group)| (when, group.lost))),
        lost_by = counts(by)
    );
    let found = finding(facts, "lost-in-drain", Severity::Error, claim).evidence(evidence);
    Some(found.fix(lost_remedy(facts, drain)).risk(LOST_RISK))
}

/// It had to be killed, or its server survived.
fn not_ended(facts: &CheckFacts, drain: &DrainFacts) -> Option<Finding> {
    let process = &drain.process;
    let signal = text(&drain.signal);
    let waited = Value::Timer(process.ended_ms.low());
    let (claim, evidence, fix) = match (process.end, process.command_ended_ms) {
        (ProcessEnd::Unknown | ProcessEnd::Ended, _) => return None,
        (ProcessEnd::LeftBehind, _) | (_, Some(_)) => (
            statement!(
                "the command ends on {signal} and does not pass it on to its server",
                signal = signal
            ),
            statement!(
                "the command ended ({status}), and its server responded after that",
                status = text(process.status.as_deref().unwrap_or("status unknown"))
            ),
            Statement::text(
                "let the server be the command itself: `exec` in a shell script, the exec form of CMD in a Dockerfile, `--init`, no `npm start`",
            ),
        ),
        (ProcessEnd::Killed, None) => (
            statement!(
                "the server did not end within {waited} after {signal}",
                waited = waited,
                signal = signal
            ),
            match drain.last_response_ms() {
                Some(until) => statement!(
                    "it responded until {responded_until} after the signal",
                    responded_until = Value::Duration(until)
                ),
                None => "it did not respond after the signal".into(),
            },
            Statement::text(END_IN_TIME),
        ),
    };
    let found = finding(facts, "drain-not-ended", Severity::Error, claim)
        .evidence(evidence)
        .fix(fix)
        .risk("the platform's SIGKILL loses what is in flight");
    Some(found)
}

/// The signal's default action ended it.
fn not_handled(facts: &CheckFacts, drain: &DrainFacts) -> Option<Finding> {
    let status = drain.process.status.as_deref()?;
    // a server that ends in good order may raise the signal again at its end, as uvicorn does
    let is_cut_off = drain.all().lost > 0 && !handles_signal(drain);
    if drain.process.end != ProcessEnd::Ended || status != drain.signal || !is_cut_off {
        return None;
    }
    let claim = statement!(
        "the server has no handler of {signal}: every request in flight is cut off",
        signal = text(status)
    );
    let evidence = statement!(
        "the process ended {ended} after the signal, by its default action",
        ended = Value::Duration(drain.process.ended_ms.value()?)
    );
    let found = finding(facts, "drain-not-handled", Severity::Warning, claim).evidence(evidence);
    Some(found.fix(remedy(facts, FINISH)).risk(LOST_RISK))
}

fn not_announced(facts: &CheckFacts, drain: &DrainFacts) -> Option<Finding> {
    let silent = drain.versions.iter().filter(|one| one.not_announced > 0);
    let by: Vec<(String, u64)> = silent
        .map(|one| (format!("HTTP/{}", one.http), one.not_announced))
        .collect();
    let (announced, of) = drain.announcements();
    if by.is_empty() {
        return None;
    }
    let fix = if handles_signal(drain) {
        Statement::text(ANNOUNCE)
    } else {
        remedy(facts, ANNOUNCE)
    };
    let claim = statement!(
        "the server ends without an announcement on {silent} of {connections}",
        silent = Value::Number(of - announced),
        connections = connections(of)
    );
    let evidence = statement!(
        "not announced by version: {by_version}",
        by_version = counts(by)
    );
    let found = finding(facts, "drain-not-announced", Severity::Warning, claim)
        .evidence(evidence)
        .fix(fix)
        .risk("without an announcement a client sends its next request on a connection that the server is about to close");
    Some(found)
}

/// New connections are refused at once, while a balancer may still send to it.
fn refused_at_once(facts: &CheckFacts, drain: &DrainFacts) -> Option<Finding> {
    let from = drain
        .refused_from_ms
        .filter(|from| *from < REFUSED_AT_ONCE_MS)?;
    let claim = statement!(
        "new connections are refused from {refused_from} after {signal}",
        refused_from = Value::Duration(from),
        signal = text(&drain.signal)
    );
    let evidence = match drain.accepted_until_ms {
        Some(until) => statement!(
            "the last new connection with a response ended {accepted_until} after the signal",
            accepted_until = Value::Duration(until)
        ),
        None => "no new connection got a response after the signal".into(),
    };
    let found = finding(facts, "drain-refuses-at-once", Severity::Info, claim);
    Some(found.evidence(evidence).fix(STOP_SENDING))
}
