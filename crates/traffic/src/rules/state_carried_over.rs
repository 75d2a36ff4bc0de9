//! `state-carried-over`: what belongs to one user stays on the connection, or in the client, when
//! another comes.

use super::{Attribution, Fold, RuleRow};
use crate::Context;
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{requests, statement};
use intact_ledger::{ConnectionId, Event, Evidence, Identity};
use std::collections::{BTreeMap, HashMap};

/// Connections whose last identity is remembered.
const CONNECTIONS: usize = 32_768;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "state-carried-over",
        what: "Reuse carries state from one user to the next. A connection that NTLM or Negotiate has authenticated is used with another credential, or a cookie stays while the credential changes.",
        evidence: "The scheme of `Authorization`, and salted hashes of `Cookie` and of the user in `Authorization`: its token, or `username` (Digest). They are in memory only and never written, so a stored ledger, a HAR file or a log does not show this.",
        threshold: "One exchange. An error where the authentication belongs to the connection (NTLM, Negotiate), a warning where a cookie stayed.",
        false_positives: "A cookie that names no user (a language, a balancer's route); a client that renews its token before the server refuses it (401) and keeps its session.",
        fix: "Give each user a client, or at least a cookie jar. Never share a connection that has authenticated itself",
        risk: "A client per user means connections per user: pool by user, and do not make a client per request",
        needs: &[Evidence::Identities],
    },
    fold: || Box::<StateCarriedOver>::default(),
};

struct Carried {
    identity: Identity,
    /// The connection itself has been authenticated.
    bound: bool,
    /// The server refused the credential (401), so that the next one is its renewal.
    is_refused: bool,
}

#[derive(Default)]
struct StateCarriedOver {
    connections: HashMap<ConnectionId, Carried>,
    /// Exchanges with another credential on an authenticated connection, and with an unchanged
    /// cookie.
    seen: BTreeMap<usize, (u64, u64)>,
}

impl Fold for StateCarriedOver {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let exchange = match event {
            Event::Exchange(exchange) => exchange,
            Event::Closed(closed) => {
                self.connections.remove(&closed.connection);
                return;
            }
            _ => return,
        };
        let (Some(id), Some(destination)) = (exchange.connection, context.destination) else {
            return;
        };
        let identity = &exchange.identity;
        if identity.credential.is_none() {
            return;
        }
        let bound = identity.scheme.as_deref().is_some_and(|scheme| {
            ["ntlm", "negotiate"].contains(&scheme.to_ascii_lowercase().as_str())
        });
        if let Some(before) = self.connections.get(&id)
            && before.identity.credential != identity.credential
        {
            let seen = self.seen.entry(destination).or_default();
            let same_cookie =
                identity.cookie.is_some() && before.identity.cookie == identity.cookie;
            // the steps of one NTLM log-in carry different tokens
            if before.bound && !bound {
                seen.0 += 1;
            } else if same_cookie && !before.is_refused {
                seen.1 += 1;
            }
        }
        let known = self.connections.get(&id);
        let bound = bound || known.is_some_and(|before| before.bound);
        if known.is_some() || self.connections.len() < CONNECTIONS {
            let identity = identity.clone();
            let is_refused = exchange.status == Some(401);
            let carried = Carried {
                identity,
                bound,
                is_refused,
            };
            self.connections.insert(id, carried);
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (&destination, &(bound, cookies)) in &self.seen {
            if bound > 0 {
                let said = statement!(
                    "{requests} with another credential on a connection that NTLM or Negotiate authenticated",
                    requests = requests(bound)
                );
                let evidence = "the server may still treat them as requests of the first user";
                let finding =
                    attribution.finding(&RULE.doc, Severity::Error, destination, said, evidence);
                findings.push(finding);
            }
            if cookies > 0 {
                let said = statement!(
                    "{requests} changed the credential and kept the cookie",
                    requests = requests(cookies)
                );
                let evidence = "salted hashes of both fields, on the same connection";
                let finding =
                    attribution.finding(&RULE.doc, Severity::Warning, destination, said, evidence);
                findings.push(finding);
            }
        }
        findings
    }
}
