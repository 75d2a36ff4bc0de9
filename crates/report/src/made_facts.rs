//! Facts that a test makes of subjects: all of them worked, and no rule was asked.

use intact_document::{Claims, Conclusions, Facts, RuleState, Subject, Unobserved};
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

    fn conclusions(&self) -> Conclusions<'_> {
        Conclusions::new(&self.verdict, &[], &self.caveats)
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
