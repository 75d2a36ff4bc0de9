//! The checks of a campaign, as its results are read: put together by target and label, each held against the requirements.

use crate::console;
use intact_findings::check::CheckFacts;
use intact_findings::fleet::{CardsFacts, ProfileMerge};
use intact_findings::requirement::{Document, Requirement};
use intact_fleet::{CheckResult, DeliveryResult, Kind, Plan};
use intact_ledger::{Row, Run};

/// Missed requirements that are told one by one.
const TOLD: u64 = 5;

/// The checks of one target from one label.
pub(super) struct Checks {
    pub(super) target: String,
    pub(super) label: String,
    pub(super) facts: CardsFacts,
    /// The first card as it is, for the page.
    pub(super) first: Option<(Run, CheckFacts)>,
}

/// Takes cards as they are read.
pub(super) struct CardsRead<'a> {
    groups: Vec<Group>,
    requirements: Vec<(&'a Requirement, StoredProfile)>,
    has_benches: bool,
    any_success: bool,
}

struct Group {
    target: String,
    label: String,
    cards: ProfileMerge,
    first: Option<(Run, CheckFacts)>,
}

/// How a requirement fared.
#[derive(Default)]
struct StoredProfile {
    met: u64,
    missed: u64,
    told: Vec<String>,
}

impl<'a> CardsRead<'a> {
    /// With a place for each target that is checked, from each label.
    pub(super) fn new(plan: &Plan, requirements: &'a [Requirement]) -> CardsRead<'a> {
        let of = |kind| plan.targets.iter().filter(move |one| one.measure == kind);
        let groups = of(Kind::Check)
            .flat_map(|target| plan.labels.iter().map(move |label| (target, label)))
            .map(|(target, label)| Group {
                target: target.name.clone(),
                label: label.clone(),
                cards: ProfileMerge::default(),
                first: None,
            })
            .collect();
        CardsRead {
            groups,
            requirements: requirements
                .iter()
                .filter(|one| one.check_for(Document::Check).is_ok())
                .map(|one| (one, StoredProfile::default()))
                .collect(),
            has_benches: of(Kind::Bench).next().is_some(),
            any_success: false,
        }
    }

    /// Takes a card.
    pub(super) fn add(&mut self, outcome: &DeliveryResult, checked: &CheckResult) {
        let rows: Vec<Row> = checked
            .waterfall
            .iter()
            .map(|exchange| Row::Exchange(Box::new(exchange.clone())))
            .collect();
        let facts = CheckFacts::of(&checked.card, &outcome.tally, &rows);
        self.any_success |= facts.any_success();
        for (requirement, held) in &mut self.requirements {
            let verdict = requirement.evaluate(&facts);
            if verdict.passed() {
                held.met += 1;
                continue;
            }
            held.missed += 1;
            if held.missed <= TOLD {
                held.told.push(format!("{}: {verdict}", outcome.message));
            }
        }
        let group = self
            .groups
            .iter_mut()
            .find(|group| group.target == outcome.target && group.label == outcome.label);
        if let Some(group) = group {
            group.cards.add(&facts);
            // results come sorted, so that the first is the same one whenever the store is read
            if group.first.is_none() {
                group.first = Some((outcome.run.clone(), facts));
            }
        }
    }

    /// Whether a check measured its server.
    pub(super) fn any_success(&self) -> bool {
        self.any_success
    }

    /// What the cards say together; once.
    pub(super) fn checks(&mut self) -> Vec<Checks> {
        std::mem::take(&mut self.groups)
            .into_iter()
            .map(|group| Checks {
                target: group.target,
                label: group.label,
                facts: group.cards.facts(),
                first: group.first,
            })
            .collect()
    }

    /// Tells how the requirements fared, and whether all were met. What no card could answer, and no bench either, never is.
    pub(super) fn hold(&self, all: &[Requirement]) -> bool {
        let mut kept = true;
        for (requirement, held) in &self.requirements {
            let of_benches_too = requirement.check_for(Document::Bench).is_ok();
            if held.met + held.missed == 0 && of_benches_too && self.has_benches {
                continue;
            }
            for words in &held.told {
                console::note(words);
            }
            let all = held.met + held.missed;
            kept &= held.missed == 0 && all > 0;
            console::note(&format!(
                "{requirement}: met by {} of {all} checks",
                held.met
            ));
        }
        let of_benches_only = all
            .iter()
            .filter(|one| one.check_for(Document::Check).is_err());
        if !self.has_benches {
            for requirement in of_benches_only {
                kept = false;
                console::note(&format!("{requirement}: not met, the plan has no bench"));
            }
        }
        kept
    }
}
