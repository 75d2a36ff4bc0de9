//! Servers that keep only a part of their connections, and ends of connections that are no limits.

use crate::check_limits::{OK, at, found, idle, limits, passes, profile, sentences};
use intact_document::Severity;
use intact_ledger::server_profile::{
    Ended, ErrorClose, IdleWait, MaxAge, RequestLimit, ServerProfile, WATERFALL,
};
use intact_ledger::{CloseKind, ConnectionId, Exchange, Nanos, Protocol, Reuse, Row, Side, Span};
use intact_reading::{Reading, Why};
use intact_servers::check::CheckFacts;

/// The end of a connection that the last response announced; `status` if that was an error.
fn closed(status: Option<u16>, requests: u32) -> Ended {
    Ended {
        by: Some(Side::Server),
        how: CloseKind::Fin,
        announced: true,
        unsolicited_status: None,
        error: status.map(|status| ErrorClose { status, requests }),
    }
}

/// An end right after a response.
fn at_once(ended: Ended) -> IdleWait {
    IdleWait {
        span: Span::new(at(10.0), at(10.000_068)),
        ended: Some(ended),
        next: None,
    }
}

/// Connections that carried this number of requests each.
fn waterfall(connections: &[u32]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (nth, requests) in connections.iter().enumerate() {
        for ordinal in 1..=*requests {
            let mut one = Exchange::new(rows.len() as u64, Nanos(0));
            one.end = Nanos(1_000_000);
            one.connection = Some(ConnectionId(nth as u64));
            one.tag = Some(WATERFALL.into());
            one.status = Some(200);
            one.reuse = Some(Reuse::of_position(ordinal));
            rows.push(Row::Exchange(Box::new(one)));
        }
    }
    rows
}

/// A profile of a server that closes with the first response of HTTP/1.1.
fn closing() -> ServerProfile {
    let mut profile = profile(None);
    profile.versions[0].reused = Some(false);
    profile.versions[0].says_kept = Some(false);
    profile
}

#[test]
fn ends_with_error_responses_are_no_limits() {
    let end = closed(Some(429), 50);
    let mut profile = profile(None);
    let requests = profile.requests.as_mut().unwrap();
    (requests.answered, requests.last_announced) = (27, true);
    requests.ended = Some(end);
    let later = closed(Some(429), 52);
    profile.idle = Some(limits(&[at_once(later), at_once(later)]));
    profile.age = Some(MaxAge {
        span: Span::new(at(20.0), at(20.001)),
        answered: 1,
        last_announced: true,
        ended: Some(later),
    });
    let facts = CheckFacts::new(&profile, &waterfall(&[3, 3]));
    let limit = &facts.idle_timeout.as_ref().unwrap().measured_s;
    assert!(limit.is_unknown());
    assert!(facts.max_requests.is_none() && facts.max_age.is_none());
    assert!(facts.settings.is_empty());
    for rule in [
        "idle-timeout-below-balancer",
        "idle-timeout-race",
        "max-requests-low",
    ] {
        assert!(found(&facts, rule).is_none(), "{rule}");
    }
    let verdict = sentences(&facts);
    let reason = "the server closes with error responses (429 after 50 requests)";
    assert!(verdict.contains(reason), "{verdict}");
    for gate in ["idle-timeout >= 5s", "max-requests >= 100", "errors == 0"] {
        assert!(!passes(&facts, gate), "{gate}");
    }
    // other connections may have shown a limit
    profile.idle = Some(limits(&[at_once(later), idle(7.0, OK)]));
    let facts = CheckFacts::new(&profile, &[]);
    assert!(passes(&facts, "idle-timeout >= 5s"));
}

#[test]
fn an_error_that_the_user_expects_is_a_response_like_others() {
    let mut profile = profile(None);
    let expected = "429".parse().unwrap();
    profile.contact.as_mut().unwrap().expect = Some(expected);
    let requests = profile.requests.as_mut().unwrap();
    (requests.answered, requests.last_announced) = (27, true);
    requests.ended = Some(closed(Some(429), 50));
    let facts = CheckFacts::new(&profile, &[]);
    assert_eq!(facts.max_requests.unwrap().measured.value(), Some(27.0));
}

#[test]
fn a_server_that_keeps_some_connections_is_not_one_that_keeps_none() {
    let mut profile = closing();
    let end = closed(None, 0);
    profile.requests = profile.requests.map(|one| RequestLimit {
        answered: 1,
        last_announced: true,
        ended: Some(end),
        ..one
    });
    profile.idle = Some(limits(&[at_once(end), idle(7.0, OK)]));
    let facts = CheckFacts::new(&profile, &waterfall(&[1, 3, 1, 3, 1]));
    let finding = found(&facts, "connection-not-kept").unwrap();
    assert_eq!(finding.severity, Severity::Warning);
    assert!(
        finding.claim.contains("keeps some connections"),
        "{}",
        finding.claim
    );
    let counts = "2 of 6 connections";
    assert!(finding.evidence.starts_with(counts), "{}", finding.evidence);
    let verdict = sentences(&facts);
    assert!(verdict.contains(counts), "{verdict}");
    assert!(found(&facts, "max-requests-low").is_none());
    let limit = &facts.idle_timeout.as_ref().unwrap().measured_s;
    assert_eq!(*limit, Reading::at_least(7.0, Why::LimitNotReached));
    // none is kept
    let facts = CheckFacts::new(&closing(), &waterfall(&[1, 1]));
    let finding = found(&facts, "connection-not-kept").unwrap();
    assert_eq!(finding.severity, Severity::Error);
}

#[test]
fn a_server_that_keeps_connections_of_one_version_only_keeps_none_of_the_other() {
    let mut profile = closing();
    let mut new = profile.versions[0].clone();
    (new.http, new.reused, new.says_kept) = (Protocol::Http2, Some(true), Some(true));
    profile.versions.push(new);
    profile.versions[0].connection = Some("close".to_owned());
    profile.requests = profile
        .requests
        .map(|one| RequestLimit { answered: 1, ..one });
    let facts = CheckFacts::new(&profile, &waterfall(&[1, 1]));
    assert_eq!(facts.keeps(), Some(false));
    let verdict = "Every request of HTTP/1.1 needs a connection of its own: the server closes after each response. HTTP/2 keeps connections.";
    assert_eq!(&*facts.verdict[0].statement, verdict);
    let finding = found(&facts, "connection-not-kept").unwrap();
    assert_eq!(finding.severity, Severity::Warning);
    assert!(!passes(&facts, "findings.connection-not-kept == 0"));
    assert!(found(&facts, "max-requests-low").is_none());
}

#[test]
fn a_server_of_http_1_0_keeps_connections_on_request() {
    let mut profile = closing();
    profile.versions[0].response_version = Some(Protocol::Http10);
    let facts = CheckFacts::new(&profile, &waterfall(&[3, 3]));
    assert_eq!(facts.keeps(), Some(true));
    let finding = found(&facts, "connection-not-kept").unwrap();
    assert!(finding.claim.contains("only if"), "{}", finding.claim);
    assert!(
        finding.fix.contains("`Connection: keep-alive`"),
        "{}",
        finding.fix
    );
}

#[test]
fn a_body_without_length_needs_a_length_and_not_a_timeout() {
    let fix = |connection: Option<&str>| {
        let mut profile = closing();
        profile.versions[0].connection = connection.map(str::to_owned);
        let facts = CheckFacts::new(&profile, &waterfall(&[1, 1]));
        found(&facts, "connection-not-kept")
            .unwrap()
            .fix
            .to_string()
    };
    assert!(fix(None).contains("`Content-Length`"));
    assert!(!fix(None).contains("keepalive_timeout"));
    assert!(fix(Some("close")).contains("keepalive_timeout"));
}

#[test]
fn bytes_after_the_response_are_named_and_no_timeout_is_advised() {
    let mut profile = closing();
    profile.versions[0].says_kept = Some(true);
    profile.versions[0].excess = Some(2);
    profile.requests = profile
        .requests
        .map(|one| RequestLimit { answered: 1, ..one });
    let facts = CheckFacts::new(&profile, &waterfall(&[1, 1]));
    let finding = found(&facts, "bytes-after-response").unwrap();
    assert!(finding.claim.contains("2 bytes"), "{}", finding.claim);
    assert!(finding.fix.contains("`Content-Length`"), "{}", finding.fix);
    assert!(found(&facts, "connection-not-kept").is_none());
    assert!(sentences(&facts).contains("2 bytes"), "{:?}", facts.verdict);
    assert!(facts.max_requests.is_none());
    assert!(!passes(&facts, "max-requests >= 1"));
}

#[test]
fn an_announced_timeout_of_0_is_no_client_setting() {
    let mut profile = profile(None);
    let ended = IdleWait {
        span: Span::new(at(10.0), at(10.3)),
        ended: Some(closed(None, 0)),
        next: None,
    };
    let mut idle = limits(&[ended]);
    idle.announced_s = Some(0);
    profile.idle = Some(idle);
    let facts = CheckFacts::new(&profile, &[]);
    let options: Vec<_> = facts.settings.iter().map(|one| &one.option).collect();
    let go = "IdleConnTimeout: 150 * time.Millisecond".to_owned();
    assert!(options.contains(&&go), "{options:?}");
}
