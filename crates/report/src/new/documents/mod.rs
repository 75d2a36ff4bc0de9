//! Fills pages: a module for each document. Must not compute, and must not know a writer.

mod bench;
mod common;
mod populations;
mod timeline;
mod traffic;

pub use bench::{BenchRun, demonstration};
pub use traffic::{InputFacts, LadderFacts, TrafficRun, answers, ladder};

use super::page::Page;

/// What a page can be made of.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A bench.
    Bench(BenchRun<'a>),
    /// Traffic that `watch`, `audit` or a server observed.
    Traffic(TrafficRun<'a>),
}

impl<'a> Source<'a> {
    /// The page.
    pub fn page(self) -> Page<'a> {
        match self {
            Source::Bench(one) => bench::page(one),
            Source::Traffic(one) => traffic::page(one),
        }
    }
}
