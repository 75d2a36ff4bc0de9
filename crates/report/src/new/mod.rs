//! The pages, while the old ones are replaced.

pub mod documents;
pub mod html;
pub mod markdown;
pub mod page;
pub mod svg;
pub mod terminal;

mod sequence;
