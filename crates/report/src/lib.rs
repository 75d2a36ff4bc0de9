//! Facts in, pages out. Never computes, only lays out; knows no producer.

pub mod catalogue;
pub mod clients;
pub mod json;
pub mod terminal;
