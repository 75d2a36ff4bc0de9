//! What a campaign shows in addition to its benches: workers that stand out, and the profiles of
//! its checks put together.

mod campaign;
mod check_groups;
mod outliers;
mod profile_merge;

pub use campaign::{CampaignFacts, TargetBench, TargetChecks};
pub use check_groups::CheckGroups;
pub use outliers::{Measured, Outlier, outliers};
pub use profile_merge::{CardsFacts, CommonFinding, ProfileMerge, Spread};
