//! What a campaign shows beside its benches: workers that stand out, and the cards of its checks put together.

mod outliers;
mod profile_merge;

pub use outliers::{Measured, Outlier, outliers};
pub use profile_merge::{CardsFacts, CommonFinding, ProfileMerge, Spread};
