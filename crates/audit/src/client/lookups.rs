//! The lookups that requests waited for. A DNS time above zero is a lookup.
//!
//! Requests that waited for a name at the same time share one lookup, as in browsers and in Go.
//! Must not assign connections.

use super::entry::Entry;
use crate::event_writer::EventWriter;
use intact_ledger::{Lookup, Span};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

/// The lookups of the entries, ordered by end.
pub(super) fn lookups(entries: &[Entry], writer: &EventWriter<'_>) -> Vec<Lookup> {
    let mut waits: Vec<(Option<Arc<str>>, Span)> =
        entries.iter().filter_map(|one| wait(one, writer)).collect();
    waits.sort_by_key(|(_, span)| span.start);
    let mut lookups: Vec<Lookup> = Vec::new();
    let mut last: HashMap<Option<Arc<str>>, usize> = HashMap::new();
    for (name, span) in waits {
        let known = last.get(&name).map(|&at| &mut lookups[at]);
        match known.filter(|lookup| span.start < lookup.span.end) {
            Some(lookup) => lookup.span.end = lookup.span.end.max(span.end),
            None => {
                last.insert(name.clone(), lookups.len());
                lookups.push(Lookup {
                    name,
                    span,
                    ..Lookup::default()
                });
            }
        }
    }
    lookups.sort_by_key(|lookup| lookup.span.end);
    lookups
}

/// The name that an entry waited for, and when. The name is `None` if the tool does not record it
/// per request.
fn wait(entry: &Entry, writer: &EventWriter<'_>) -> Option<(Option<Arc<str>>, Span)> {
    let took = entry.timings.dns.filter(|&took| took > 0)?;
    let name = entry.origin.as_ref().map(|origin| origin.host.clone());
    let is_address = |name: &Arc<str>| name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    if name.as_ref().is_some_and(is_address) {
        return None;
    }
    let start = writer.nanos(entry.at.saturating_add(entry.timings.blocked.unwrap_or(0)));
    Some((name, Span::new(start, start.after(took))))
}
