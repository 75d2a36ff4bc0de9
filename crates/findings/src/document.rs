//! A document: a run with what it means. Gates, JSON, pages and exit codes read it, for every
//! command that measures and for every stored ledger.
//!
//! A new document is a module of facts, its kind in the table of figures, and a variant of
//! [`Parts`] with its rows in the tables here; what needs more than the plain page has a page.

use crate::stored::{self, StoredError};
use intact_document::Facts;
use intact_document::body_arrival::BodyArrivalFacts;
use intact_document::requirement::{DocumentKind, ParseError, Requirement};
use intact_experiments::bench::{self, BenchFacts};
use intact_experiments::capacity::{self, CapacityFacts};
use intact_experiments::compare::{CompareFacts, Comparison};
use intact_experiments::lambda::{self, Invocations, LambdaFacts};
use intact_experiments::scenario::{self, ScenarioFacts};
use intact_ledger::store::Reader;
use intact_ledger::{Producer, Run};
use intact_servers::chain::{self, ChainFacts};
use intact_servers::check::{self, CheckFacts};
use intact_servers::fault::{self, FaultAnalysis, FaultFacts};
use intact_traffic::{self as traffic, InputFacts, LevelShift, ObservedFacts, rules};
use serde::Serialize;
use std::path::Path;

/// A run with what it means.
#[derive(Debug)]
pub struct Document {
    /// The header of its ledger.
    pub run: Run,
    /// What it means.
    pub parts: Parts,
}

/// What a run means, by the kind of the document. A page that does not know one is the plain page.
#[derive(Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
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
#[derive(Debug, Serialize, JsonSchema)]
pub struct BenchParts {
    /// Its facts.
    #[serde(flatten)]
    pub facts: BenchFacts,
    /// Data of charts that the facts do not hold.
    #[serde(skip)]
    pub charts: bench::Charts,
}

/// The parts of observed traffic.
#[derive(Debug, Serialize, JsonSchema)]
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
#[derive(Debug, Serialize, JsonSchema)]
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

    /// Reads a ledger as the document of its producer.
    ///
    /// # Errors
    /// The folder or the settings of its variants cannot be read.
    pub fn read(folder: &Path, reader: &Reader) -> Result<Document, StoredError> {
        let run = reader.run().clone();
        let parts = match document_of(&run) {
            DocumentKind::Bench => Parts::Bench(Box::new(stored::read_bench(folder, reader)?)),
            DocumentKind::Scenario => {
                let record = stored::bench_record(reader)?;
                let facts = ScenarioFacts::new(&run, &record.tally, &record.first);
                Parts::Scenario(Box::new(facts))
            }
            DocumentKind::Capacity => {
                let record = stored::bench_record(reader)?;
                Parts::Capacity(Box::new(CapacityFacts::new(&run, &record.tally)))
            }
            DocumentKind::Check => Parts::Check(Box::new(stored::check(reader)?)),
            DocumentKind::Fault => {
                let mut analysis = FaultAnalysis::new(&run);
                stored::replay(reader, &mut analysis)?;
                Parts::Fault(Box::new(analysis.facts()))
            }
            DocumentKind::Compare => {
                let mut comparison = Comparison::new(&run);
                stored::replay(reader, &mut comparison)?;
                Parts::Compare(Box::new(comparison.facts()))
            }
            DocumentKind::Lambda => {
                let mut invocations = Invocations::new(&run);
                stored::replay(reader, &mut invocations)?;
                Parts::Lambda(Box::new(invocations.facts()))
            }
            DocumentKind::Watch
            | DocumentKind::Audit
            | DocumentKind::Fleet
            | DocumentKind::Chain => {
                let traffic = stored::traffic(reader)?;
                let charts = traffic.pictures(&run);
                return Ok(Document::observed(run, traffic.facts(), charts));
            }
        };
        Ok(Document::new(run, parts))
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
        format!("intact.{}/1", self.row().0)
    }

    /// The name of its schema, and its facts.
    fn row(&self) -> (&str, &dyn Facts) {
        match &self.parts {
            Parts::Bench(one) => ("bench", &one.facts),
            Parts::Scenario(one) => ("scenario", &**one),
            Parts::Capacity(one) => ("capacity", &**one),
            Parts::Check(one) => ("check", &**one),
            Parts::Chain(one) => ("chain", &**one),
            Parts::Observed(one) => (self.run.producer.as_str(), &one.facts),
            Parts::Fault(one) => ("fault", &**one),
            Parts::Compare(one) => ("compare", &**one),
            Parts::Lambda(one) => ("lambda", &**one),
        }
    }
}

/// The JSON of a document, or of one of its parts: the schema and the run come first.
#[derive(Serialize, JsonSchema)]
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

/// The document that a ledger is read as. A server, a link and a foreign producer that writes our
/// events observed traffic.
pub fn document_of(run: &Run) -> DocumentKind {
    match &run.producer {
        Producer::Watch | Producer::Lambda if fault::is_of_faults(run) => DocumentKind::Fault,
        Producer::Bench if run.capacity.is_some() => DocumentKind::Capacity,
        Producer::Bench if run.scenario.is_some() => DocumentKind::Scenario,
        Producer::Bench => DocumentKind::Bench,
        Producer::Check => DocumentKind::Check,
        Producer::Audit => DocumentKind::Audit,
        Producer::Compare => DocumentKind::Compare,
        Producer::Lambda => DocumentKind::Lambda,
        Producer::Watch
        | Producer::Link
        | Producer::Serve
        | Producer::Fleet
        | Producer::Other(_) => DocumentKind::Watch,
    }
}

/// The rules that a document applies: where another one is asked for, no finding is no evidence.
pub fn rules_of(document: DocumentKind) -> Vec<&'static str> {
    match document {
        DocumentKind::Check => check::rule_ids(),
        DocumentKind::Chain => chain::RULES.to_vec(),
        // those of the outgoing side of a service, too
        DocumentKind::Bench => {
            let outgoing = rules::ids().filter(|id| !bench::RULES.contains(id));
            bench::RULES.iter().copied().chain(outgoing).collect()
        }
        DocumentKind::Scenario => scenario::RULES.to_vec(),
        DocumentKind::Capacity => capacity::RULES.to_vec(),
        DocumentKind::Fault => fault::RULES.to_vec(),
        DocumentKind::Fleet => [check::rule_ids_of_campaigns(), bench::RULES.to_vec()].concat(),
        DocumentKind::Lambda => lambda::rule_ids(),
        DocumentKind::Watch | DocumentKind::Compare | DocumentKind::Audit => rules::ids().collect(),
    }
}

/// Refuses a requirement that no run of `document` can have a value for.
///
/// # Errors
/// A metric, a selector or a rule that the document does not have.
pub fn check_requirement(
    requirement: &Requirement,
    document: DocumentKind,
) -> Result<(), ParseError> {
    requirement.check_for(document, rules_of)
}

/// The JSON Schema of a document: the name in its id, the commands that print it, its generator.
#[cfg(feature = "schema")]
pub type DocumentSchema = (
    &'static str,
    &'static str,
    fn(schemars::SchemaGenerator) -> schemars::Schema,
);

/// The schema of every document.
#[cfg(feature = "schema")]
pub const SCHEMAS: [DocumentSchema; 9] = [
    ("bench", "`intact bench`", of::<BenchParts>),
    (
        "capacity",
        "`intact bench --find-max` and `--overload`",
        of::<CapacityFacts>,
    ),
    ("chain", "`intact check --chain`", of::<ChainFacts>),
    ("check", "`intact check`", of::<CheckFacts>),
    ("compare", "`intact compare`", of::<CompareFacts>),
    ("fault", "`intact watch --fault`", of::<FaultFacts>),
    ("lambda", "`intact lambda`", of::<LambdaFacts>),
    (
        "observed",
        "`intact watch`, `intact audit` and every other observer",
        of::<ObservedParts>,
    ),
    ("scenario", "`intact bench --scenario`", of::<ScenarioFacts>),
];

#[cfg(feature = "schema")]
fn of<P: schemars::JsonSchema>(generator: schemars::SchemaGenerator) -> schemars::Schema {
    generator.into_root_schema_for::<OfRun<'_, P>>()
}
