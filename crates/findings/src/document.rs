//! A document: a run with what it means. Gates, JSON, pages and exit codes read it, for every
//! command that measures and for every stored ledger.
//!
//! A new document is one module of facts, a variant of [`Parts`] with its rows here, and a page.

use intact_document::Facts;
use intact_document::body_arrival::BodyArrivalFacts;
use intact_document::requirement::DocumentKind;
use intact_experiments::bench::{self, BenchFacts};
use intact_experiments::capacity::CapacityFacts;
use intact_experiments::compare::CompareFacts;
use intact_experiments::lambda::LambdaFacts;
use intact_experiments::scenario::ScenarioFacts;
use intact_ledger::Run;
use intact_servers::chain::ChainFacts;
use intact_servers::check::CheckFacts;
use intact_servers::fault::FaultFacts;
use intact_traffic::{self as traffic, InputFacts, LevelShift, ObservedFacts};
use serde::Serialize;

/// A run with what it means.
#[derive(Debug)]
pub struct Document {
    /// The header of its ledger.
    pub run: Run,
    /// What it means.
    pub parts: Parts,
}

/// What a run means, by the kind of the document.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Parts {
    /// A bench.
    Bench(Box<BenchParts>),
    /// A scenario.
    Scenario(Box<ScenarioFacts>),
    /// A search for a capacity.
    Capacity(Box<CapacityFacts>),
    /// A profile of a server.
    Check(Box<CheckFacts>),
    /// A chain of idle limits.
    Chain(Box<ChainFacts>),
    /// Observed traffic.
    Observed(Box<ObservedParts>),
    /// What a program did under faults.
    Fault(Box<FaultFacts>),
    /// A comparison of programs.
    Compare(Box<CompareFacts>),
    /// Invocations of a function.
    Lambda(Box<LambdaFacts>),
}

/// The parts of a bench.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BenchParts {
    /// Its facts.
    #[serde(flatten)]
    pub facts: BenchFacts,
    /// Data of charts that the facts do not hold.
    #[serde(skip)]
    pub charts: bench::Charts,
}

/// The parts of observed traffic.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObservedParts {
    /// Its facts.
    #[serde(flatten)]
    pub facts: ObservedFacts,
    /// Data of charts that the facts do not hold.
    #[serde(skip)]
    pub charts: traffic::Charts,
    /// What only an audit has.
    #[serde(flatten)]
    pub audit: Option<AuditParts>,
}

/// What an audit has in addition to its traffic.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditParts {
    /// What was read of each input.
    pub inputs: Vec<InputFacts>,
    /// How responses arrived.
    pub answers: Vec<BodyArrivalFacts>,
    /// The lasting changes, those of reuse first, then by size.
    pub changes: Vec<LevelShift>,
}

impl Document {
    /// A document of a run.
    pub fn new(run: Run, parts: Parts) -> Document {
        Document { run, parts }
    }

    /// A document of observed traffic.
    pub fn observed(run: Run, facts: ObservedFacts, charts: traffic::Charts) -> Document {
        let audit = None;
        let parts = Box::new(ObservedParts {
            facts,
            charts,
            audit,
        });
        Document::new(run, Parts::Observed(parts))
    }

    /// What gates read.
    pub fn facts(&self) -> &dyn Facts {
        self.row().1
    }

    /// The schema of its JSON: that of observed traffic is named after the producer.
    pub fn schema(&self) -> String {
        let name = match &self.parts {
            Parts::Bench(_) => "bench",
            Parts::Scenario(_) => "scenario",
            Parts::Capacity(_) => "capacity",
            Parts::Check(_) => "check",
            Parts::Chain(_) => "chain",
            Parts::Fault(_) => "fault",
            Parts::Compare(_) => "compare",
            Parts::Lambda(_) => "lambda",
            Parts::Observed(_) => self.run.producer.as_str(),
        };
        format!("intact.{name}/1")
    }

    fn row(&self) -> (DocumentKind, &dyn Facts) {
        match &self.parts {
            Parts::Bench(one) => (DocumentKind::Bench, &one.facts),
            Parts::Scenario(one) => (DocumentKind::Scenario, &**one),
            Parts::Capacity(one) => (DocumentKind::Capacity, &**one),
            Parts::Check(one) => (DocumentKind::Check, &**one),
            Parts::Chain(one) => (DocumentKind::Chain, &**one),
            Parts::Observed(one) if one.audit.is_some() => (DocumentKind::Audit, &one.facts),
            Parts::Observed(one) => (DocumentKind::Watch, &one.facts),
            Parts::Fault(one) => (DocumentKind::Fault, &**one),
            Parts::Compare(one) => (DocumentKind::Compare, &**one),
            Parts::Lambda(one) => (DocumentKind::Lambda, &**one),
        }
    }
}

/// The JSON of a document, or of one of its parts: the schema and the run come first.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfRun<'a, P> {
    /// The schema that it follows.
    pub schema: &'a str,
    /// The header of its ledger.
    pub run: &'a Run,
    /// What the run means.
    #[serde(flatten)]
    pub parts: P,
}

impl Serialize for Document {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = OfRun {
            schema: &self.schema(),
            run: &self.run,
            parts: &self.parts,
        };
        whole.serialize(serializer)
    }
}
