//! Responses with which a server ends connections: those to one path, or to one method.

use super::KEPT;
use super::server_closes_early::Ends;
use crate::open_reason::SEVERAL;
use intact_document::statement::Value;
use intact_ledger::{Exchange, Method, Target};
use std::collections::BTreeMap;

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

/// How many responses announced the end, and how many did not, by destination.
#[derive(Default)]
pub(super) struct AnsweredEnds(BTreeMap<(usize, Answered), (u64, u64)>);

impl AnsweredEnds {
    /// Adds a response, from the first announcement on.
    pub(super) fn add(&mut self, destination: usize, exchange: &Exchange, is_end: bool) {
        if !is_end && self.0.is_empty() {
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

    /// What all these ends of a destination answered, and no response that kept its connection.
    pub(super) fn alone(&self, destination: usize, ends: &Ends) -> Option<&Answered> {
        let mut all = self.0.iter();
        let found = all.find(|((of, _), (ended, kept))| {
            *of == destination && *kept == 0 && *ended == ends.count && *ended >= SEVERAL
        });
        found.map(|((_, answered), _)| answered)
    }
}
