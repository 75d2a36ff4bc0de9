//! What a campaign shows beside its benches: workers that stand out, and the cards of its checks put together.

mod profile_merge;
mod outliers;

pub use profile_merge::{ProfileMerge, CardsFacts, CommonFinding, Spread};
pub use outliers::{Measured, Outlier, outliers};
