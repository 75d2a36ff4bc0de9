//! Whether connections are kept at all, for how many requests, after which responses; and the
//! summary of a check in sentences.

use super::{CheckFacts, IdleTimeout, OutageFacts, Target, drain, finding};
use crate::failure_remedy::{failure_remedy, failure_words};
use crate::finding::{Finding, Severity};
use crate::rules::{AGE_LIMIT, ServerLimit, WHY_RESET};
use crate::statement::{Statement, Value, statement, text};
use intact_ledger::{CloseKind, Failure};
use intact_units::number::{time, timer, whole_percent};
use intact_units::plural::counted;

/// The remedy where a server keeps no connection.
pub(crate) const SWITCH_ON: &str = "nginx `keepalive_timeout`, Apache `KeepAlive On`, gunicorn `--worker-class gthread --keep-alive 75`, Node `server.keepAliveTimeout`; if a proxy is in front, let the proxy keep connections";

/// Requests per connection below which a busy client feels it.
const FEW_REQUESTS: u32 = 1_000;

pub(super) fn verdict(facts: &CheckFacts) -> Vec<String> {
    let Some(target) = &facts.target else {
        return vec!["Stopped before the first request.".to_owned()];
    };
    if let Some(failure) = target.failure {
        return vec![unmeasured(target, failure)];
    }
    let errors = &facts.errors;
    if errors.is_all() {
        // without counts: the card is printed before the limits are measured, and the sentence
        // stays the same
        return vec![errors.only_errors(None, "this profile describes an error page") + "."];
    }
    if let Some(drain) = &facts.drain {
        return drain::verdict(drain);
    }
    let mut parts: Vec<String> = facts.outages.iter().map(OutageFacts::sentence).collect();
    // a server that stopped for good matters more than one that came back
    parts.reverse();
    match facts.keeps() {
        Some(true) => parts.push(kept(facts)),
        Some(false) => parts.push(
            "Every request needs a connection of its own: the server closes after each response."
                .to_owned(),
        ),
        None => {}
    }
    parts.extend(errors.share().map(|share| share + "."));
    let fall = &facts.phases_ms;
    if let Some(cold) = fall.cold("total") {
        match fall.warm("total") {
            Some(warm) if warm.median < cold.median => parts.push(format!(
                "A first request takes {}, each next one on the same connection {}: a new connection costs {}, {} of the time.",
                time(cold.median),
                time(warm.median),
                time(cold.median - warm.median),
                whole_percent(fall.saved_share().unwrap_or_default())
            )),
            Some(warm) => parts.push(format!(
                "A first request takes {}, each next one on the same connection {}: reuse saves no time here.",
                time(cold.median),
                time(warm.median)
            )),
            None => parts.push(format!("A request takes {}.", time(cold.median))),
        }
    }
    parts
}

/// The sentence about a failed first request, with the remedy.
fn unmeasured(target: &Target, failure: Failure) -> String {
    let status = target
        .status
        .filter(|_| failure == Failure::UnexpectedStatus);
    let status = status.map(|status| format!("status {status}"));
    let words = failure_words(failure, status.as_deref().or(target.detail.as_deref()));
    let secure = target.url.starts_with("https:");
    let way_out = match (failure, target.other_scheme) {
        // the words of the failure have the remedy
        (Failure::NotPlain, _) => "",
        (_, Some(true)) if secure => "the port speaks plain HTTP: use http://",
        (_, Some(true)) => "the port speaks TLS: use https://",
        (failure, _) => failure_remedy(failure).unwrap_or_default(),
    };
    let way_out = if way_out.is_empty() {
        String::new()
    } else {
        format!("; {way_out}")
    };
    format!("Nothing could be measured: {words}{way_out}.")
}

/// For how long and how much.
fn kept(facts: &CheckFacts) -> String {
    let idle = facts.idle_timeout.as_ref();
    let silent = idle.and_then(IdleTimeout::silent_s);
    let age = aged_idle(facts);
    let waited = idle.filter(|_| silent.is_none()).and_then(|idle| {
        let announced = match idle.announced_s {
            Some(announced) => format!(" (announces {announced} s)"),
            None => String::new(),
        };
        match (idle.measured_s, idle.at_least_s) {
            (Some(measured), _) => Some(format!(
                "an idle one for {}{announced}",
                timer(measured * 1e3)
            )),
            // without its age, this is all that is known
            (None, Some(least)) if idle.last_announced && age.is_none() => Some(format!(
                "an idle one for {} and one more request{announced}",
                timer(least * 1e3)
            )),
            (None, Some(least)) => Some(format!(
                "an idle one for {} and longer{announced}",
                timer(least * 1e3)
            )),
            (None, None) => None,
        }
    });
    let most = facts
        .max_requests
        .as_ref()
        .and_then(|max| match (max.measured, max.at_least) {
            (Some(measured), _) => Some(format!("for {}", counted(measured.into(), "request"))),
            (None, Some(least)) => {
                Some(format!("for {} and more", counted(least.into(), "request")))
            }
            (None, None) => None,
        });
    let age = age.map(|age| format!("to an age of {} at most", timer(age * 1e3)));
    let parts: Vec<String> = waited.into_iter().chain(most).chain(age).collect();
    let kept = if parts.is_empty() {
        "Keeps connections".to_owned()
    } else {
        format!("Keeps connections: {}", parts.join(", "))
    };
    match silent {
        Some(silent) => format!(
            "{kept}. But an idle one got no response after {}.",
            timer(silent * 1e3)
        ),
        None => format!("{kept}."),
    }
}

/// The age that ended a connection after an idle time, in seconds.
fn aged_idle(facts: &CheckFacts) -> Option<f64> {
    let idle = facts.idle_timeout.as_ref()?;
    let age = facts.max_age.as_ref().filter(|_| idle.last_announced)?;
    age.measured_s
}

pub(super) fn findings(facts: &CheckFacts) -> Vec<Finding> {
    let Some(target) = &facts.target else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if let Some(failure) = target.failure {
        found.push(Finding {
            evidence: Statement::text(target.detail.clone().unwrap_or_default()),
            ..finding(facts, "unreachable", Severity::Error, failure.words())
        });
        return found;
    }
    if let Some(redirect) = &target.redirect {
        found.push(Finding {
            evidence: statement!(
                "{status} to {target}",
                status = Value::Number(redirect.status.into()),
                target = text(&redirect.to)
            ),
            fix: "-L follows it".into(),
            ..finding(
                facts,
                "redirect",
                Severity::Info,
                "this profile describes the server that redirects, not the target",
            )
        });
    } else if let Some(status) = target.status.filter(|status| !(200..300).contains(status))
        && facts.errors.expected().is_none()
    {
        found.push(Finding {
            evidence: "some servers close after errors and keep the connection otherwise".into(),
            fix: "name a URL with a 2xx response, with -H 'Authorization: ...' where it needs one"
                .into(),
            ..finding(
                facts,
                "not-2xx",
                if facts.errors.is_all() {
                    Severity::Error
                } else {
                    Severity::Info
                },
                statement!(
                    "this profile describes responses with status {status}",
                    status = Value::Number(status.into())
                ),
            )
        });
    }
    // how connections end after error pages says little of how they end after others
    if facts.errors.is_all() {
        return found;
    }
    if facts.keeps() == Some(false) {
        found.push(never_kept(facts));
        return found;
    }
    found.extend(cap(facts));
    found.extend(methods(facts));
    found
}

/// What raises the limit of requests, by product.
const REQUESTS: &str = "nginx `keepalive_requests`, Apache `MaxKeepAliveRequests`, lighttpd `server.max-keep-alive-requests`";

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
    Finding {
        evidence: answers.fold(Statement::default(), Statement::and),
        cost_ms: setup,
        cost_share: setup
            .zip(fall.cold("total"))
            .map(|(setup, total)| setup / total.median),
        fix: match facts.server_advice(ServerLimit::EveryResponse) {
            Some(advice) => Statement::text(format!(
                "{advice}; if a proxy is in front, let the proxy keep connections"
            )),
            None => SWITCH_ON.into(),
        },
        ..finding(
            facts,
            "connection-not-kept",
            Severity::Error,
            "the server closes the connection after every response",
        )
    }
}

fn cap(facts: &CheckFacts) -> Option<Finding> {
    let max = facts.max_requests.as_ref()?;
    let measured = max.measured.filter(|&measured| measured < FEW_REQUESTS)?;
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
            "it announces `max={announced_max}`",
            announced_max = Value::Seconds(max.into())
        ),
        None => "`max=` is not announced".into(),
    };
    let every = statement!(
        "at 100 requests/s that is a new connection every {every}",
        every = Value::Timer(f64::from(measured) * 10.0)
    );
    let manner = if announced {
        "announced"
    } else {
        "not announced"
    };
    // a connection that was used now and then ended with fewer requests: they are not what is
    // limited
    let aged = facts.max_age.as_ref();
    let aged = aged.filter(|age| age.answered < measured && max.announced.is_none());
    let age = aged.and_then(|age| Some((age.measured_s?, age.answered)));
    let carried = Value::Count(measured.into(), "request");
    let claim = match age {
        Some((age_s, answered)) => statement!(
            "a connection ends at an age: after {requests}, and after {age} with {fewer}",
            requests = carried,
            age = Value::Timer(age_s * 1e3),
            fewer = Value::Count(answered.into(), "request")
        ),
        None => statement!("a connection ends after {requests}", requests = carried),
    };
    Some(Finding {
        evidence: Statement::text(format!("{how}, {manner} before")).and(announcement).and(every),
        fix: if is_reset {
            WHY_RESET.into()
        } else if age.is_some() {
            AGE_LIMIT.into()
        } else {
            let line = facts.server_advice(ServerLimit::Requests);
            Statement::text(format!("raise the limit: {}", line.as_deref().unwrap_or(REQUESTS)))
        },
        risk: (!announced).then(|| {
            "an unannounced end loses the request in flight: most clients retry GET, few retry POST".into()
        }),
        ..finding(
            facts,
            "max-requests-low",
            if announced { Severity::Info } else { Severity::Warning },
            claim,
        )
    })
}

fn methods(facts: &CheckFacts) -> Vec<Finding> {
    facts
        .methods
        .iter()
        .filter(|method| method.kept == Some(false))
        .map(|method| Finding {
            evidence: method.status.map_or_else(Statement::default, |status| {
                statement!("status {status}", status = Value::Number(status.into()))
            }),
            fix: "let the server drain and keep such connections too: each of these requests costs the next one a setup".into(),
            ..finding(
                facts,
                "closed-after-method",
                // ranges and expectations that cannot be met are rare enough
                match method.status {
                    Some(416 | 417) => Severity::Info,
                    _ => Severity::Warning,
                },
                statement!("the connection ends after {request}", request = text(&method.what)),
            )
        })
        .collect()
}
