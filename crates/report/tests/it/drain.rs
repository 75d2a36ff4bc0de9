//! The page of a check of a server that ended: some requests lost, one version announced.

use crate::check::{self, run};
use crate::written;
use intact_ledger::server_profile::{
    Drain, DrainConnection, DrainRequest, DrainRole, Ended, FirstRequest, ServerEnd, ServerProfile,
};
use intact_ledger::{CloseKind, Failure, Nanos, Outcome, Protocol, Side};
use intact_report::documents::{CheckPart, CheckRun, check};
use intact_servers::check::CheckFacts;

const MS: u64 = 1_000_000;
/// The signal.
const AT: u64 = 1_000;

fn ms(after: u64) -> Nanos {
    Nanos((AT + after) * MS)
}

fn connection(role: DrainRole, http: Protocol, announced: Option<u64>) -> DrainConnection {
    let ended = Ended {
        by: Some(Side::Server),
        how: CloseKind::Fin,
        announced: announced.is_some(),
        unsolicited_status: None,
        error: None,
    };
    DrainConnection {
        role,
        http,
        at: Nanos(0),
        failed: None,
        announced_at: announced.map(ms),
        last_stream: announced.filter(|_| http == Protocol::Http2).map(|_| 3),
        ended: (role != DrainRole::New).then_some((ms(250), ended)),
    }
}

fn request(connection: usize, sent: u64, ended: u64, failed: Option<Failure>) -> DrainRequest {
    DrainRequest {
        connection,
        sent_at: Nanos(sent * MS),
        ended_at: ms(ended),
        outcome: failed.map_or(Outcome::Ok, Outcome::Failed),
        status: failed.is_none().then_some(200),
        announced: false,
    }
}

fn profile() -> ServerProfile {
    let refused = DrainConnection {
        at: ms(110),
        failed: Some(Failure::Refused),
        ..connection(DrainRole::New, Protocol::Http11, None)
    };
    let (one, two) = (Protocol::Http11, Protocol::Http2);
    ServerProfile {
        contact: check::profile().contact.map(|contact| FirstRequest {
            url: "http://localhost:8080/".to_owned(),
            server: Some("nginx/1.22.1".to_owned()),
            ..contact
        }),
        drain: Some(Drain {
            signal: "SIGTERM".to_owned(),
            at: ms(0),
            limit_ns: 30_000 * MS,
            connections: vec![
                connection(DrainRole::InFlight, one, None),
                connection(DrainRole::InFlight, two, Some(2)),
                connection(DrainRole::Used, one, None),
                connection(DrainRole::Used, two, Some(2)),
                connection(DrainRole::Idle, one, None),
                connection(DrainRole::New, one, None),
                refused,
            ],
            requests: vec![
                request(0, AT - 10, 250, Some(Failure::Truncated)),
                request(1, AT - 10, 200, None),
                request(2, AT + 80, 81, None),
                request(2, AT + 180, 181, Some(Failure::Stale)),
                request(3, AT + 1, 3, Some(Failure::Refusal)),
                request(5, AT + 10, 12, None),
            ],
            process: ServerEnd {
                command_at: Some(ms(260)),
                status: Some("exit code 0".to_owned()),
                group_at: Some(ms(260)),
                killed_at: None,
            },
            over_at: ms(260),
        }),
        ..ServerProfile::default()
    }
}

#[test]
fn the_page_of_a_drain() {
    let facts = CheckFacts::new(&profile(), &[]);
    let run = run();
    let page = || {
        let run = CheckRun {
            run: &run,
            facts: &facts,
        };
        check(run, CheckPart::All)
    };
    insta::assert_snapshot!("drain_terminal", written::terminal(&[page()]));
    let (markdown, _) = written::files("drain", &[page()]);
    insta::assert_snapshot!("drain_markdown", markdown);
}
