//! State that a reused connection, or a client shared between users, carries over.

use super::{CheckFacts, finding};
use intact_document::finding::{Finding, Severity};
use intact_document::statement::{connections, list, statement};

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
            evidence: statement!("it asks for {schemes}", schemes = list(bound)),
            fix: "give each user a client, and so connections, of its own".into(),
            risk: Some("a shared pool sends one user's requests with the rights of another".into()),
            ..finding(
                facts,
                "state-carried-over",
                Severity::Warning,
                "authentication belongs to the connection: the next user of it is logged in",
            )
        });
    } else if !state.cookies.is_empty() {
        found.push(Finding {
            evidence: statement!("cookies: {cookies}", cookies = list(&state.cookies)),
            fix: "share a client between users without a cookie jar, or with one for each".into(),
            ..finding(
                facts,
                "state-carried-over",
                Severity::Info,
                "the server keeps state in cookies, which a shared client carries from one request to the next",
            )
        });
    }
    if !state.affinity.is_empty() {
        found.push(Finding {
            evidence: statement!(
                "the same on each of {compared}, different between them: {fields}",
                compared = connections(state.compared.into()),
                fields = list(&state.affinity)
            ),
            fix: "long-lived connections stay with their first server: set a maximum age so that new servers get their share".into(),
            ..finding(
                facts,
                "connection-affinity",
                Severity::Info,
                "a connection stays with one of several servers",
            )
        });
    }
    found
}
