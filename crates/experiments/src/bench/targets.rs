//! The figures of each target of a variant. Must not compare targets: they are different requests.

use super::measured_latency::{self, RoundRequests, Side};
use super::measured_rounds::MeasuredRounds;
use crate::scenario::TagFacts;
use intact_document::unobserved::Unobserved;
use intact_ledger::{Cell, Failure, Outcome, TagCell, Tally};

/// The targets of the variant at `index`, in the order of their tags.
pub(super) fn targets(index: u32, measured: &MeasuredRounds, tally: &Tally) -> Vec<TagFacts> {
    let is_round = |cell: &&Cell| cell.round.is_some_and(|round| round > 0);
    let cells: Vec<&Cell> = tally.of_variant(index).filter(is_round).collect();
    let mut tags: Vec<&TagCell> = measured.all.tags.iter().collect();
    tags.sort_by(|a, b| a.tag.cmp(&b.tag));
    let tags = tags.into_iter();
    tags.map(|tag| target(tag, &cells, measured)).collect()
}

fn target(tag: &TagCell, cells: &[&Cell], measured: &MeasuredRounds) -> TagFacts {
    let in_round = |cell: &&Cell| {
        let tag = cell.tags.iter().find(|one| one.tag == tag.tag)?;
        let timeouts = tag.merged(|key| key.outcome == Outcome::Failed(Failure::Timeout));
        Some(RoundRequests {
            ok: tag.merged(|key| key.outcome.is_ok())?,
            unfinished: timeouts.map_or(0, |group| group.count()),
            is_step: cell
                .bounds
                .as_ref()
                .is_some_and(|round| round.load.is_some()),
        })
    };
    let rounds: Vec<RoundRequests> = cells.iter().filter_map(in_round).collect();
    let ok = tag.merged(|key| key.outcome.is_ok());
    let latency = |side| measured_latency::latency(ok.as_ref(), &rounds, measured.seconds(), side);
    TagFacts {
        latency_ms: latency(Side::Whole).0,
        latency_without_setup_ms: latency(Side::WithoutSetup).0,
        ..TagFacts::new(tag, &Unobserved::default())
    }
}
