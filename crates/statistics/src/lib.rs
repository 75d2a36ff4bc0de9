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
mod paired;
mod quantile;
mod special;
mod splits;
mod student;
mod tiers;

pub use break_even::{MAX_REQUESTS, requests_until_alike};
pub use change::{ChangePoint, MIN_VALUES, change_point, change_points};
pub use holm::{Adjusted, adjust};
pub use interval::{Interval, NoInterval};
pub use means::{difference_of_means, mean};
pub use mixture::{Mixture, MixturePart};
pub use modes::{Bucket, two_modes};
pub use paired::{
    MIN_ROUNDS, PairedDifference, paired_difference, paired_share_saved, typical_difference,
    typical_round, typical_share_saved,
};
pub use quantile::{QuantileInterval, RoundValues, quantile_interval};
pub use student::student_quantile;
pub use tiers::{Explained, PhaseSeries, Tier, Tiers, explaining_phase, tiers};
