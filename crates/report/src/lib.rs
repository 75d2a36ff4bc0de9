//! Facts in, pages out. Never computes, only lays out; knows no producer.

pub mod catalogue;
pub mod inputs;
pub mod json;
pub mod terminal;
