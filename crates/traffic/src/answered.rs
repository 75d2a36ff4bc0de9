//! Responses with which a server ends connections: those to one path, or to one method.

use super::open_connection::is_error;
use super::open_reason::SEVERAL;
use intact_document::statement::Value;
use intact_ledger::{Exchange, Method, Side, Target};
use std::collections::BTreeMap;

/// Paths and methods that are kept, of all destinations.
const KEPT: usize = 4096;

/// What the requests of responses have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Answered {
    Path(Target),
    Method(Method),
}

impl Answered {
    pub(super) fn value(&self) -> Value {
        Value::Text(match self {
            Answered::Path(target) => target.as_str().to_owned(),
            Answered::Method(method) => method.as_str().to_owned(),
        })
    }
}

/// How many responses announced the end, and how many did not, by destination. Error responses are
/// left out: they end connections for a reason of their own.
#[derive(Clone, Debug, Default)]
pub(super) struct AnsweredEnds(BTreeMap<(usize, Answered), (u64, u64)>);

impl AnsweredEnds {
    /// Adds a response, from the first announcement on.
    pub(super) fn add(&mut self, destination: usize, exchange: &Exchange) {
        let is_end = exchange.close_sent_by == Some(Side::Server);
        if exchange.status.is_none_or(is_error) || (!is_end && self.0.is_empty()) {
            return;
        }
        let path = exchange.target.clone().map(Answered::Path);
        let method = exchange.method.clone().map(Answered::Method);
        for answered in path.into_iter().chain(method) {
            let key = (destination, answered);
            if is_end && self.0.len() < KEPT {
                self.0.entry(key).or_default().0 += 1;
            } else if let Some((_, kept)) = self.0.get_mut(&key) {
                *kept += 1;
            }
        }
    }

    /// What all of this number of ends at a destination answered, and no response that kept its
    /// connection.
    pub(super) fn alone(&self, destination: usize, ends: u64) -> Option<&Answered> {
        let mut all = self.0.iter();
        let found = all.find(|((of, _), (ended, kept))| {
            *of == destination && *kept == 0 && *ended == ends && *ended >= SEVERAL
        });
        found.map(|((_, answered), _)| answered)
    }
}
