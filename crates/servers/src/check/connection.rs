//! Whether connections are kept at all, for how many requests, after which responses; and the
//! summary of a check in sentences.

use super::{
    CheckFacts, ERROR_CLOSES, IdleTimeout, KeptConnections, Target, VersionFacts, drain, finding,
};
use intact_advice::{ServerLimit, server_line};
use intact_document::failure_remedy::{BODY_LENGTH, failure_remedy, failure_words};
use intact_document::finding::{Finding, Severity};
use intact_document::statement::{Statement, Value, statement, text};
use intact_document::{Claim, ClaimKind, Claims};
use intact_ledger::{CloseKind, Failure};
use intact_traffic::rules::{AGE_LIMIT, WHY_RESET};
use intact_units::number::{time, timer, whole_percent};
use intact_units::plural::counted;

/// The start of the sentence about a server that keeps connections.
const KEEPS: &str = "Keeps connections";

/// Requests per connection below which a busy client feels it.
const FEW_REQUESTS: f64 = 1_000.0;

pub(super) fn claims(facts: &CheckFacts) -> Claims {
    let Some(target) = &facts.target else {
        let text = "Stopped before the first request.";
        return Claims::ranked([Claim::new(ClaimKind::Unseen, 1.0, text)]);
    };
    let errors = &facts.errors;
    Claims::ranked(match (target.failure, &facts.drain) {
        (Some(failure), _) => vec![Claim::new(
            ClaimKind::Failed,
            1.0,
            unmeasured(target, failure),
        )],
        // without counts: the profile is printed before the limits are measured, and the sentence
        // stays the same
        _ if errors.is_all() => {
            let text = errors.only_errors(None, "this profile describes an error page") + ".";
            vec![Claim::new(ClaimKind::Failed, 1.0, text)]
        }
        (None, Some(drain)) => drain::claims(drain),
        (None, None) => of_connections(facts),
    })
}

/// What is known of the server's connections.
fn of_connections(facts: &CheckFacts) -> Vec<Claim> {
    // a server that stopped for good matters more than one that came back
    let outages = facts.outages.iter().rev();
    let outages = outages.map(|one| Claim::new(ClaimKind::Failed, 1.0, one.sentence()));
    let mut claims: Vec<Claim> = outages.collect();
    match facts.keeps() {
        Some(true) => {
            let partly = facts.kept_connections.and_then(partly_kept);
            let (kind, text) = kept(facts);
            // nothing is known of their limits yet
            let is_bare = text == format!("{KEEPS}.");
            let kept = (partly.is_none() || !is_bare).then(|| Claim::new(kind, 0.0, text));
            claims.extend(partly.into_iter().chain(kept));
        }
        Some(false) => {
            let why = why_not_kept(facts);
            let text = match facts.kept_by_version() {
                Some((not, kept)) => format!(
                    "Every request of HTTP/{not} needs a connection of its own: {why}. HTTP/{kept} keeps connections."
                ),
                None => format!("Every request needs a connection of its own: {why}."),
            };
            claims.push(Claim::new(ClaimKind::Opened, 1.0, text));
        }
        None => {}
    }
    claims.extend(facts.error_close.map(|error| {
        let text = format!(
            "Not every limit was measured: {ERROR_CLOSES} ({} after {}).",
            error.status,
            counted(error.requests.into(), "request")
        );
        Claim::new(ClaimKind::Unseen, 0.0, text)
    }));
    let errors = facts.errors.share();
    claims.extend(errors.map(|share| Claim::new(ClaimKind::Errors, 0.0, share + ".")));
    claims.extend(time_of_requests(facts));
    claims
}

/// A TCP handshake that takes less, in milliseconds, is within one machine or network.
const NEAR_MS: f64 = 1.0;

/// How long a first request takes, and the next ones on its connection.
fn time_of_requests(facts: &CheckFacts) -> Option<Claim> {
    let fall = &facts.phases_ms;
    let cold = fall.cold("total")?;
    // where a round trip takes no time, what a setup costs is no argument
    let connect = fall.cold("connect");
    let is_near = connect.is_some_and(|one| one.median < NEAR_MS);
    let text = match fall.warm("total") {
        Some(warm) if warm.median < cold.median && is_near => format!(
            "A first request takes {}, each next one on its connection {}.",
            time(cold.median),
            time(warm.median)
        ),
        Some(warm) if warm.median < cold.median => format!(
            "A first request takes {}, each next one on its connection {}: reuse saves {}, {} of the time.",
            time(cold.median),
            time(warm.median),
            time(cold.median - warm.median),
            whole_percent(fall.saved_share().unwrap_or_default())
        ),
        Some(warm) => format!(
            "A first request takes {}, each next one on its connection {}: reuse saves no time here.",
            time(cold.median),
            time(warm.median)
        ),
        None => format!("A request takes {}.", time(cold.median)),
    };
    Some(Claim::new(ClaimKind::Note, 0.0, text))
}

/// The sentence about a server that keeps only a part of its connections.
fn partly_kept(all: KeptConnections) -> Option<Claim> {
    let text = match all.on_request {
        true => "The server keeps a connection only if the request has `Connection: keep-alive`."
            .to_owned(),
        false if all.is_partial() => format!(
            "The server keeps some connections and closes others after a response: {} of {} were kept.",
            all.kept,
            counted(all.of.into(), "connection")
        ),
        false => return None,
    };
    let lost = f64::from(all.of - all.kept) / f64::from(all.of.max(1));
    Some(Claim::new(ClaimKind::Opened, lost, text))
}

/// Why no connection carries a second request.
fn why_not_kept(facts: &CheckFacts) -> String {
    if let Some(bytes) = excess_bytes(facts) {
        return format!(
            "the client has to close it, because the server sends {} after the response that {} to no response",
            counted(bytes, "byte"),
            if bytes == 1 { "belongs" } else { "belong" }
        );
    }
    let body = match ends_bodies_by_closing(facts) {
        true => ", whose body has no length",
        false => "",
    };
    format!("the server closes after each response{body}")
}

/// Bytes after a response of HTTP/1.1 that belong to no response.
fn excess_bytes(facts: &CheckFacts) -> Option<u64> {
    let new = facts.versions.iter().filter(|one| one.http == "1.1");
    new.filter_map(|one| one.excess_bytes).max()
}

/// Whether the end of the connection is the end of every response: its body has no length.
fn ends_bodies_by_closing(facts: &CheckFacts) -> bool {
    let mut new = facts.versions.iter().filter(|one| one.http == "1.1");
    facts.keeps() == Some(false) && new.any(has_no_length)
}

/// Whether the response keeps the connection by its version and fields, and its body ends with the
/// connection (RFC 9112 section 6.3).
fn has_no_length(version: &VersionFacts) -> bool {
    let is_old = version.response_version == Some("1.0");
    version.curl == Some("closing") && version.connection.is_none() && !is_old
}

/// The sentence about a failed first request, with the remedy.
fn unmeasured(target: &Target, failure: Failure) -> String {
    let status = target
        .status
        .filter(|_| failure == Failure::UnexpectedStatus);
    let status = status.map(|status| format!("status {status}"));
    let words = failure_words(failure, status.as_deref().or(target.detail.as_deref()));
    let secure = target.url.starts_with("https:");
    let remedy = match (failure, target.other_scheme) {
        // the words of the failure have the remedy
        (Failure::NotPlain, _) => "",
        (_, Some(true)) if secure => "the port speaks plain HTTP: use http://",
        (_, Some(true)) => "the port speaks TLS: use https://",
        (failure, _) => failure_remedy(failure).unwrap_or_default(),
    };
    let remedy = match remedy {
        "" => String::new(),
        remedy => format!("; {remedy}"),
    };
    format!("Nothing could be measured: {words}{remedy}.")
}

/// For how long and how much.
fn kept(facts: &CheckFacts) -> (ClaimKind, String) {
    let idle = facts.idle_timeout.as_ref();
    let silent = idle.and_then(IdleTimeout::silent_s);
    let age = aged_idle(facts);
    let waited = idle.filter(|_| silent.is_none()).and_then(|idle| {
        let measured = &idle.measured_s;
        let announced = match idle.announced_s {
            Some(announced) => format!(" (announces {announced} s)"),
            None => String::new(),
        };
        let least = || timer(measured.low() * 1e3);
        match measured.high().is_finite() {
            _ if measured.is_unknown() => None,
            true => {
                let limit = measured.shown(|seconds| timer(seconds * 1e3));
                Some(format!("idle for {limit}{announced}"))
            }
            // without its age, this is all that is known
            false if idle.last_announced && age.is_none() => Some(format!(
                "idle for {} and one more request{announced}",
                least()
            )),
            false => Some(format!("idle for {} or longer{announced}", least())),
        }
    });
    let most = facts.max_requests.as_ref().and_then(|max| {
        let requests = counted(max.measured.low().max(0.0) as u64, "request");
        match max.measured.is_known() {
            _ if max.measured.is_unknown() => None,
            true => Some(format!("up to {requests}")),
            false => Some(format!("for at least {requests}")),
        }
    });
    let age = age.map(|age| format!("up to an age of {}", timer(age * 1e3)));
    let parts: Vec<String> = waited.into_iter().chain(most).chain(age).collect();
    let kept = if parts.is_empty() {
        KEEPS.to_owned()
    } else {
        format!("{KEEPS}: {}", parts.join(", "))
    };
    match silent {
        Some(silent) => {
            let silent = timer(silent * 1e3);
            let text = format!("{kept}. But an idle one got no response after {silent}.");
            (ClaimKind::Failed, text)
        }
        None => (ClaimKind::Well, format!("{kept}.")),
    }
}

/// The age that ended a connection after an idle time, in seconds.
fn aged_idle(facts: &CheckFacts) -> Option<f64> {
    let idle = facts.idle_timeout.as_ref()?;
    let age = facts.max_age.as_ref().filter(|_| idle.last_announced)?;
    age.measured_s.value()
}

pub(super) fn findings(facts: &CheckFacts) -> Vec<Finding> {
    let Some(target) = &facts.target else {
        return Vec::new();
    };
    if let Some(failure) = target.failure {
        let one = finding(facts, "unreachable", Severity::Error, failure.words());
        return vec![one.evidence(target.detail.clone().unwrap_or_default())];
    }
    let mut found = Vec::new();
    if let Some(redirect) = &target.redirect {
        let claim = "this profile describes the server that redirects, not the target";
        let evidence = statement!(
            "{status} to {target}",
            status = Value::Number(redirect.status.into()),
            target = text(&redirect.to)
        );
        let one = finding(facts, "redirect", Severity::Info, claim);
        found.push(one.evidence(evidence).fix("-L follows it"));
    } else if let Some(status) = target.status.filter(|status| !(200..300).contains(status))
        && facts.errors.expected().is_none()
    {
        let severity = Severity::Info.unless(facts.errors.is_all(), Severity::Error);
        let claim = statement!(
            "this profile describes responses with status {status}",
            status = Value::Number(status.into())
        );
        let one = finding(facts, "not-2xx", severity, claim)
            .evidence("some servers close after errors and keep the connection otherwise")
            .fix("name a URL with a 2xx response, with -H 'Authorization: ...' where it needs one");
        found.push(one);
    }
    // how connections end after error pages says little of how they end after others
    if facts.errors.is_all() {
        return found;
    }
    found.extend(excess_bytes(facts).map(|bytes| bytes_after_response(facts, bytes)));
    if facts.keeps() == Some(false) {
        // the client closes then
        if found.iter().all(|one| one.rule != "bytes-after-response") {
            found.push(never_kept(facts));
        }
        return found;
    }
    found.extend(facts.kept_connections.and_then(|all| partial(facts, all)));
    found.extend(cap(facts));
    found.extend(methods(facts));
    found
}

/// What keeps a connection whose server needs the end of the connection as the end of the body.
const UNANNOUNCED: &str =
    "an unannounced end loses the request in flight: most clients retry GET, few retry POST";
const LENGTH: &str = "send `Content-Length`, or `Transfer-Encoding: chunked` where the length is not known in advance: without them the end of the connection is the end of the body";

/// A client cannot know what the bytes belong to.
fn bytes_after_response(facts: &CheckFacts, bytes: u64) -> Finding {
    let claim = statement!(
        "the server sends {excess} after the response that belong to no response",
        excess = Value::Count(bytes, "byte")
    );
    finding(facts, "bytes-after-response", Severity::Error, claim)
        .evidence("the client closed the connection: it cannot find the start of the next response")
        .fix(BODY_LENGTH)
        .risk("a client that keeps such a connection takes the bytes for the start of the next response")
}

/// A server that keeps only a part of its connections.
fn partial(facts: &CheckFacts, all: KeptConnections) -> Option<Finding> {
    let counts = statement!(
        "{kept} of {connections} carried a second request",
        kept = Value::Number(all.kept.into()),
        connections = Value::Count(all.of.into(), "connection")
    );
    let (claim, evidence, fix) = match all.on_request {
        true => (
            "the server keeps a connection only if the request has `Connection: keep-alive`",
            counts.and("the server responds with HTTP/1.0"),
            "send `Connection: keep-alive` with each request, or let the server speak HTTP/1.1",
        ),
        false if all.is_partial() => (
            "the server keeps some connections and closes others after a response",
            counts,
            "several servers may share the address: look for one that closes, and set the same limits on each",
        ),
        false => return None,
    };
    let found = finding(facts, "connection-not-kept", Severity::Warning, claim);
    Some(found.evidence(evidence).fix(fix))
}

fn never_kept(facts: &CheckFacts) -> Finding {
    let answers = facts
        .versions
        .iter()
        .filter(|version| version.reused == Some(false) && version.http != "1.0")
        .map(|version| {
            let said = match (&version.connection, version.curl) {
                (Some(value), _) => format!("`Connection: {value}`"),
                (None, Some("closing")) if version.response_version == Some("1.0") => {
                    "a response of HTTP/1.0 without `Connection: keep-alive`".to_owned()
                }
                (None, Some("closing")) => "a body that ends with the connection".to_owned(),
                (None, _) => "no announcement".to_owned(),
            };
            Statement::text(format!("HTTP/{}: {said}", version.http))
        });
    let fall = &facts.phases_ms;
    let setup = match (fall.cold("total"), fall.cold("without_setup")) {
        (Some(total), Some(rest)) => Some((total.median - rest.median).max(0.0)),
        _ => None,
    };
    let claim = "the server closes the connection after every response";
    let (severity, claim) = match facts.kept_by_version() {
        Some((not, kept)) => (
            Severity::Warning,
            Statement::text(format!(
                "{claim} of HTTP/{not}, and keeps those of HTTP/{kept}"
            )),
        ),
        None => (Severity::Error, claim.into()),
    };
    let share = setup.zip(fall.cold("total"));
    let share = share.map(|(setup, total)| setup / total.median);
    let line = server_line(facts.server(), ServerLimit::EveryResponse);
    let fix = match ends_bodies_by_closing(facts) {
        true => LENGTH.to_owned(),
        false => format!("{line}; if a proxy is in front, let the proxy keep connections"),
    };
    finding(facts, "connection-not-kept", severity, claim)
        .evidence(answers.fold(Statement::default(), Statement::and))
        .costing(setup, share)
        .fix(fix)
}

fn cap(facts: &CheckFacts) -> Option<Finding> {
    let max = facts.max_requests.as_ref()?;
    let measured = max
        .measured
        .value()
        .filter(|&measured| measured < FEW_REQUESTS)?;
    let how = match &max.ended {
        Some(ended) => ended.words(),
        None if max.last_announced => "no end within a second: the client has to close".to_owned(),
        None => "a failed request".to_owned(),
    };
    let announced = max.last_announced;
    let is_reset = max
        .ended
        .as_ref()
        .is_some_and(|ended| ended.how == CloseKind::Rst)
        && !announced;
    let announcement = match max.announced {
        Some(max) => statement!(
            "`max=` announces {announced_max}",
            announced_max = Value::Count(max.into(), "request")
        ),
        None => "`max=` is not announced".into(),
    };
    let every = statement!(
        "at 100 requests/s that is a new connection every {every}",
        every = Value::Timer(measured * 10.0)
    );
    let (severity, manner) = match announced {
        true => (Severity::Info, "announced"),
        false => (Severity::Warning, "not announced"),
    };
    // a connection that was used now and then ended with fewer requests: they are not what is
    // limited
    let aged = facts.max_age.as_ref();
    let aged = aged.filter(|age| f64::from(age.answered) < measured && max.announced.is_none());
    let age = aged.and_then(|age| Some((age.measured_s.value()?, age.answered)));
    let carried = Value::Count(measured as u64, "request");
    let claim = match age {
        Some((age_s, answered)) => statement!(
            "a connection ends at an age: after {requests}, and after {age} with {fewer}",
            requests = carried,
            age = Value::Timer(age_s * 1e3),
            fewer = Value::Count(answered.into(), "request")
        ),
        None => statement!("a connection ends after {requests}", requests = carried),
    };
    let line = |limit| server_line(facts.server(), limit);
    let fix = match age {
        _ if is_reset => WHY_RESET.to_owned(),
        Some(_) => format!("{AGE_LIMIT}. {}", line(ServerLimit::Age)),
        None => format!("raise the limit: {}", line(ServerLimit::Requests)),
    };
    let found = finding(facts, "max-requests-low", severity, claim)
        .evidence(
            Statement::text(format!("{how}, {manner} before"))
                .and(announcement)
                .and(every),
        )
        .fix(fix)
        .risk(if announced { "" } else { UNANNOUNCED });
    Some(found)
}

fn methods(facts: &CheckFacts) -> Vec<Finding> {
    facts
        .methods
        .iter()
        .filter(|method| method.kept == Some(false))
        .map(|method| {
            // ranges and expectations that cannot be met are rare enough
            let severity = match method.status {
                Some(416 | 417) => Severity::Info,
                _ => Severity::Warning,
            };
            let claim = statement!("the connection ends after {request}", request = text(&method.what));
            let evidence = method.status.map_or_else(Statement::default, |status| {
                statement!("status {status}", status = Value::Number(status.into()))
            });
            finding(facts, "closed-after-method", severity, claim)
                .evidence(evidence)
                .fix("let the server drain and keep such connections too: each of these requests costs the next one a setup")
        })
        .collect()
}
