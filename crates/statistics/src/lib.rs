//! What can be said of measured numbers, and how surely.
//!
//! Pure functions over slices: no ledger types, no clock, no randomness but a seed handed in. An
//! input that allows no statement gives a typed [`NoInterval`], never a panic and never a made-up
//! interval.

mod break_even;
mod change;
mod dip;
mod holm;
mod interval;
mod means;
mod mixture;
mod modes;
mod normal;
mod paired;
mod percentile;
mod special;
mod student;
mod tiers;

pub use break_even::{MAX_REQUESTS, requests_until_alike};
pub use change::{ChangePoint, MIN_VALUES, change_point, change_points};
pub use dip::{Dip, dip, dip_test};
pub use holm::{Adjusted, HOLM_FROM, adjust, holm_p_values};
pub use interval::{Confidence, Interval, NoInterval, NotAConfidence};
pub use means::{difference_of_means, mean};
pub use mixture::{Mixture, MixturePart, Weighted, mixture};
pub use modes::{Bin, Modes, UnimodalReason, modes_of_bins, modes_of_samples};
pub use normal::{normal_cdf, normal_quantile};
pub use paired::{MIN_ROUNDS, PairedDifference, Scale, paired_difference, paired_share_saved};
pub use percentile::{MIN_BEYOND, RoundPercentile, paired_percentile_difference};
pub use student::{student_cdf, student_quantile};
pub use tiers::{Explained, PhaseSeries, Tier, Tiers, explaining_phase, tiers};
