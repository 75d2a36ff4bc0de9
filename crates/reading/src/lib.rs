//! A figure with what is known of it: its value, bounds, or nothing, with the reason.
//!
//! A [`Reading`] is made once, where the figure is measured. Gates, JSON, pages, sentences and
//! exports take the same one, so that none of them states more than the others. Knows no document
//! and no unit: a reading is a number in the unit of its figure.

mod json;
mod op;
mod reading;
#[cfg(feature = "schema")]
mod schema;
mod why;

pub use json::{BOUNDS, with_bounds};
pub use op::Op;
pub use reading::Reading;
#[cfg(feature = "schema")]
pub use schema::add_bounds;
pub use why::Why;
