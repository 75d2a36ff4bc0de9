//! What every command does with its facts: JSON, page, report files, gates, exit code. What differs
//! is an argument.

use super::gates::Gates;
use super::json::{self, JsonTarget};
use super::page::ReportFiles;
use crate::console;
use crate::exit::{self, Failed};
use intact_document::requirement::{self, DocumentKind, Requirement};
use intact_findings::Document;
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

impl From<FileOutput> for Output {
    fn from(files: FileOutput) -> Output {
        Output {
            json: files.json.map(JsonTarget::File),
            report: files.report,
        }
    }
}

impl Output {
    /// Whether JSON takes standard output, so that no page may.
    pub(crate) fn is_json(&self) -> bool {
        json::takes_output(self.json.as_ref())
    }
}

/// Where the results of a document go.
pub(crate) struct Conclusion {
    output: Output,
    gates: Gates,
    requirements: Vec<Requirement>,
}

impl Conclusion {
    /// Reads the requirements before anything runs.
    pub(crate) fn begin(
        output: impl Into<Output>,
        gates: &Gates,
        document: DocumentKind,
    ) -> Result<Conclusion, Failed> {
        Ok(Conclusion {
            requirements: gates.begin(document)?,
            output: output.into(),
            gates: gates.clone(),
        })
    }

    /// Writes the JSON, prints the page unless JSON takes standard output, writes the files of
    /// `--report` and what a CI reads. Returns whether all gates pass. What cannot be written is
    /// named, and the rest is written all the same.
    pub(crate) fn write(&self, document: &Document) -> anyhow::Result<bool> {
        self.write_page(document, intact_report::documents::page(document), print)
    }

    /// The same with this page of the document, which `print` shows.
    pub(crate) fn write_page(
        &self,
        document: &Document,
        mut page: Page<'_>,
        print: impl FnOnce(&Page<'_>, Length),
    ) -> anyhow::Result<bool> {
        json::deliver(self.output.json.as_ref(), || {
            intact_report::json::document(document)
        })?;
        let verdicts = requirement::evaluate(&self.requirements, document.facts());
        page.requirements.clone_from(&verdicts);
        page.gate = self.gates.fail_on;
        if !self.output.is_json() {
            print(&page, self.output.report.length());
        }
        self.output.report.write(&[page])?;
        Ok(self.gates.hold(&verdicts, &document.run, document.facts()))
    }

    /// Writes everything. The exit code is that of the signal that ended the run; else it says
    /// whether anything succeeded; else whether all gates pass.
    pub(crate) fn finish(
        &self,
        document: &Document,
        signal: Option<usize>,
    ) -> anyhow::Result<ExitCode> {
        self.finish_with(document, signal, print)
    }

    /// The same with the page as `print` shows it.
    pub(crate) fn finish_with(
        &self,
        document: &Document,
        signal: Option<usize>,
        print: impl FnOnce(&Page<'_>, Length),
    ) -> anyhow::Result<ExitCode> {
        let page = intact_report::documents::page(document);
        let kept = self.write_page(document, page, print)?;
        Ok(exit_code(signal, document.facts().any_success(), kept))
    }

    /// Writes everything, the page to standard error unless nothing is to be printed. The exit code
    /// is that of the program that was observed; where that is 0, whether all gates pass.
    pub(crate) fn finish_after(
        &self,
        document: &Document,
        program: u8,
        quiet: bool,
    ) -> anyhow::Result<ExitCode> {
        let page = intact_report::documents::page(document);
        let kept = self.write_page(document, page, |page, length| {
            if !quiet {
                let text = intact_report::terminal::write(page, console::error_paper(length));
                console::note_after_program(&text);
            }
        })?;
        Ok(ExitCode::from(match program {
            exit::FINE if !kept => exit::REQUIREMENT,
            code => code,
        }))
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
