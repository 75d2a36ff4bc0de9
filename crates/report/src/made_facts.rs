//! Facts that a test makes of subjects: all of them worked, and no rule was asked.

use intact_document::{Claims, Facts, Finding, RuleState, Subject, Unobserved};
use intact_ledger::Caveat;

#[derive(Default)]
pub(crate) struct MadeFacts {
    pub(crate) subjects: Vec<Subject>,
    pub(crate) verdict: Claims,
    pub(crate) caveats: Vec<Caveat>,
}

impl Facts for MadeFacts {
    fn subjects(&self) -> Vec<Subject> {
        self.subjects.clone()
    }

    fn verdict(&self) -> &Claims {
        &self.verdict
    }

    fn findings(&self) -> &[Finding] {
        &[]
    }

    fn caveats(&self) -> &[Caveat] {
        &self.caveats
    }

    fn rules(&self) -> Vec<RuleState> {
        Vec::new()
    }

    fn any_success(&self) -> bool {
        true
    }

    fn unobserved(&self) -> Unobserved {
        Unobserved::default()
    }
}
