//! Idle limits: what they mean for clients and for balancers in front, and requests at the moment of the limit.

use super::{CheckFacts, IdleTimeout, RaceAttempt, RaceFacts, clients, finding};
use crate::finding::{Finding, Severity};
use intact_units::number::{tick, timer};

/// Idle limits of balancers and routers towards the servers behind them, in seconds, as their documentation says.
const BALANCERS: [(&str, f64); 3] = [
    ("AWS ALB", 60.0),
    ("Heroku router", 90.0),
    ("Google Cloud load balancer", 600.0),
];
/// Clients that the advice names; the document and the page have them all.
const NAMED: usize = 3;
/// What is announced may be this much longer than what is measured, in seconds: clocks and sweeps.
const TOLERANCE: f64 = 0.5;

pub(super) fn findings(facts: &CheckFacts) -> Vec<Finding> {
    let Some(idle) = &facts.idle_timeout else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if facts.keeps() != Some(false) {
        found.extend(broken_promise(facts, idle));
        found.extend(balancers(facts, idle));
        found.extend(race(facts, idle));
        found.extend(before_first(facts, idle));
        found.extend(shrinks(facts, idle));
    }
    found.extend(blocks(facts, idle));
    found
}

/// It closes earlier than it says.
fn broken_promise(facts: &CheckFacts, idle: &IdleTimeout) -> Option<Finding> {
    let (measured, announced) = (idle.measured_s?, f64::from(idle.announced_s?));
    if measured + TOLERANCE >= announced {
        return None;
    }
    let claim = format!(
        "announces {announced} s and closes after {}",
        timer(measured * 1e3)
    );
    Some(Finding {
        evidence: format!("`Keep-Alive: timeout={announced}` on the answer before"),
        fix: "find who closes (a proxy in front?), and let it announce its own limit: clients that believe the announcement send into closed connections".to_owned(),
        ..finding(facts, "announced-not-kept", Severity::Error, claim)
    })
}

/// Shorter than what common balancers keep towards their servers.
fn balancers(facts: &CheckFacts, idle: &IdleTimeout) -> Option<Finding> {
    let measured = idle.measured_s?;
    let longer: Vec<String> = BALANCERS
        .iter()
        .filter(|(_, keeps)| *keeps >= measured)
        .map(|(name, keeps)| format!("{name} {keeps:.0} s"))
        .collect();
    if longer.is_empty() {
        return None;
    }
    let behind_all = measured <= BALANCERS[0].1;
    let claim = format!(
        "closes idle connections after {}, sooner than common balancers in front of it would",
        timer(measured * 1e3)
    );
    Some(Finding {
        evidence: format!("they keep idle connections to their servers: {}", longer.join(", ")),
        fix: "behind such a balancer set the server's limit above the balancer's: nginx `keepalive_timeout 75s` (650s for Google), Apache `KeepAliveTimeout`, Node `server.keepAliveTimeout = 65_000`, gunicorn `--keep-alive 75`".to_owned(),
        risk: Some("a balancer that sends into a connection the server is closing answers its client with 502".to_owned()),
        ..finding(
            facts,
            "idle-timeout-below-balancer",
            if behind_all { Severity::Warning } else { Severity::Info },
            claim,
        )
    })
}

/// What to set clients to, and what happened to requests around the limit.
fn race(facts: &CheckFacts, idle: &IdleTimeout) -> Option<Finding> {
    let measured = idle.measured_s?;
    let kept = clients::below(facts.safe_idle_s()?) as f64 / 1e3;
    let lost = facts
        .race
        .as_ref()
        .is_some_and(|race| race.attempts.iter().any(RaceAttempt::is_lost));
    let announces = idle.announced_s.map_or_else(
        || "announces nothing".to_owned(),
        |announced| format!("announces {announced} s"),
    );
    let claim = format!(
        "closes idle connections after {} ({announces}): a client must give up an idle connection sooner, after {}",
        timer(measured * 1e3),
        timer(kept * 1e3)
    );
    let options: Vec<String> = facts
        .settings
        .iter()
        .take(NAMED)
        .map(|setting| format!("{} `{}`", setting.client, setting.option))
        .collect();
    Some(Finding {
        evidence: facts.race.as_ref().map_or_else(
            || "requests around the limit were not sent".to_owned(),
            tell_race,
        ),
        fix: format!(
            "set {}; clients without an idle limit of their own (Python requests, boto3, Node http.Agent) need a retry; TCP keep-alive does not help: the limit counts requests, not packets",
            options.join("; ")
        ),
        risk: Some("a request into a closing connection is lost: clients try GET again, POST mostly not (\"socket hang up\", \"connection reset\")".to_owned()),
        ..finding(
            facts,
            "idle-timeout-race",
            if lost { Severity::Warning } else { Severity::Info },
            claim,
        )
    })
}

/// The attempts in words.
fn tell_race(race: &RaceFacts) -> String {
    let told: Vec<String> = race
        .attempts
        .iter()
        .map(|attempt| {
            let apart = attempt.idle_s - race.limit_s;
            let when = format!(
                "{} {} the limit",
                tick(apart.abs() * 1e3),
                if apart < 0.0 { "before" } else { "after" }
            );
            let what = match (attempt.answered, attempt.sent) {
                (true, _) => "answered",
                (false, false) => "closed already",
                (false, true) => "lost",
            };
            format!("{when}: {what}")
        })
        .collect();
    if told.is_empty() {
        "requests around the limit were not sent".to_owned()
    } else {
        told.join("; ")
    }
}

/// Connections opened ahead of need are ended sooner than used ones.
fn before_first(facts: &CheckFacts, idle: &IdleTimeout) -> Option<Finding> {
    let before = idle.before_first_request_s?;
    let between = idle.measured_s.or(idle.at_least_s)?;
    if before + 1.0 >= between {
        return None;
    }
    let how = idle
        .before_first_request_ended
        .as_ref()
        .map_or_else(String::new, |ended| format!(", by {}", ended.words()));
    Some(Finding {
        evidence: format!("{} after the setup{how}; between requests it waits {}", timer(before * 1e3), timer(between * 1e3)),
        fix: "connections that are opened ahead of need (pre-connect, warm pools) must be used within that time".to_owned(),
        ..finding(
            facts,
            "shorter-before-first-request",
            Severity::Info,
            format!("a connection without any request is ended after {}", timer(before * 1e3)),
        )
    })
}

/// With others beside it an idle connection is given up sooner.
fn shrinks(facts: &CheckFacts, idle: &IdleTimeout) -> Option<Finding> {
    let held = facts.idle_under_load.as_ref()?;
    let alone = idle.measured_s.or(idle.at_least_s)?;
    let beside = held.measured_s.filter(|beside| beside + 1.0 < alone)?;
    Some(Finding {
        evidence: format!(
            "{} with {} other idle connections, {} alone",
            timer(beside * 1e3),
            held.connections,
            timer(alone * 1e3)
        ),
        fix: "clients must stay below the shorter time; raise the server's number of connections or workers".to_owned(),
        ..finding(
            facts,
            "idle-timeout-shrinks",
            Severity::Warning,
            format!(
                "with many connections idle ones are ended after {}",
                timer(beside * 1e3)
            ),
        )
    })
}

/// One silent connection keeps the server from answering others.
fn blocks(facts: &CheckFacts, idle: &IdleTimeout) -> Option<Finding> {
    if idle.answers_others != Some(false) {
        return None;
    }
    Some(Finding {
        evidence: "a request on a second connection got no answer within 3 s while the first one was silent".to_owned(),
        fix: "more workers or threads (gunicorn `--worker-class gthread --threads N`), or a proxy in front that holds idle connections".to_owned(),
        risk: Some("a browser's or balancer's pre-opened connection stops the service".to_owned()),
        ..finding(
            facts,
            "idle-connection-blocks",
            Severity::Error,
            "one idle connection keeps the server from answering others".to_owned(),
        )
    })
}
