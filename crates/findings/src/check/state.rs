//! State that a reused connection, or a client shared between users, carries over.

use super::{CheckFacts, finding};
use crate::finding::{Finding, Severity};

/// Schemes that authenticate the connection and not the request (RFC 4559 section 6).
const CONNECTION_BOUND: [&str; 2] = ["ntlm", "negotiate"];

pub(super) fn findings(facts: &CheckFacts) -> Vec<Finding> {
    let Some(state) = &facts.state else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let bound: Vec<&str> = state
        .authentication
        .iter()
        .filter(|scheme| CONNECTION_BOUND.contains(&&*scheme.to_ascii_lowercase()))
        .map(String::as_str)
        .collect();
    if !bound.is_empty() {
        found.push(Finding {
            evidence: format!("it asks for {}", bound.join(", ")),
            fix: "give each user a client, and so connections, of its own".to_owned(),
            risk: Some("a shared pool answers one user with another one's rights".to_owned()),
            ..finding(
                facts,
                "state-carried-over",
                Severity::Warning,
                "authentication belongs to the connection: whoever uses it next is logged in"
                    .to_owned(),
            )
        });
    } else if !state.cookies.is_empty() {
        found.push(Finding {
            evidence: format!("cookies: {}", state.cookies.join(", ")),
            fix: "a client that is shared between users needs no cookie jar, or one for each".to_owned(),
            ..finding(
                facts,
                "state-carried-over",
                Severity::Info,
                "the server keeps state in cookies, which a shared client carries from one request to the next".to_owned(),
            )
        });
    }
    if !state.affinity.is_empty() {
        found.push(Finding {
            evidence: format!(
                "the same on each of {} connections, different between them: {}",
                state.compared,
                state.affinity.join(", ")
            ),
            fix: "long-lived connections keep the servers that they found first: give them a maximum age so that new servers get their share".to_owned(),
            ..finding(
                facts,
                "connection-affinity",
                Severity::Info,
                "a connection stays with one of several servers".to_owned(),
            )
        });
    }
    found
}
