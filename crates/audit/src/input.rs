//! An input: its format, its bytes, and the facts that the format can show.

use crate::counters::CounterSyntax;
use crate::error::AuditError;
use crate::format::Format;
use crate::input_summary::{InputSummary, Unit};
use crate::log::log_format::LogFormat;
use crate::read_buffer::ReadBuffer;
use intact_ledger::Vantage;
use intact_ledger::store::Reader;
use std::cell::{Cell, RefCell};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Longest line of a log, in bytes; longer ones are skipped.
pub(crate) const LONGEST_LINE: usize = 1 << 20;
/// Number of lines between two calls of `go_on`.
const BREATH: u64 = 4096;

/// The name of an input that users see.
pub(crate) fn name(path: &Path) -> String {
    match path.file_name() {
        Some(name) if name != "-" => name.to_string_lossy().into_owned(),
        _ => "standard input".to_owned(),
    }
}

/// A line of a text input, without its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextLine<'a> {
    /// Empty if the line is too long.
    pub(crate) bytes: &'a [u8],
    /// The input ends within the line, or right after it.
    pub(crate) is_cut: bool,
    /// The line is longer than the limit.
    pub(crate) is_too_long: bool,
}

impl TextLine<'_> {
    /// The text; what is not UTF-8 is replaced.
    pub(crate) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.bytes)
    }
}

/// An opened input, with a known format and all bytes unread.
pub struct Input {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) window: ReadBuffer<Stream>,
    pub(crate) trouble: Rc<RefCell<Option<String>>>,
    /// The format of the lines of an access log.
    pub(crate) dialect: Option<LogFormat>,
    /// The reader of a ledger, which is a folder.
    pub(crate) ledger: Option<Reader>,
    pub(crate) read: Rc<Cell<u64>>,
    pub(crate) size: Option<u64>,
}

impl Input {
    /// The summary of the input after it was read, without evidence and advice.
    pub(crate) fn account(&self, unit: Unit, read: u64, skipped: u64) -> InputSummary {
        InputSummary {
            path: self.path.clone(),
            format: self.format,
            unit,
            read,
            skipped,
            bytes: self.window.taken(),
            evidence: None,
            advice: Vec::new(),
            upstreams: Vec::new(),
        }
    }

    /// Prefix of the caveats about the input: its file name, as in the title of the page.
    pub(crate) fn prefix(&self) -> String {
        format!("{}: ", name(&self.path))
    }

    /// The error of an input that breaks its format from the start.
    pub(crate) fn broken(&self, why: impl Into<String>) -> AuditError {
        AuditError::Broken {
            path: self.path.clone(),
            format: self.format.as_str(),
            why: why.into(),
        }
    }

    /// Passes each line to `take`, and an empty one for a line longer than `longest` bytes. Ends
    /// when `take` or `go_on` returns false.
    pub(crate) fn each_line(
        &mut self,
        longest: usize,
        go_on: &mut dyn FnMut() -> bool,
        mut take: impl FnMut(&TextLine<'_>) -> bool,
    ) {
        let mut count = 0;
        while let Some((bytes, end)) = self.window.line(longest) {
            let line = TextLine {
                bytes,
                is_cut: end.is_cut,
                is_too_long: end.is_too_long,
            };
            if !take(&line) {
                return;
            }
            count += 1;
            if count % BREATH == 0 && !go_on() {
                return;
            }
        }
    }

    /// Names the inputs: by file name, or by path where file names repeat.
    pub fn subject(inputs: &[Input]) -> String {
        let mut names: Vec<String> = inputs.iter().map(|input| name(&input.path)).collect();
        if (1..names.len()).any(|at| names[..at].contains(&names[at])) {
            names = inputs
                .iter()
                .map(|input| input.path.display().to_string())
                .collect();
        }
        match &names[..] {
            [first, .., last] if names.len() > 3 => format!("{first} ... {last}"),
            names => names.join(" "),
        }
    }

    /// The detected format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Where the recorder of the input observed the traffic.
    pub fn vantage(&self) -> Vantage {
        match (self.format, &self.ledger) {
            (_, Some(reader)) => reader.run().vantage,
            (Format::Client(_) | Format::NetLog | Format::Tool(_), None) => Vantage::Client,
            (Format::Counters(CounterSyntax::StubStatus), None) => Vantage::Server,
            (Format::Counters(_), None) => Vantage::OnPath,
            (Format::AccessLog, None) => {
                let log = self.dialect.as_ref();
                log.map_or(Vantage::Server, |log| log.format.vantage)
            }
            (Format::Pcap | Format::Pcapng | Format::Snoop, None)
            | (Format::Zeek(_) | Format::Ledger, None) => Vantage::OnPath,
        }
    }

    /// Size of the file in bytes; `None` for a pipe.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// A counter of the bytes read from the file so far.
    pub fn gauge(&self) -> Rc<Cell<u64>> {
        self.read.clone()
    }
}

/// A stream that ends at the first read error and keeps the error, so that the events before it can
/// be reported.
pub(crate) struct Stream {
    pub(crate) inner: Box<dyn Read>,
    pub(crate) trouble: Rc<RefCell<Option<String>>>,
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.trouble.borrow().is_some() {
            return Ok(0);
        }
        match self.inner.read(into) {
            Ok(read) => Ok(read),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                *self.trouble.borrow_mut() = Some(error.to_string());
                Ok(0)
            }
        }
    }
}
