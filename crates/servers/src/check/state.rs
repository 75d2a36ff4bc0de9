//! State that a reused connection, or a client shared between users, carries over.

use super::{CheckFacts, finding};
use intact_document::finding::{Finding, Severity};
use intact_document::statement::{connections, list, statement};

/// Schemes that authenticate the connection and not the request (RFC 4559 section 6).
const CONNECTION_BOUND: [&str; 2] = ["ntlm", "negotiate"];
const COOKIES: &str =
    "the server keeps state in cookies, which a shared client carries from one request to the next";
const AFFINITY: &str = "long-lived connections stay with their first server: set a maximum age so that new servers get their share";

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
        let claim = "authentication belongs to the connection: the next user of it is logged in";
        let one = finding(facts, "state-carried-over", Severity::Warning, claim)
            .evidence(statement!("it asks for {schemes}", schemes = list(bound)))
            .fix("give each user a client, and so connections, of its own")
            .risk("a shared pool sends one user's requests with the rights of another");
        found.push(one);
    } else if !state.cookies.is_empty() {
        let one = finding(facts, "state-carried-over", Severity::Info, COOKIES)
            .evidence(statement!(
                "cookies: {cookies}",
                cookies = list(&state.cookies)
            ))
            .fix("share a client between users without a cookie jar, or with one for each");
        found.push(one);
    }
    if !state.affinity.is_empty() {
        let claim = "a connection stays with one of several servers";
        let evidence = statement!(
            "the same on each of {compared}, different between them: {fields}",
            compared = connections(state.compared.into()),
            fields = list(&state.affinity)
        );
        let one = finding(facts, "connection-affinity", Severity::Info, claim)
            .evidence(evidence)
            .fix(AFFINITY);
        found.push(one);
    }
    found
}
