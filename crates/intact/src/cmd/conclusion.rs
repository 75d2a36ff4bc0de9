//! What every command does with its facts: JSON, page, report files, gates, exit code. What differs
//! is an argument.

use super::gates::{GateInput, Gates, evaluate};
use super::json::{self, JsonTarget};
use super::page::ReportFiles;
use crate::console;
use crate::exit;
use intact_document::requirement::Requirement;
use intact_ledger::Run;
use intact_report::page::Page;
use intact_report::terminal::Length;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::ExitCode;

/// Where the documents of a run go.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// JSON to standard output, or to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<JsonTarget>,
    #[command(flatten)]
    pub(super) report: ReportFiles,
}

/// Where the documents of a run go whose standard output is a program's.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FileOutput {
    /// Write JSON to a file
    #[arg(long, value_name = "FILE", require_equals = true)]
    json: Option<PathBuf>,
    #[command(flatten)]
    report: ReportFiles,
}

impl From<&FileOutput> for Output {
    fn from(files: &FileOutput) -> Output {
        Output {
            json: files.json.clone().map(JsonTarget::File),
            report: files.report.clone(),
        }
    }
}

impl Output {
    /// Whether JSON takes standard output, so that no page may.
    pub(crate) fn is_json(&self) -> bool {
        json::takes_output(self.json.as_ref())
    }
}

/// A run with its facts, ready to be shown and judged.
pub(crate) struct Conclusion<'a, F> {
    pub(crate) output: &'a Output,
    pub(crate) gates: &'a Gates,
    pub(crate) requirements: &'a [Requirement],
    pub(crate) run: &'a Run,
    pub(crate) facts: &'a F,
}

impl<'a, F: GateInput> Conclusion<'a, F> {
    /// Writes the JSON, lets `print` show the page unless JSON takes standard output, writes the
    /// files of `--report` and what a CI reads. Returns whether all gates pass. What cannot be
    /// written is named, and the rest is written all the same.
    pub(crate) fn write(
        self,
        json: impl FnOnce() -> serde_json::Result<String>,
        page: impl FnOnce() -> Page<'a>,
        print: impl FnOnce(&Page<'_>, Length),
    ) -> anyhow::Result<bool> {
        json::deliver(self.output.json.as_ref(), json)?;
        let verdicts = evaluate(self.requirements, self.facts);
        let mut page = page();
        page.requirements.clone_from(&verdicts);
        if !self.output.is_json() {
            print(&page, self.output.report.length());
        }
        self.output.report.write(&[page])?;
        Ok(self.gates.hold(&verdicts, self.run, self.facts))
    }
}

/// Prints a page to standard output.
pub(crate) fn print(page: &Page<'_>, length: Length) {
    let text = intact_report::terminal::write(page, console::paper(length));
    console::print_written(&text);
}

/// The exit code of a run: that of the signal that ended it; else whether anything succeeded; else
/// whether all gates pass.
pub(crate) fn exit_code(signal: Option<usize>, any_success: bool, kept: bool) -> ExitCode {
    ExitCode::from(match signal {
        Some(signal) => exit::by_signal(signal),
        None if !any_success => exit::UNREACHABLE,
        None if !kept => exit::REQUIREMENT,
        None => exit::FINE,
    })
}
