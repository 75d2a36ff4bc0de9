//! What makes a command exit 1, and where a CI reads why: `--require`, `--fail-on`, `--junit`,
//! annotations. The same for every command with findings: flatten [`Gates`], call [`Gates::begin`]
//! before the work, [`intact_document::requirement::evaluate`] and [`Gates::hold`] after it.

use super::options;
use super::requirements;
use crate::console;
use crate::exit::{Failed, refuse};
use intact_document::requirement::{DocumentKind, Requirement, Verdict};
use intact_document::{Facts, Severity, Unobserved};
use intact_ledger::{Run, private_file};
use intact_report::annotations::{self, Ci};
use intact_report::terminal::{self, Length};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The options.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Gates")]
pub(crate) struct Gates {
    /// A requirement, may be repeated: 'avoidable == 0', 'host=api.example.com: connections <= 4',
    /// 'keepalive=on: p99 < 50ms'; exit 1 when one fails; `intact help --json` lists the metrics
    #[arg(long, value_name = "EXPR")]
    require: Vec<String>,
    /// Exit 1 when there is a finding of this severity or above
    #[arg(long, value_name = "SEVERITY", value_parser = options::words(FAIL_ON))]
    pub(super) fail_on: Option<Severity>,
    /// Meet gates also where no request and no connection was observed
    #[arg(long)]
    allow_empty: bool,
    /// Write requirements and rules as tests of JUnit
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// The least severities of findings that can fail a gate.
pub(crate) const FAIL_ON: &[(&str, Severity)] =
    &[("warning", Severity::Warning), ("error", Severity::Error)];

/// Why the gate fails, a line for each finding and one for what was not observed; none where it
/// passes.
pub(crate) fn failing(least: Severity, facts: &dyn Facts, unobserved: &Unobserved) -> Vec<String> {
    let findings = facts.findings().iter();
    let failing = findings.filter(|finding| finding.severity >= least);
    let mut reasons: Vec<String> = failing
        .map(|finding| {
            let severity = finding.severity.as_str();
            format!("{severity} {}: {}", finding.rule, finding.subjects())
        })
        .collect();
    let missing = unobserved.hides_findings();
    reasons.extend(missing.map(|reason| match unobserved.missing() {
        None => reason,
        Some(_) => format!("findings may be missing: {reason}"),
    }));
    reasons
}

impl Gates {
    /// The requirements, read before anything runs.
    pub(crate) fn begin(&self, document: DocumentKind) -> Result<Vec<Requirement>, Failed> {
        let requirements = requirements::begin(&self.require, document)?;
        let allowing = |one: Requirement| one.allowing_empty(self.allow_empty);
        Ok(requirements.into_iter().map(allowing).collect())
    }

    /// Refuses a file that would hold only the last of several documents.
    pub(crate) fn for_documents(&self, count: usize) -> Result<(), Failed> {
        if self.junit.is_some() && count > 1 {
            refuse!("--junit is about one ledger: name one");
        }
        Ok(())
    }

    /// Checks verdicts and `--fail-on`, prints the results on standard error, and writes what a CI
    /// reads. Returns whether all gates are open.
    pub(crate) fn hold(&self, verdicts: &[Verdict], run: &Run, facts: &dyn Facts) -> bool {
        if !verdicts.is_empty() {
            let paper = console::error_paper(Length::Full);
            console::annotate(terminal::requirements(verdicts, paper).trim_end());
        }
        let mut unobserved = facts.unobserved();
        unobserved.nothing &= !self.allow_empty;
        let failing = self
            .fail_on
            .map_or_else(Vec::new, |least| failing(least, facts, &unobserved));
        for reason in &failing {
            console::note(&format!("--fail-on: {reason}"));
        }
        let missing = unobserved.hides_findings();
        if let Some(path) = &self.junit {
            let text = intact_report::junit::document(
                run.producer.as_str(),
                verdicts,
                &facts.rules(),
                facts.findings(),
                self.fail_on,
                missing.as_deref(),
            );
            console::note_unwritten("--junit", path, private_file::write(path, text));
        }
        if let Some(ci) = ci() {
            for line in annotations::lines(ci, verdicts, facts.findings()) {
                console::annotate(&line);
            }
        }
        failing.is_empty() && verdicts.iter().all(Verdict::passed)
    }
}

/// The CI that this process runs in, if it is one that understands annotations.
fn ci() -> Option<Ci> {
    let is =
        |name: &str| std::env::var_os(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if is("GITHUB_ACTIONS") {
        Some(Ci::GitHub)
    } else if is("TF_BUILD") {
        Some(Ci::Azure)
    } else {
        None
    }
}
