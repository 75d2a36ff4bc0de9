//! What the limits of a connection mean where a request after them got no response.

use intact_document::requirement::Requirement;
use intact_document::{Facts, Finding, Severity};
use intact_ledger::server_profile::{
    Ended, FirstRequest, IdleLimits, IdleWait, MaxAge, NextRequest, RequestLimit, ServerProfile,
    Skipped, VersionResult,
};
use intact_ledger::{CloseKind, Failure, Nanos, Outcome, Protocol, Span};
use intact_reading::{Reading, Why};
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
            rested: None,
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

pub(crate) fn sentences(facts: &CheckFacts) -> String {
    let sentences: Vec<&str> = facts.verdict.sentences().collect();
    sentences.join(" ")
}

fn limit(facts: &CheckFacts) -> &Reading {
    &facts.idle_timeout.as_ref().unwrap().measured_s
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
    assert_eq!(*limit(&facts), Reading::at_least(7.6, Why::LimitNotReached));
    assert!(passes(&facts, "idle-timeout >= 5s"));
    assert!(sentences(&facts).contains("idle for 7.6 s or longer"));
    assert!(found(&facts, "no-response-after-idle").is_none());
}

#[test]
fn an_idle_connection_without_a_response_passes_no_gate_and_is_found() {
    let facts = with_idle(&[idle(7.6, TIMEOUT), idle(5.0, TIMEOUT)]);
    assert_eq!(limit(&facts).to_string(), "at most 5");
    let limit = facts.idle_timeout.as_ref().unwrap();
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
    let all = sentences(&facts);
    assert!(
        all.ends_with("But an idle one got no response after 5 s"),
        "{all}"
    );
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
    assert_eq!(limit(&facts).to_string(), "at most 5");
    assert!(!passes(&facts, "idle-timeout >= 1s"));
}

#[test]
fn a_connection_that_ended_after_a_rest_as_long_as_the_idle_limit_shows_no_other() {
    let after = |rest_s: f64| {
        let ended = Some(crate::check_outage::closed(CloseKind::Fin));
        let waited = IdleWait {
            ended,
            ..idle(0.3, OK)
        };
        let mut profile = ServerProfile {
            idle: Some(limits(&[waited])),
            ..profile(None)
        };
        let requests = profile.requests.as_mut().unwrap();
        (requests.answered, requests.ended) = (14, ended);
        requests.rested = Some(Span::new(at(0.0), at(rest_s)));
        CheckFacts::new(&profile, &[])
            .max_requests
            .unwrap()
            .measured
    };
    assert_eq!(after(0.31), Reading::at_least(14.0, Why::LimitNotReached));
    assert_eq!(after(0.01), Reading::known(14.0));
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
    let first = &facts.verdict[0].statement;
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

#[test]
fn ends_that_differ_are_a_range_down_to_the_earliest_possible_one() {
    let ended = |seconds| IdleWait {
        ended: Some(Ended {
            by: None,
            how: CloseKind::Fin,
            announced: false,
            unsolicited_status: None,
            error: None,
        }),
        ..idle(seconds, OK)
    };
    let facts = with_idle(&[ended(33.0), ended(38.0)]);
    assert_eq!(limit(&facts).to_string(), "28 to 38");
    assert!(passes(&facts, "idle-timeout >= 28s"));
    assert!(!passes(&facts, "idle-timeout >= 33s"));
    let sentences = sentences(&facts);
    assert!(sentences.contains("idle for 28 s to 38 s"), "{sentences}");
}

#[test]
fn a_rule_whose_probe_did_not_run_is_not_judged() {
    let unjudged = |facts: &CheckFacts, id: &str| {
        let rules = facts.rules();
        let rule = rules.into_iter().find(|rule| rule.id == id).unwrap();
        rule.unjudged.map(|why| why.to_string())
    };
    let mut facts = with_idle(&[idle(5.0, OK)]);
    assert_eq!(unjudged(&facts, "idle-timeout-race"), None);
    assert!(unjudged(&facts, "lost-in-drain").is_some());
    facts.skipped.push(Skipped {
        probe: "idle limits".to_owned(),
        why: "--no-idle".to_owned(),
        cut_off: false,
    });
    let why = "its probe did not run: --no-idle".to_owned();
    assert_eq!(unjudged(&facts, "idle-timeout-race"), Some(why));
}

#[test]
fn without_a_success_figures_stay_known_and_are_not_judged() {
    let mut profile = profile(None);
    profile.contact.as_mut().unwrap().outcome = TIMEOUT;
    let facts = CheckFacts::new(&profile, &[]);
    let requirement: Requirement = "max-requests >= 100".parse().unwrap();
    let verdict = requirement.evaluate(&facts);
    assert!(!verdict.passed());
    assert_eq!(
        verdict.results()[0].words(),
        "max-requests is at least 110, not judged: the first request failed"
    );
}
