//! The checks of a campaign, as its results are read: merged by target and label, each compared
//! with the requirements. Must not keep a check, except the first of each group.

use super::{ProfileMerge, TargetChecks};
use crate::check_requirement;
use intact_document::requirement::{DocumentKind, Requirement};
use intact_ledger::Run;
use intact_servers::check::CheckFacts;
use intact_units::plural::counted;

/// Missed requirements that are reported one by one.
const REPORTED: u64 = 5;

/// A fold over checks.
pub struct CheckGroups<'a> {
    groups: Vec<Group>,
    requirements: Vec<(&'a Requirement, Counts)>,
    any_success: bool,
}

struct Group {
    target: String,
    label: String,
    merged: ProfileMerge,
    first: Option<(Run, CheckFacts)>,
}

/// Checks that met a requirement, and those that did not.
#[derive(Default)]
struct Counts {
    met: u64,
    missed: u64,
    reported: Vec<String>,
}

impl<'a> CheckGroups<'a> {
    /// A group for each target that is checked, from each label.
    pub fn new(
        places: impl Iterator<Item = (String, String)>,
        requirements: &'a [Requirement],
    ) -> CheckGroups<'a> {
        let group = |(target, label)| Group {
            target,
            label,
            merged: ProfileMerge::default(),
            first: None,
        };
        CheckGroups {
            groups: places.map(group).collect(),
            requirements: requirements
                .iter()
                .filter(|one| check_requirement(one, DocumentKind::Check).is_ok())
                .map(|one| (one, Counts::default()))
                .collect(),
            any_success: false,
        }
    }

    /// Takes the check of a message.
    pub fn add(
        &mut self,
        (target, label): (&str, &str),
        message: &str,
        run: &Run,
        facts: CheckFacts,
    ) {
        self.any_success |= facts.any_success();
        for (requirement, counts) in &mut self.requirements {
            let verdict = requirement.evaluate(&facts);
            if verdict.passed() {
                counts.met += 1;
                continue;
            }
            counts.missed += 1;
            if counts.missed <= REPORTED {
                counts.reported.push(format!("{message}: {verdict}"));
            }
        }
        let mut groups = self.groups.iter_mut();
        let group = groups.find(|group| group.target == target && group.label == label);
        if let Some(group) = group {
            group.merged.add(&facts);
            // results come sorted, so that the first is the same one whenever the store is read
            if group.first.is_none() {
                group.first = Some((run.clone(), facts));
            }
        }
    }

    /// Whether a check measured its server.
    pub fn any_success(&self) -> bool {
        self.any_success
    }

    /// The merged checks; once.
    pub fn take(&mut self) -> Vec<TargetChecks> {
        let groups = std::mem::take(&mut self.groups);
        let merged = groups.into_iter().map(|group| TargetChecks {
            target: group.target,
            label: group.label,
            facts: group.merged.facts(),
            first: group.first,
        });
        merged.collect()
    }

    /// Whether all requirements were met, and a line for each. A requirement that no check and no
    /// bench can answer is not met, nor one on checks while messages are `without` a result.
    pub fn judge(
        &self,
        all: &[Requirement],
        has_benches: bool,
        without: u64,
    ) -> (bool, Vec<String>) {
        let mut kept = true;
        let mut lines = Vec::new();
        for (requirement, counts) in &self.requirements {
            let of_benches_too = check_requirement(requirement, DocumentKind::Bench).is_ok();
            let all = counts.met + counts.missed;
            if all == 0 && of_benches_too && has_benches {
                continue;
            }
            lines.extend(counts.reported.iter().cloned());
            kept &= counts.missed == 0 && all > 0 && without == 0;
            let unknown = if without == 0 {
                String::new()
            } else {
                let messages = counted(without, "message");
                format!("; not met, {messages} without a result")
            };
            lines.push(format!(
                "{requirement}: met by {} of {all} checks{unknown}",
                counts.met
            ));
        }
        let of_benches_only = all
            .iter()
            .filter(|one| !has_benches && check_requirement(one, DocumentKind::Check).is_err());
        for requirement in of_benches_only {
            kept = false;
            lines.push(format!("{requirement}: not met, the plan has no bench"));
        }
        (kept, lines)
    }
}
