//! Facts in, pages out. Never computes, only lays out; knows no producer.
//!
//! [`documents`] fills a [`page::Page`] for each kind of facts; [`terminal`], [`html`] and
//! [`markdown`] write it. [`json`] serialises the facts themselves. [`junit`] and [`annotations`]
//! are for CI systems, [`catalogue`] lists the metrics of `--require`.

#[cfg(not(feature = "schema"))]
#[macro_use]
extern crate intact_schema;
#[cfg(feature = "schema")]
#[macro_use]
extern crate schemars;

pub mod annotations;
pub mod catalogue;
pub mod documents;
pub mod html;
pub mod invocations;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod page;
#[cfg(feature = "schema")]
pub mod schema;
pub mod terminal;

mod escape;
#[cfg(test)]
mod made_facts;
mod painted;
mod sequence;
#[cfg(test)]
mod tests;

pub use sequence::mermaid;
