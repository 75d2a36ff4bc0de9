//! What the limits of a connection mean where a request after them got no response.

use intact_document::requirement::Requirement;
use intact_document::{Finding, Severity};
use intact_ledger::server_profile::{
    FirstRequest, IdleLimits, IdleWait, MaxAge, NextRequest, RequestLimit, ServerProfile,
    VersionResult,
};
use intact_ledger::{Failure, Nanos, Outcome, Protocol, Span};
use intact_servers::check::CheckFacts;

const S: u64 = 1_000_000_000;

pub(crate) fn at(seconds: f64) -> Nanos {
    Nanos((seconds * S as f64) as u64)
}

/// A connection that was idle from the start of second 10 on, and the request after that.
pub(crate) fn idle(seconds: f64, outcome: Outcome) -> IdleWait {
    IdleWait {
        span: Span::new(at(10.0), at(10.0 + seconds)),
        ended: None,
        next: Some(NextRequest {
            outcome,
            is_last: false,
        }),
    }
}

pub(crate) fn limits(samples: &[IdleWait]) -> IdleLimits {
    IdleLimits {
        http: Protocol::Http11,
        announced_s: None,
        between: samples.first().copied(),
        samples: samples.to_vec(),
        before_first: None,
        answers_others: Some(true),
    }
}

/// A server that keeps connections, and took 110 requests on one from second 1 to 2.
pub(crate) fn profile(server: Option<&str>) -> ServerProfile {
    ServerProfile {
        contact: Some(FirstRequest {
            url: "http://localhost/".to_owned(),
            outcome: Outcome::Ok,
            detail: None,
            status: Some(200),
            server: server.map(str::to_owned),
            body: 2,
            by_head: false,
            followed: Vec::new(),
            redirect: None,
            other_scheme: None,
            expect: None,
        }),
        versions: vec![VersionResult {
            http: Protocol::Http11,
            tls: None,
            asks: false,
            outcome: Outcome::Ok,
            detail: None,
            status: Some(200),
            response_version: None,
            says_kept: Some(true),
            reused: Some(true),
            cipher: None,
            alpn: None,
            connection: None,
            keep_alive: None,
            forbidden: Vec::new(),
            excess: None,
        }],
        requests: Some(RequestLimit {
            http: Protocol::Http11,
            answered: 110,
            wanted: 110,
            announced: None,
            last_announced: false,
            ended: None,
            failed: None,
            lasted: Some(Span::new(at(1.0), at(2.0))),
        }),
        ..ServerProfile::default()
    }
}

pub(crate) fn passes(facts: &CheckFacts, expression: &str) -> bool {
    let requirement: Requirement = expression.parse().unwrap();
    requirement.evaluate(facts).passed()
}

pub(crate) fn found<'a>(facts: &'a CheckFacts, rule: &str) -> Option<&'a Finding> {
    facts.findings.iter().find(|one| one.rule == rule)
}

fn with_idle(samples: &[IdleWait]) -> CheckFacts {
    let profile = ServerProfile {
        idle: Some(limits(samples)),
        ..profile(None)
    };
    CheckFacts::new(&profile, &[])
}

pub(crate) const OK: Outcome = Outcome::Ok;
const TIMEOUT: Outcome = Outcome::Failed(Failure::Timeout);

#[test]
fn an_idle_time_with_a_response_passes_a_gate() {
    let facts = with_idle(&[idle(7.6, OK), idle(5.0, OK)]);
    assert_eq!(facts.idle_timeout.as_ref().unwrap().at_least_s, Some(7.6));
    assert!(passes(&facts, "idle-timeout >= 5s"));
    assert!(facts.verdict[0].contains("idle for 7.6 s or longer"));
    assert!(found(&facts, "no-response-after-idle").is_none());
}

#[test]
fn an_idle_connection_without_a_response_passes_no_gate_and_is_found() {
    let facts = with_idle(&[idle(7.6, TIMEOUT), idle(5.0, TIMEOUT)]);
    let limit = facts.idle_timeout.as_ref().unwrap();
    assert_eq!((limit.at_least_s, limit.measured_s), (None, None));
    assert_eq!((limit.no_response_s, limit.no_responses), (Some(5.0), 2));
    assert_eq!(limit.no_response, Some("timeout"));
    assert!(!passes(&facts, "idle-timeout >= 5s"));
    assert!(!passes(&facts, "idle-timeout >= 1s"));
    assert!(passes(&facts, "idle-timeout <= 5s"));
    assert!(!passes(&facts, "findings.no-response-after-idle == 0"));
    let finding = found(&facts, "no-response-after-idle").unwrap();
    assert_eq!(finding.severity, Severity::Error);
    let claim = finding.claim.to_string();
    assert!(
        claim.starts_with("an idle connection got no response after 5 s: "),
        "{claim}"
    );
    assert!(facts.verdict[0].ends_with("But an idle one got no response after 5 s."));
    assert_eq!(facts.safe_idle_s(), None);
}

#[test]
fn the_limit_of_a_silent_end_lies_between_two_requests() {
    let reset = Outcome::Failed(Failure::Reset);
    let facts = with_idle(&[idle(7.6, reset), idle(6.5, reset), idle(5.0, OK)]);
    assert!(passes(&facts, "idle-timeout >= 5s"));
    assert!(!passes(&facts, "idle-timeout >= 6s"));
    assert_eq!(facts.safe_idle_s(), Some(5.0));
    assert!(!facts.settings.is_empty());
    let finding = found(&facts, "no-response-after-idle").unwrap();
    assert_eq!(finding.severity, Severity::Warning);
    // a shorter idle time without a response leaves the longer one no bound
    let facts = with_idle(&[idle(7.6, OK), idle(5.0, reset)]);
    assert_eq!(facts.idle_timeout.as_ref().unwrap().at_least_s, None);
    assert!(!passes(&facts, "idle-timeout >= 1s"));
}

#[test]
fn an_age_that_ends_idle_connections_is_named() {
    let mut last = idle(7.6, OK);
    last.next = last.next.map(|next| NextRequest {
        is_last: true,
        ..next
    });
    let profile = ServerProfile {
        idle: Some(limits(&[last])),
        age: Some(MaxAge {
            span: Span::new(at(20.0), at(22.4)),
            answered: 2,
            last_announced: true,
            ended: None,
        }),
        ..profile(None)
    };
    let facts = CheckFacts::new(&profile, &[]);
    assert!(facts.idle_timeout.as_ref().unwrap().last_announced);
    let first = &facts.verdict[0];
    assert!(
        first.ends_with("at least 110 requests, up to an age of 2.4 s."),
        "{first}"
    );
}

#[test]
fn nginx_that_closes_after_each_response_has_two_causes() {
    let mut profile = profile(Some("nginx/1.22.1"));
    for version in &mut profile.versions {
        version.reused = Some(false);
        version.connection = Some("close".to_owned());
    }
    let facts = CheckFacts::new(&profile, &[]);
    let advice = found(&facts, "connection-not-kept")
        .unwrap()
        .fix
        .to_string();
    assert!(advice.contains("`keepalive_timeout 75s;`"), "{advice}");
    assert!(advice.contains("`keepalive_requests 1000;`"), "{advice}");
}
