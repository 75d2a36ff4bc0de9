//! What a campaign shows beside its benches: workers that stand out, and the cards of its checks put together.

mod cards;
mod outliers;

pub use cards::{Cards, CardsFacts, CommonFinding, Spread};
pub use outliers::{Measured, Outlier, outliers};
