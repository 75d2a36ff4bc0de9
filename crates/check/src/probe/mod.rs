//! The probes, one file each, and when each runs. Each fills its part of the server profile.

mod contact;
mod drain;
mod http3;
mod idle;
mod idle_under_load;
mod max_age;
mod methods;
mod names;
mod next_request;
mod old_versions;
mod packets;
mod race;
mod request_limit;
mod state;
mod tls;
mod versions;
mod waterfall;

pub(crate) use drain::most_requests;

use crate::budget::Part;
use crate::context::ProbeContext;
use crate::probe_kind::ProbeKind;
use crate::prober::Probed;

/// The part of the budget that the stage uses.
pub(crate) fn part(stage: ProbeKind) -> Part {
    match stage {
        ProbeKind::Requests => Part::Cap,
        ProbeKind::Idle | ProbeKind::Race | ProbeKind::Held | ProbeKind::Age => Part::Idle,
        ProbeKind::Drain => Part::Drain,
        _ => Part::Profile,
    }
}

/// Whether the stage belongs to a check of this kind. A stage that does not is no gap in the
/// profile.
pub(crate) fn is_asked_for(stage: ProbeKind, context: &ProbeContext<'_>) -> bool {
    let config = context.config;
    if config.drain.is_some() {
        return matches!(stage, ProbeKind::Contact | ProbeKind::Drain);
    }
    match stage {
        ProbeKind::Drain => false,
        ProbeKind::Packets => context.capture.is_some(),
        ProbeKind::Held => config.hold > 0,
        ProbeKind::Age => config.thorough || max_age::is_likely(&context.profile),
        _ => true,
    }
}

/// Why a probe is skipped here.
pub(crate) fn reason_to_skip(stage: ProbeKind, context: &ProbeContext<'_>) -> Option<&'static str> {
    if matches!(stage, ProbeKind::Names | ProbeKind::Contact) {
        return None;
    }
    if !context.has_responded() {
        return Some("the first request failed");
    }
    match stage {
        ProbeKind::Tls if !context.plans.is_secure() => Some("no TLS"),
        ProbeKind::Idle | ProbeKind::Race | ProbeKind::Held | ProbeKind::Age
            if !context.config.idle =>
        {
            Some("--no-idle")
        }
        ProbeKind::Packets => packets::reason_to_skip(context),
        ProbeKind::Race => race::reason_to_skip(context),
        _ => None,
    }
}

/// Runs a stage.
pub(crate) fn run(stage: ProbeKind, context: &mut ProbeContext<'_>) -> Probed {
    match stage {
        ProbeKind::Names => names::probe(context),
        ProbeKind::Contact => contact::probe(context),
        ProbeKind::Versions => {
            versions::probe(context)?;
            http3::probe(context)?;
            old_versions::probe(context)
        }
        ProbeKind::Waterfall => waterfall::probe(context),
        ProbeKind::Tls => tls::probe(context),
        ProbeKind::Methods => methods::probe(context),
        ProbeKind::Packets => packets::probe(context),
        ProbeKind::Requests => request_limit::probe(context),
        ProbeKind::Idle => idle::probe(context),
        ProbeKind::Race => race::probe(context),
        ProbeKind::Held => idle_under_load::probe(context),
        ProbeKind::Age => max_age::probe(context),
        ProbeKind::Drain => drain::probe(context),
    }
}
