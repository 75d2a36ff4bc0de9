//! How many connections the server kept, and ends of connections that are no limits: those that
//! came with an error response, and those of a server that keeps only some connections.
//!
//! Must not guess a limit from what is left: without other evidence there is none.

use intact_ledger::server_profile::{
    Ended, ErrorClose, IdleWait, ServerProfile, VersionResult, WATERFALL,
};
use intact_ledger::{ConnectionId, Exchange, ExpectedStatus, Protocol, Row};
use serde::Serialize;
use std::collections::BTreeMap;

/// An idle connection that ends within this time, in nanoseconds, was not kept.
const AT_ONCE: u64 = 100_000_000;

/// Connections that were to carry several requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KeptConnections {
    /// Those that carried a second request.
    pub kept: u32,
    /// All of them.
    pub of: u32,
    /// Whether the others are those whose request had no `Connection: keep-alive`, which a server
    /// of HTTP/1.0 needs.
    pub on_request: bool,
}

impl KeptConnections {
    /// Counts the connections of the waterfall (`rows`) and of the versions. `None` if none
    /// responded.
    pub(super) fn of(profile: &ServerProfile, rows: &[Row]) -> Option<KeptConnections> {
        let http = profile
            .requests
            .as_ref()
            .map_or(Protocol::Http11, |one| one.http);
        let is_counted = |one: &&VersionResult| one.http == http && !is_error(profile, one.status);
        let versions = profile.versions.iter().filter(is_counted);
        let versions: Vec<(&VersionResult, bool)> = versions
            .filter_map(|one| Some((one, one.reused?)))
            .collect();
        let mut waterfall: BTreeMap<ConnectionId, (u32, bool)> = BTreeMap::new();
        for exchange in rows.iter().filter_map(in_waterfall) {
            let Some(id) = exchange.connection else {
                continue;
            };
            let first_is_error = is_error(profile, exchange.status);
            waterfall.entry(id).or_insert((0, first_is_error)).0 += 1;
        }
        let mut skipped = profile.skipped.iter();
        if skipped.any(|one| one.cut_off && one.probe == super::WATERFALL_PROBE) {
            // the last connection may have ended with the probe
            waterfall.pop_last();
        }
        let waterfall = waterfall.into_values().filter(|(_, is_error)| !is_error);
        let waterfall: Vec<bool> = waterfall.map(|(responses, _)| responses > 1).collect();
        let by_version = versions.iter().map(|(_, reused)| *reused);
        let all: Vec<bool> = by_version.chain(waterfall.iter().copied()).collect();
        // requests of the waterfall have the field
        let is_old = |one: &VersionResult| one.response_version == Some(Protocol::Http10);
        let on_request = !waterfall.is_empty()
            && waterfall.iter().all(|kept| *kept)
            && versions.iter().any(|(one, reused)| !reused && is_old(one));
        (!all.is_empty()).then(|| KeptConnections {
            kept: all.iter().filter(|kept| **kept).count() as u32,
            of: all.len() as u32,
            on_request,
        })
    }

    /// Whether some were kept and others not, for no reason that is known.
    pub fn is_partial(self) -> bool {
        self.kept > 0 && self.kept < self.of && !self.on_request
    }
}

fn is_error(profile: &ServerProfile, status: Option<u16>) -> bool {
    let expected = profile.contact.as_ref().and_then(|contact| contact.expect);
    status.is_some_and(|status| ExpectedStatus::is_error(expected, status))
}

/// A complete exchange of the waterfall.
fn in_waterfall(row: &Row) -> Option<&Exchange> {
    match row {
        Row::Exchange(one) if one.tag.as_deref() == Some(WATERFALL) && one.outcome.is_ok() => {
            Some(one)
        }
        _ => None,
    }
}

/// Removes the ends that are no limits from the profile. Returns the first error response after
/// which the server closed, if any.
pub(super) fn without_other_ends(
    profile: &mut ServerProfile,
    kept: Option<KeptConnections>,
) -> Option<ErrorClose> {
    let is_partial = kept.is_some_and(KeptConnections::is_partial);
    let expected = profile.contact.as_ref().and_then(|contact| contact.expect);
    let mut errors: Vec<ErrorClose> = Vec::new();
    let mut is_with_error = |ended: Option<Ended>| {
        let error = ended.and_then(|ended| ended.error);
        let error = error.filter(|error| ExpectedStatus::is_error(expected, error.status));
        errors.extend(error);
        error.is_some()
    };
    let is_at_once =
        |one: &IdleWait| is_partial && one.ended.is_some() && one.span.nanos() < AT_ONCE;
    // a client closes after bytes of no response, whatever the server's limit
    let has_excess = profile.versions.iter().any(|one| one.excess.is_some());
    let is_closed_at_first =
        |responses: u32, announced: bool| responses == 1 && is_partial && announced;
    profile.requests = profile.requests.take().filter(|one| {
        let is_excess = has_excess && one.answered == 1;
        let is_first = is_excess || is_closed_at_first(one.answered, one.last_announced);
        !is_with_error(one.ended) && !is_first
    });
    if let Some(idle) = &mut profile.idle {
        let mut is_limit = |one: &IdleWait| !is_with_error(one.ended) && !is_at_once(one);
        idle.samples.retain(&mut is_limit);
        idle.between = idle.between.filter(&mut is_limit);
    }
    if let Some(race) = &mut profile.race {
        race.attempts.retain(|one| !is_with_error(one.ended));
    }
    if let Some(held) = &mut profile.idle_under_load {
        held.waited = held
            .waited
            .filter(|one| !is_with_error(one.ended) && !is_at_once(one));
    }
    profile.age = profile.age.filter(|one| {
        let is_first = is_closed_at_first(one.answered, one.last_announced);
        !is_with_error(one.ended) && !is_first
    });
    errors.into_iter().min_by_key(|error| error.requests)
}
