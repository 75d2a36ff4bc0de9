//! Idle limits: what they mean for clients and for balancers in front, and requests at the moment
//! of the limit.

use super::{CheckFacts, CloseFacts, IdleTimeout, RaceAttempt, RaceFacts, clients, finding};
use intact_advice::{ServerLimit, server_line};
use intact_document::finding::{Finding, Severity};
use intact_document::statement::{Statement, Value, list, statement, text, timer_s};
use intact_ledger::{CloseKind, Failure};
use intact_units::number::{tick, timer};

/// Idle limits of balancers and routers towards the servers behind them, in seconds, as their
/// documentation says.
const BALANCERS: [(&str, f64); 3] = [
    ("AWS ALB", 60.0),
    ("Heroku router", 90.0),
    ("Google Cloud load balancer", 600.0),
];
/// Clients that the advice names; the document and the page have them all.
const NAMED: usize = 3;
const KEEP_ALIVE: &str = "TCP keep-alive at shorter intervals also helps where a NAT or a firewall forgets, not where the server does";
/// Why there is no evidence around the limit.
const NOT_SENT: &str = "no requests were sent around the limit";
/// What is announced may be this much longer than what is measured, in seconds: clocks and sweeps.
const TOLERANCE: f64 = 0.5;

pub(super) fn findings(facts: &CheckFacts) -> Vec<Finding> {
    let Some(idle) = &facts.idle_timeout else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if facts.keeps() != Some(false) {
        found.extend(no_response(facts, idle));
        found.extend(broken_promise(facts, idle));
        found.extend(balancers(facts, idle));
        found.extend(race(facts, idle));
        found.extend(before_first(facts, idle));
        found.extend(shrinks(facts, idle));
    }
    found.extend(blocks(facts, idle));
    found
}

/// An idle connection that shows no end, and responds no more.
fn no_response(facts: &CheckFacts, idle: &IdleTimeout) -> Option<Finding> {
    let silent = timer_s(idle.no_response_s?);
    let is_silent = idle.no_response == Some(Failure::Timeout.id());
    let claim = statement!(
        "an idle connection got no response after {silent}",
        silent = silent.clone()
    );
    let cause = match is_silent {
        true => ": something between (NAT, firewall) forgets it, or the server does",
        false => ": the server, or something between, ended it with the request",
    };
    let evidence = statement!(
        "{connections} showed no end, and a request then failed: {failed}",
        connections = Value::Count(idle.no_responses.into(), "idle connection"),
        failed = text(idle.no_response.unwrap_or_default())
    );
    let confirmed = idle.confirmed_s().map(|least| {
        statement!(
            "after {at_least} there was a response",
            at_least = timer_s(least)
        )
    });
    let limit = match idle.confirmed_s() {
        Some(least) => statement!(
            "set the client's idle limit to {client_limit}",
            client_limit = timer_s(clients::below(least) as f64 / 1e3)
        ),
        None => statement!(
            "set the client's idle limit below {silent}; a shorter `--idle-limit` finds a time with a response",
            silent = silent
        ),
    };
    let severity = Severity::Warning.unless(is_silent, Severity::Error);
    let found = finding(facts, "no-response-after-idle", severity, claim.then("", cause))
        .evidence(confirmed.into_iter().fold(evidence, Statement::and))
        .fix(limit.then("; ", KEEP_ALIVE))
        .risk("each request on such a connection waits for the client's timeout or fails, and may have been executed");
    Some(found)
}

/// It closes earlier than it says.
fn broken_promise(facts: &CheckFacts, idle: &IdleTimeout) -> Option<Finding> {
    let (measured, announced) = (idle.shortest_s()?, f64::from(idle.announced_s?));
    // QUIC announces when both sides give up, and CONNECTION_CLOSE may come before
    if idle.is_http3() || measured + TOLERANCE >= announced {
        return None;
    }
    let claim = statement!(
        "announces {announced} and closes after {idle_timeout}",
        announced = timer_s(announced),
        idle_timeout = timer_s(measured)
    );
    let evidence = statement!(
        "`Keep-Alive: timeout={announced}` in the response before",
        announced = Value::Seconds(idle.announced_s?.into())
    );
    let found = finding(facts, "announced-not-kept", Severity::Error, claim)
        .evidence(evidence)
        .fix("find which side closes (a proxy in front?), and let it announce its own limit: clients that rely on the announcement send into closed connections");
    Some(found)
}

/// Shorter than what common balancers keep towards their servers.
fn balancers(facts: &CheckFacts, idle: &IdleTimeout) -> Option<Finding> {
    // they use no HTTP/3 towards servers
    let measured = idle.shortest_s().filter(|_| !idle.is_http3())?;
    let longer = BALANCERS.iter().filter(|(_, keeps)| *keeps >= measured);
    let longer: Vec<String> = longer
        .map(|(name, keeps)| format!("{name} {}", timer(keeps * 1e3)))
        .collect();
    if longer.is_empty() {
        return None;
    }
    // the lines of products name 75 s, which is longer than the first balancer's limit only
    let (severity, which, fix) = match measured <= BALANCERS[0].1 {
        true => (Severity::Warning, "common", format!(
            "behind such a balancer set the server's limit above the balancer's (75 s, 650 s for Google): {}",
            server_line(facts.server(), ServerLimit::Idle)
        )),
        false => (Severity::Info, "some", "nothing, unless such a balancer is in front: then set the server's limit above the balancer's".to_owned()),
    };
    let claim = statement!(
        "closes idle connections after {idle_timeout}, earlier than {which} load balancers do",
        idle_timeout = timer_s(measured),
        which = text(which)
    );
    let evidence = statement!(
        "load balancers that keep idle connections longer: {balancers}",
        balancers = list(longer)
    );
    let found = finding(facts, "idle-timeout-below-balancer", severity, claim)
        .evidence(evidence)
        .fix(fix)
        .risk("a balancer that sends into a connection that the server closes responds to its client with 502");
    Some(found)
}

/// What to set clients to, and what happened to requests around the limit.
fn race(facts: &CheckFacts, idle: &IdleTimeout) -> Option<Finding> {
    // the client knows the end where the timers of both sides led to it
    let is_by_both = |ended: &CloseFacts| ended.how == CloseKind::Silent;
    let measured = idle
        .shortest_s()
        .filter(|_| !idle.ended.as_ref().is_some_and(is_by_both))?;
    let kept = clients::below(facts.safe_idle_s()?) as f64 / 1e3;
    let is_none_safe = kept == 0.0;
    let race = facts.race.as_ref();
    let is_lost = race.is_some_and(|race| race.attempts.iter().any(RaceAttempt::is_lost));
    let severity = Severity::Info.unless(is_lost, Severity::Warning);
    let claim = match sampled(idle) {
        Some((_, last)) if is_none_safe => statement!(
            "closes idle connections after {idle_timeout} to {longest_idle}",
            idle_timeout = timer_s(measured),
            longest_idle = timer_s(last)
        ),
        Some((earliest, last)) => statement!(
            "closes idle connections after {idle_timeout} to {longest_idle}, at the earliest after {earliest_idle}",
            idle_timeout = timer_s(measured),
            longest_idle = timer_s(last),
            earliest_idle = timer_s(earliest)
        ),
        None => statement!(
            "closes idle connections after {idle_timeout}",
            idle_timeout = timer_s(measured)
        ),
    };
    let announcement = match idle.announced_s {
        Some(announced) => {
            statement!(
                "(announces {announced})",
                announced = timer_s(announced.into())
            )
        }
        None => "(announces nothing)".into(),
    };
    let limit = match is_none_safe {
        true => "no idle time is known to be safe for clients".into(),
        false => statement!(
            "a client must close an idle connection earlier, after {client_limit}",
            client_limit = timer_s(kept)
        ),
    };
    let claim = claim.then(" ", announcement).then(": ", limit);
    let settings = facts.settings.iter().take(NAMED);
    let options = settings.map(|setting| format!("{} `{}`", setting.client, setting.option));
    let fix = match idle.is_http3() {
        true => {
            "set the client's `max_idle_timeout` below it: QUIC uses the smaller one of both sides"
                .into()
        }
        false if is_none_safe => {
            "raise the server's limit, or let clients retry requests that fail on a reused connection".into()
        }
        false => statement!(
            "set {options}; clients without an idle limit of their own (Python requests, boto3, Node http.Agent) need a retry; TCP keep-alive does not help: the limit counts requests, not packets",
            options = list(options)
        ),
    };
    let found = finding(facts, "idle-timeout-race", severity, claim)
        .evidence(race.map_or_else(|| NOT_SENT.into(), around_limit))
        .fix(fix)
        .risk("a request into a closing connection is lost: clients retry GET, mostly not POST (\"socket hang up\", \"connection reset\")");
    Some(found)
}

/// The earliest end that is possible and the latest that was seen, where the samples differ.
fn sampled(idle: &IdleTimeout) -> Option<(f64, f64)> {
    let (earliest, shortest) = (idle.earliest_s()?, idle.shortest_s()?);
    let last = idle.samples_s.iter().copied().fold(shortest, f64::max);
    (last - shortest > TOLERANCE).then_some((earliest, last))
}

/// The attempts, each with its distance from the limit. Their values are in `race` of the document.
fn around_limit(race: &RaceFacts) -> Statement {
    let each = race.attempts.iter().map(|attempt| {
        let distance = attempt.idle_s - race.limit_s;
        let side = if distance < 0.0 { "before" } else { "after" };
        let outcome = match (attempt.answered, attempt.sent) {
            (true, _) => "answered",
            (false, false) => "closed already",
            (false, true) => "lost",
        };
        let distance = tick(distance.abs() * 1e3);
        Statement::text(format!("{distance} {side} the limit: {outcome}"))
    });
    each.reduce(Statement::and)
        .unwrap_or_else(|| NOT_SENT.into())
}

/// Connections opened ahead of need are ended sooner than used ones.
fn before_first(facts: &CheckFacts, idle: &IdleTimeout) -> Option<Finding> {
    let before = idle.before_first_request_s.value()?;
    let between = idle.shortest_s().or(idle.confirmed_s())?;
    if before + 1.0 >= between {
        return None;
    }
    let unused = timer_s(before);
    let mut evidence = statement!("{unused} after the setup", unused = unused.clone());
    if let Some(ended) = &idle.before_first_request_ended {
        evidence = evidence.then(", by ", Statement::text(ended.words()));
    }
    let claim = statement!(
        "the server closes a connection without a request after {unused}",
        unused = unused
    );
    let waits = statement!(
        "between requests it waits {between_requests}",
        between_requests = timer_s(between)
    );
    let found = finding(facts, "shorter-before-first-request", Severity::Info, claim)
        .evidence(evidence.and(waits))
        .fix("use connections that are opened ahead (pre-connect, warm pools) within that time");
    Some(found)
}

/// With other connections open, the idle timeout is shorter.
fn shrinks(facts: &CheckFacts, idle: &IdleTimeout) -> Option<Finding> {
    let held = facts.idle_under_load.as_ref()?;
    let alone = idle.shortest_s().or(idle.confirmed_s())?;
    let shorter = held
        .measured_s
        .value()
        .filter(|shorter| shorter + 1.0 < alone)?;
    let claim = statement!(
        "with many connections the server closes idle ones after {with_others}",
        with_others = timer_s(shorter)
    );
    let evidence = statement!(
        "{with_others} with {connections}, {alone} alone",
        with_others = timer_s(shorter),
        connections = Value::Count(held.connections.into(), "other idle connection"),
        alone = timer_s(alone)
    );
    let found = finding(facts, "idle-timeout-shrinks", Severity::Warning, claim)
        .evidence(evidence)
        .fix("set clients below the shorter time; raise the server's number of connections or workers");
    Some(found)
}

/// One silent connection keeps the server from answering others.
fn blocks(facts: &CheckFacts, idle: &IdleTimeout) -> Option<Finding> {
    if idle.answers_others != Some(false) {
        return None;
    }
    let claim = "one idle connection keeps the server from responding on others";
    let found = finding(facts, "idle-connection-blocks", Severity::Error, claim)
        .evidence("a request on a second connection got no response within 3 s while the first one was silent")
        .fix("more workers or threads (gunicorn `--worker-class gthread --threads N`), or a proxy in front that holds idle connections")
        .risk("a preconnected browser or load balancer stops the service");
    Some(found)
}
