//! State: fields and cookies that bind a client to a connection, or to one server behind a
//! balancer. Stores names, never values.

use crate::line::Answered;
use intact_ledger::server_profile::State;
use std::collections::BTreeSet;

/// The maximum of names of each kind.
const MOST: usize = 20;

/// Fields whose values differ between responses anyway, or do not identify a server.
const IGNORED: [&str; 8] = [
    "date",
    "age",
    "expires",
    "last-modified",
    "content-length",
    "keep-alive",
    "set-cookie",
    "etag",
];

/// Compares responses, grouped by connection.
pub(super) fn compare(connections: &[Vec<Answered>]) -> State {
    let all = || connections.iter().flatten();
    let mut cookies = BTreeSet::new();
    let mut authentication = BTreeSet::new();
    for answered in all() {
        for cookie in answered.reply.all("set-cookie") {
            let name = cookie.split(['=', ';']).next().unwrap_or("").trim();
            if cookies.len() < MOST {
                cookies.insert(name.to_owned());
            }
        }
        for field in ["www-authenticate", "proxy-authenticate"] {
            for challenge in answered.reply.all(field) {
                let scheme = challenge.split([' ', ',']).next().unwrap_or("");
                if authentication.len() < MOST {
                    authentication.insert(scheme.to_owned());
                }
            }
        }
    }
    State {
        cookies: cookies.into_iter().collect(),
        authentication: authentication.into_iter().collect(),
        affinity: affinity(connections),
        compared: connections
            .iter()
            .filter(|answers| answers.len() > 1)
            .count() as u32,
    }
}

/// Fields that are equal within each connection and differ between connections. One response per
/// connection decides nothing.
fn affinity(connections: &[Vec<Answered>]) -> Vec<String> {
    let several: Vec<&Vec<Answered>> = connections
        .iter()
        .filter(|answers| answers.len() > 1)
        .collect();
    let names: BTreeSet<&str> = several
        .iter()
        .flat_map(|answers| answers.iter())
        .flat_map(|answered| answered.reply.fields())
        .map(|(name, _)| &**name)
        .filter(|name| !IGNORED.contains(name))
        .collect();
    let mut found = Vec::new();
    for name in names {
        let mut values = BTreeSet::new();
        let steady = several.iter().all(|answers| {
            let first = answers[0].reply.field(name);
            values.insert(first);
            answers
                .iter()
                .all(|answered| answered.reply.field(name) == first)
        });
        if steady && values.len() > 1 && found.len() < MOST {
            found.push(name.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_client::ResponseInfo;
    use intact_ledger::{Exchange, Nanos};

    fn answered(fields: &[(&str, &str)]) -> Answered {
        let mut reply = ResponseInfo::default();
        for (name, value) in fields {
            reply.note(name.as_bytes(), value.as_bytes());
        }
        Answered {
            exchange: Exchange::new(1, Nanos(0)),
            reply,
        }
    }

    #[test]
    fn a_field_that_names_a_connection_is_affinity_and_one_that_varies_is_not() {
        let connection = |backend, requests: [&str; 2]| {
            requests
                .map(|id| answered(&[("X-Backend", backend), ("X-Request", id), ("Server", "s")]))
                .to_vec()
        };
        let state = compare(&[connection("a", ["1", "2"]), connection("b", ["3", "4"])]);
        assert_eq!(state.affinity, ["x-backend"]);
        assert_eq!(state.compared, 2);
    }

    #[test]
    fn of_cookies_and_challenges_only_the_names_are_kept() {
        let state = compare(&[vec![answered(&[
            ("Set-Cookie", "sid=secret; Path=/"),
            ("Set-Cookie", "lb=node7"),
            ("WWW-Authenticate", "Negotiate"),
            ("WWW-Authenticate", "Basic realm=\"secret\""),
        ])]]);
        assert_eq!(state.cookies, ["lb", "sid"]);
        assert_eq!(state.authentication, ["Basic", "Negotiate"]);
        assert!(!format!("{state:?}").contains("secret"));
    }
}
