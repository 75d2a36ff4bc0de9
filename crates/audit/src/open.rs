//! Opens an input: decompresses gzip and zstd, and detects the format and the start by the first
//! bytes. Consumes nothing.

use crate::counters::CounterSyntax;
use crate::envelope::{self, Fails};
use crate::error::AuditError;
use crate::format::Format;
use crate::input::{Input, Stream};
use crate::load_generator::{self, Summary};
use crate::log::{self, LogFormat, Pattern};
use crate::read_buffer::ReadBuffer;
use crate::refusal::{self, Refusal};
use crate::text::{Mark, Utf16};
use crate::{capture, client, netlog, replay, zeek};
use flate2::read::MultiGzDecoder;
use intact_ledger::export::csv;
use intact_ledger::input_file;
use intact_ledger::store::{Reader, StoreError, is_ledger};
use std::cell::{Cell, RefCell};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Number of bytes that show the format and the start.
const PREFIX: usize = 64 << 10;

/// Number of bytes of a NetLog that are searched for its first event.
const FIRST_EVENT: usize = 1 << 20;

/// One second in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Options for inputs that do not show them.
#[derive(Clone, Debug, Default)]
pub struct InputOptions {
    /// The format of access logs.
    pub log_format: Option<Pattern>,
}

impl Format {
    /// The format of these first bytes.
    fn detect(prefix: &[u8]) -> Option<Format> {
        capture::detect(prefix)
            .or_else(|| netlog::is_netlog(prefix).then_some(Format::NetLog))
            .or_else(|| client::detect(prefix).map(Format::Client))
            .or_else(|| CounterSyntax::detect(prefix).map(Format::Counters))
            .or_else(|| load_generator::detect(prefix).map(Format::Tool))
            .or_else(|| zeek::detect(prefix).map(Format::Zeek))
    }

    /// Start of the input, in nanoseconds since 1970.
    fn begins_at(self, prefix: &[u8]) -> Option<u64> {
        match self {
            Format::Pcap | Format::Pcapng | Format::Snoop => capture::begins_at(self, prefix),
            Format::Client(format) => (format.begins_at)(prefix),
            Format::NetLog => netlog::begins_at(prefix),
            Format::Tool(tool) => tool.begins_at(prefix),
            Format::Zeek(_) => zeek::begins_at(prefix),
            Format::AccessLog | Format::Counters(_) | Format::Ledger => None,
        }
    }
}

impl Input {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path, hints: &InputOptions) -> Result<Input, AuditError> {
        let fails = |source| AuditError::Io {
            path: path.to_owned(),
            source,
        };
        let (raw, size): (Box<dyn Read>, _) = if path.as_os_str() == "-" {
            (Box::new(io::stdin()), None)
        } else {
            if path.is_dir() {
                return Input::from_folder(path);
            }
            let file = input_file::open(path).map_err(fails)?;
            let about = file.metadata().map_err(fails)?;
            let size = about.is_file().then_some(about.len());
            (Box::new(file), size)
        };
        Input::from_reader(path, raw, size, hints)
    }

    /// The files and ledgers in a folder; for a ledger or any other path, the path itself.
    pub fn files_of(path: &Path) -> Vec<PathBuf> {
        let entries = match std::fs::read_dir(path) {
            Ok(entries) if !is_ledger(path) => entries,
            _ => return vec![path.to_owned()],
        };
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_file() || is_ledger(path))
            .collect();
        files.sort();
        // an empty folder is returned, so that its error names it
        if files.is_empty() {
            files.push(path.to_owned());
        }
        files
    }

    /// Opens a stored ledger.
    fn from_folder(path: &Path) -> Result<Input, AuditError> {
        let reader = Reader::open(path).map_err(|error| match error {
            StoreError::NotALedger(_) => AuditError::Folder(path.to_owned()),
            other => AuditError::Broken {
                path: path.to_owned(),
                format: "ledger",
                why: other.to_string(),
            },
        })?;
        let mut input = Input::of(path, Box::new(io::empty()));
        input.ledger = Some(reader);
        Ok(input)
    }

    /// An input whose format is not known yet.
    fn of(path: &Path, inner: Box<dyn Read>) -> Input {
        let trouble = Rc::new(RefCell::new(None));
        Input {
            path: path.to_owned(),
            format: Format::Ledger,
            window: ReadBuffer::new(Stream {
                inner,
                trouble: trouble.clone(),
            }),
            trouble,
            dialect: None,
            ledger: None,
            read: Rc::new(Cell::new(0)),
            size: None,
        }
    }

    /// Opens an input that is no file. `size` in bytes is for progress only.
    pub fn from_reader(
        path: &Path,
        raw: Box<dyn Read>,
        size: Option<u64>,
        hints: &InputOptions,
    ) -> Result<Input, AuditError> {
        let fails = |source| AuditError::Io {
            path: path.to_owned(),
            source,
        };
        let read = Rc::new(Cell::new(0));
        let counted = Counted {
            inner: raw,
            read: read.clone(),
        };
        let plain = decompressed(counted)
            .and_then(marked)
            .and_then(envelope::opened);
        let mut input = Input::of(path, plain.map_err(fails)?);
        (input.read, input.size) = (read, size);
        input.window.fill(PREFIX).map_err(fails)?;
        input.detect(hints)?;
        if matches!(input.format, Format::NetLog | Format::Client(_)) && input.begins_at().is_none()
        {
            // the first event may follow constants, or a long first entry
            input.window.fill(FIRST_EVENT).map_err(fails)?;
        }
        Ok(input)
    }

    /// Detects the format by the first bytes.
    fn detect(&mut self, hints: &InputOptions) -> Result<(), AuditError> {
        let path = self.path.clone();
        let prefix = self.window.available();
        if prefix.is_empty() {
            return Err(match self.trouble.borrow_mut().take() {
                Some(why) => AuditError::Broken {
                    path,
                    format: "compressed file",
                    why,
                },
                None => AuditError::Empty(path),
            });
        }
        if let Some(format) = Format::detect(prefix) {
            self.format = format;
            return Ok(());
        }
        if prefix.starts_with(csv::HEAD.as_bytes()) {
            return Err(AuditError::OwnCsv(path));
        }
        if let Some(log) = zeek::other_log(prefix) {
            return Err(AuditError::OtherLog { path, log });
        }
        if let Some(Summary { what, instead }) = Summary::detect(prefix) {
            return Err(AuditError::Summary {
                path,
                what,
                instead,
            });
        }
        if let Some(Refusal { what, remedy }) = Refusal::detect(prefix) {
            return Err(AuditError::Foreign { path, what, remedy });
        }
        let given = hints.log_format.clone();
        let given = given.map(|pattern| LogFormat::given(pattern, prefix));
        let Some(dialect) = given.or_else(|| LogFormat::detect(prefix)) else {
            return Err(AuditError::Unknown {
                path,
                start: prefix[..prefix.len().min(24)].escape_ascii().to_string(),
                nearest: refusal::nearest(prefix),
            });
        };
        self.format = Format::AccessLog;
        self.dialect = Some(dialect);
        Ok(())
    }

    /// The step of times in nanoseconds, if the first bytes of an input show times in whole seconds
    /// only.
    pub fn time_step(all: &[Input]) -> Option<u64> {
        let steps = all.iter().map(|input| {
            let prefix = input.window.available();
            let is_coarse = match (&input.ledger, &input.dialect, input.format) {
                (Some(reader), ..) => return reader.run().time_step_ns,
                (None, Some(dialect), _) => log::is_coarse(prefix, dialect),
                (None, None, Format::Tool(tool)) => tool.is_coarse(prefix),
                (None, None, _) => false,
            };
            is_coarse.then_some(SECOND)
        });
        steps.max().flatten()
    }

    /// The sort key of inputs: their start time. Among Zeek's logs, a log comes before the logs
    /// that are joined to it.
    pub fn turn(&self) -> (u8, Option<u64>) {
        let first = match self.format {
            Format::Zeek(log) => log.turn(),
            _ => 0,
        };
        (first, self.begins_at())
    }

    /// Start of the input in nanoseconds since 1970, if its first bytes show it. A later record may
    /// be earlier by a clock step. In a log that is written at the end of requests, it may also be
    /// earlier by the duration of a request.
    pub fn begins_at(&self) -> Option<u64> {
        if let Some(reader) = &self.ledger {
            return replay::begins_at(reader);
        }
        let prefix = self.window.available();
        match &self.dialect {
            Some(dialect) => log::begins_at(prefix, dialect),
            None => self.format.begins_at(prefix),
        }
    }
}

/// The content of a file, decompressed if its first bytes show a compression.
fn decompressed(mut file: Counted) -> io::Result<Box<dyn Read>> {
    let mut magic = Vec::new();
    file.by_ref().take(4).read_to_end(&mut magic)?;
    let whole = io::Cursor::new(magic.clone()).chain(file);
    Ok(match magic.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(whole)),
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::Decoder::new(whole)?),
        _ => Box::new(whole),
    })
}

/// The content as UTF-8 without a byte order mark, if it begins with one.
fn marked(mut content: Box<dyn Read>) -> io::Result<Box<dyn Read>> {
    let mut start = Vec::new();
    // a damaged file is reported with what comes before the damage
    let trouble = content.by_ref().take(4).read_to_end(&mut start).err();
    let mark = Mark::of(&start);
    let begun = io::Cursor::new(start.split_off(mark.map_or(0, Mark::len)));
    let whole = begun.chain(Fails(trouble)).chain(content);
    Ok(match mark {
        Some(Mark::Utf16Le) => Box::new(Utf16::new(whole, false)),
        Some(Mark::Utf16Be) => Box::new(Utf16::new(whole, true)),
        Some(Mark::Utf8) | None => Box::new(whole),
    })
}

/// Counts the bytes of the file, before decompression.
struct Counted {
    inner: Box<dyn Read>,
    read: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}
