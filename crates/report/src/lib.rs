//! Facts in, pages out. Never computes, only lays out; knows no producer.

pub mod annotations;
pub mod campaign;
pub mod catalogue;
pub mod clients;
pub mod html;
pub mod inputs;
pub mod invocations;
pub mod json;
pub mod junit;
pub mod ladder;
pub mod markdown;
pub mod new;
pub mod page;
pub mod patterns;
pub mod summary;
pub mod svg;
pub mod terminal;

mod cpu;
mod diagram;
mod escape;
mod forecast;
mod limits;
mod number;

pub use diagram::mermaid;
