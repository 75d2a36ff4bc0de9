//! A campaign as its store has it: messages, the bench and the checks of each target and label,
//! workers that stand out.

use super::{CardsFacts, Outlier};
use intact_experiment::AxisError;
use intact_experiments::bench::BenchFacts;
use intact_ledger::{CampaignProgress, Run, Tally};
use intact_servers::check::CheckFacts;

/// All that is known of a campaign.
pub struct CampaignFacts {
    /// The plan's id.
    pub plan: String,
    /// Its messages by their state.
    pub messages: CampaignProgress,
    /// Workers that stand out.
    pub outliers: Vec<Outlier>,
    /// The benches, in the plan's order.
    pub benches: Vec<TargetBench>,
    /// The checks, in the plan's order.
    pub checks: Vec<TargetChecks>,
}

/// The merged bench of one target from one label.
pub struct TargetBench {
    /// The target's name.
    pub target: String,
    /// The label.
    pub label: String,
    /// The head of the merged ledger.
    pub run: Run,
    /// Everything counted.
    pub tally: Tally,
    /// What it means.
    pub facts: BenchFacts,
}

/// The checks of one target from one label.
pub struct TargetChecks {
    /// The target's name.
    pub target: String,
    /// The label.
    pub label: String,
    /// All profiles, merged.
    pub facts: CardsFacts,
    /// The first check as it is, for the page.
    pub first: Option<(Run, CheckFacts)>,
}

impl TargetBench {
    /// Fails where the settings of a variant cannot be read.
    pub fn new(
        target: String,
        label: String,
        run: Run,
        tally: Tally,
    ) -> Result<TargetBench, AxisError> {
        // results hold counts and no single exchanges
        let facts = BenchFacts::new(&run, &tally, &[])?;
        Ok(TargetBench {
            target,
            label,
            run,
            tally,
            facts,
        })
    }
}
