//! The run: the producer, its vantage, the machine, and the variants.

use crate::evidence::{Evidence, EvidenceSet};
use crate::expected::ExpectedStatus;
use crate::load_step::CapacityTerms;
use crate::producer::Producer;
use crate::redact;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema that this crate writes and reads.
pub const SCHEMA: &str = "intact.ledger/1";

/// The vantage of the producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Vantage {
    /// At the client: it observes what the client waited for.
    Client,
    /// At the server.
    Server,
    /// Between the two (a capture, a relay, a log of a proxy).
    OnPath,
}

/// Which exchanges have a row. Counts never come from rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rows {
    /// Every exchange.
    All,
    /// The first of each variant, a random share of each kind, and the slowest.
    Sample,
}

/// One combination of settings, measured together with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Variant {
    /// The name that tables print: the settings in which the variants differ.
    pub name: String,
    /// Every setting by its axis (`keepalive` = `on`, `http` = `1.1`, `c` = `10`), also those that
    /// do not vary.
    pub axes: BTreeMap<String, String>,
}

/// The producer's machine; unknown values are absent.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// `linux`, `macos`.
    pub os: String,
    /// `x86_64`, `aarch64`.
    pub arch: String,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Number of processors that the producer may use.
    pub cpus: Option<u32>,
    /// TCP congestion control.
    pub congestion_control: Option<String>,
    /// First and last ephemeral port.
    pub ephemeral_ports: Option<(u16, u16)>,
}

/// How a load engine waits for the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineIo {
    /// `epoll`, `io_uring`, or the poll of another system.
    pub backend: String,
    /// Why it is not the other one, if the choice was left to the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The header of a ledger.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
// `run_document` reads and writes it
#[serde(remote = "Self")]
pub struct Run {
    /// 128 random bits in hexadecimal; the key of a merged ledger is (run, id).
    pub id: String,
    /// [`SCHEMA`].
    pub schema: String,
    /// The command that recorded it.
    pub producer: Producer,
    /// The version of the producer.
    pub version: String,
    /// The vantage of the producer.
    pub vantage: Vantage,
    /// Wall time of nanosecond 0 (RFC 3339, UTC).
    pub started: String,
    /// The clock of the times, by name.
    pub clock: String,
    /// The machine.
    pub host: Host,
    /// The seed of all random choices.
    pub seed: Option<u64>,
    /// How the load engine waited for the kernel (`bench`).
    pub io: Option<EngineIo>,
    /// The emulated link, if there was one.
    pub link: Option<String>,
    /// The measured URL or program, without query string.
    pub subject: Option<String>,
    /// The variants; `variant` fields are indices into this list.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// The axes in which the variants differ, in the order of the options.
    #[serde(default)]
    pub varied: Vec<String>,
    /// The file of the scenario. The variants are then its sessions, which ran at the same time.
    pub scenario: Option<String>,
    /// The file or the pattern of the requests that were sent in turn, if they were not alike.
    pub targets: Option<String>,
    /// The terms of a search, in which the results of rounds decide the next rounds. The rounds of
    /// a variant then have different loads.
    pub capacity: Option<CapacityTerms>,
    /// The command line, redacted.
    pub argv: Vec<String>,
    /// The statuses that count as ok, if the user named them (`--expect`).
    pub expect: Option<ExpectedStatus>,
    /// Which exchanges have rows.
    pub rows: Rows,
    /// The kinds of evidence that the producer added. What needs another kind is unknown.
    #[serde(default)]
    pub evidence: EvidenceSet,
    /// The step of the times in nanoseconds, if it hides idle times and overlaps: one second in
    /// many logs.
    pub time_step_ns: Option<u64>,
}

impl Run {
    /// The header of a run, without evidence. `random` makes the id; `argv` is redacted here.
    pub fn new(
        producer: Producer,
        version: &str,
        vantage: Vantage,
        started: jiff::Timestamp,
        random: u128,
        argv: &[String],
    ) -> Run {
        Run {
            id: format!("{random:032x}"),
            schema: SCHEMA.to_owned(),
            producer,
            version: version.to_owned(),
            vantage,
            started: started.to_string(),
            clock: "monotonic".to_owned(),
            host: Host::default(),
            seed: None,
            io: None,
            link: None,
            subject: None,
            variants: Vec::new(),
            varied: Vec::new(),
            scenario: None,
            targets: None,
            capacity: None,
            argv: redact::argv(argv),
            expect: None,
            rows: Rows::All,
            evidence: EvidenceSet::default(),
            time_step_ns: None,
        }
    }
    /// Adds kinds of evidence that the producer observes.
    pub fn add_evidence(&mut self, kinds: impl Into<EvidenceSet>) {
        self.evidence = self.evidence.union(kinds.into());
    }

    /// The header with these kinds of evidence in addition.
    #[must_use]
    pub fn with_evidence(mut self, kinds: impl Into<EvidenceSet>) -> Run {
        self.add_evidence(kinds);
        self
    }

    /// Whether the producer observes facts of this kind.
    pub fn sees(&self, kind: Evidence) -> bool {
        self.evidence.contains(kind)
    }
}
