//! Fills pages: a module for each document. Must not compute, and must not know a writer.

mod bench;
mod capacity;
mod chain;
mod check;
mod common;
mod compare;
mod fault;
pub(crate) mod fix;
mod fleet;
mod lambda;
mod likeness;
mod model;
mod populations;
mod scenario;
mod timeline;
mod traffic;

pub use bench::{BenchRun, demonstration};
pub use capacity::CapacityRun;
pub use chain::{ChainRun, chain};
pub use check::{CheckPart, CheckRun, page as check};
pub use compare::CompareRun;
pub use fault::FaultCard;
pub use fix::{FixRequest, fix_articles, fix_client, fix_list, fix_overview};
pub use fleet::{campaign, first_checks, profiles};
pub use lambda::LambdaRun;
pub use model::{model, sequence_of};
pub use scenario::ScenarioRun;
pub use traffic::{InputFacts, LadderFacts, TrafficRun, answers, ladder};

use super::page::Page;
use intact_findings::stored::Stored;

/// What a page can be made of.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A bench.
    Bench(BenchRun<'a>),
    /// A scenario.
    Scenario(ScenarioRun<'a>),
    /// A search for a capacity.
    Capacity(CapacityRun<'a>),
    /// A comparison of programs.
    Compare(CompareRun<'a>),
    /// The card of a program under faults.
    Fault(FaultCard<'a>),
    /// The profile of a server.
    Check(CheckRun<'a>),
    /// The invocations of a function.
    Lambda(LambdaRun<'a>),
    /// Traffic that `watch`, `audit` or a server observed.
    Traffic(TrafficRun<'a>),
}

impl<'a> Source<'a> {
    /// The page.
    pub fn page(self) -> Page<'a> {
        match self {
            Source::Bench(one) => bench::page(one),
            Source::Scenario(one) => scenario::page(one),
            Source::Capacity(one) => capacity::page(one),
            Source::Compare(one) => compare::page(one),
            Source::Fault(one) => fault::page(one),
            Source::Check(one) => check::page(one, CheckPart::All),
            Source::Lambda(one) => lambda::page(one),
            Source::Traffic(one) => traffic::page(one),
        }
    }
}

impl<'a> From<&'a Stored> for Source<'a> {
    /// The source of a stored ledger.
    fn from(stored: &'a Stored) -> Source<'a> {
        match stored {
            Stored::Bench(one) => {
                let (run, facts, charts) = (&one.run, &one.facts, &one.charts);
                Source::Bench(BenchRun { run, facts, charts })
            }
            Stored::Scenario(one) => {
                let (run, facts) = (&one.run, &one.facts);
                Source::Scenario(ScenarioRun { run, facts })
            }
            Stored::Capacity(one) => {
                let (run, facts) = (&one.run, &one.facts);
                Source::Capacity(CapacityRun { run, facts })
            }
            Stored::Observed(one) => Source::Traffic(TrafficRun {
                run: &one.run,
                facts: &one.facts,
                charts: &one.charts,
                inputs: &[],
                answers: &[],
                ladder: None,
            }),
            Stored::Compared(one) => {
                let (run, facts) = (&one.run, &one.facts);
                Source::Compare(CompareRun { run, facts })
            }
            Stored::Faults(one) => {
                let (run, facts) = (&one.run, &one.facts);
                Source::Fault(FaultCard { run, facts })
            }
            Stored::Check(one) => {
                let (run, facts) = (&one.run, &one.facts);
                Source::Check(CheckRun { run, facts })
            }
            Stored::Lambda(one) => {
                let (run, facts) = (&one.run, &one.facts);
                Source::Lambda(LambdaRun { run, facts })
            }
        }
    }
}
