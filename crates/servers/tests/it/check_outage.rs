//! What the limits of a connection mean where the server stopped accepting connections.

use crate::check_limits::{OK, at, found, idle, limits, passes, profile};
use intact_ledger::server_profile::{Ended, Outage, ServerProfile};
use intact_ledger::{CloseKind, Failure, Side, Span};
use intact_servers::check::CheckFacts;

pub(crate) fn closed(how: CloseKind) -> Ended {
    Ended {
        by: Some(Side::Server),
        how,
        announced: false,
        unsolicited_status: None,
        error: None,
    }
}

/// A server that stopped at a request on the connection of the request limit.
fn stopped(over_at: Option<f64>) -> CheckFacts {
    let mut profile = profile(None);
    if let Some(tried) = &mut profile.requests {
        tried.answered = 34;
        tried.failed = Some(Failure::Closed);
        tried.ended = Some(closed(CloseKind::Fin));
    }
    profile.outages.push(Outage {
        requests: 61,
        failure: Failure::Refused,
        detail: Some("Connection refused".to_owned()),
        began: Span::new(at(1.0), at(2.1)),
        over_at: over_at.map(at),
    });
    CheckFacts::new(&profile, &[])
}

#[test]
fn a_server_that_stopped_comes_first_and_passes_no_gate() {
    let facts = stopped(None);
    let first = &facts.verdict[0].statement;
    assert!(
        first.starts_with("The server stopped accepting connections after 61 requests ("),
        "{first}"
    );
    let max = &facts.max_requests.as_ref().unwrap().measured;
    assert!(max.is_unknown() && !facts.any_success());
    for gate in [
        "max-requests >= 30",
        "max-requests <= 40",
        "idle-timeout > 1s",
        "errors == 0",
    ] {
        assert!(!passes(&facts, gate), "{gate}");
    }
    assert!(found(&facts, "stopped-accepting").is_some());
    assert!(found(&facts, "max-requests-low").is_none());
    assert!(found(&facts, "idle-connection-blocks").is_none());
}

#[test]
fn a_figure_that_an_outage_cut_short_passes_no_gate() {
    let facts = stopped(Some(3.0));
    let first = &facts.verdict[0].statement;
    assert!(first.starts_with("The server accepted no connections for 900 ms after"));
    assert!(facts.any_success() && !passes(&facts, "max-requests >= 30"));
    // one that was measured before stays
    let mut profile = profile(None);
    profile
        .requests
        .iter_mut()
        .for_each(|tried| tried.answered = 34);
    profile
        .requests
        .iter_mut()
        .for_each(|tried| tried.failed = Some(Failure::Closed));
    profile.outages.push(Outage {
        requests: 61,
        failure: Failure::Refused,
        detail: None,
        began: Span::new(at(2.5), at(2.6)),
        over_at: Some(at(3.0)),
    });
    let facts = CheckFacts::new(&profile, &[]);
    let max = &facts.max_requests.as_ref().unwrap().measured;
    assert_eq!(max.value(), Some(34.0));
    assert!(passes(&facts, "max-requests >= 30"));
}

#[test]
fn the_end_of_a_server_is_no_idle_limit() {
    let mut ended = idle(3.0, OK);
    ended.ended = Some(closed(CloseKind::Rst));
    ended.next = None;
    let mut profile = ServerProfile {
        idle: Some(limits(&[ended])),
        ..profile(None)
    };
    assert_eq!(
        CheckFacts::new(&profile, &[])
            .idle_timeout
            .unwrap()
            .measured_s
            .value(),
        Some(3.0)
    );
    profile.outages.push(Outage {
        requests: 120,
        failure: Failure::Refused,
        detail: None,
        began: Span::new(at(9.0), at(14.0)),
        over_at: Some(at(15.0)),
    });
    let facts = CheckFacts::new(&profile, &[]);
    let idle = &facts.idle_timeout.as_ref().unwrap().measured_s;
    assert!(idle.is_unknown() && !passes(&facts, "idle-timeout >= 1s"));
    assert!(found(&facts, "idle-timeout-below-balancer").is_none());
}
