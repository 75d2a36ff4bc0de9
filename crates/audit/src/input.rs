//! Opening an input: gzip and zstd are seen through, the format is told by the first bytes, nothing is consumed.

use crate::error::AuditError;
use crate::format::Format;
use crate::input_summary::{InputSummary, Unit};
use crate::load_generator::Summary;
use crate::log::{self, LogFormat, Pattern};
use crate::read_buffer::ReadBuffer;
use crate::replay;
use crate::zeek;
use flate2::read::MultiGzDecoder;
use intact_ledger::Vantage;
use intact_ledger::store::{Reader, StoreError};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// How much of an input its format and its beginning are told from, in bytes.
const PREFIX: usize = 64 << 10;

/// How much of a NetLog is looked at for its first event, in bytes.
const FIRST_EVENT: usize = 1 << 20;

/// What a person says of inputs that do not tell it themselves.
#[derive(Clone, Debug, Default)]
pub struct InputOptions {
    /// The format of access logs.
    pub log_format: Option<Pattern>,
}

/// The name of an input for a person.
pub(crate) fn name(path: &Path) -> String {
    match path.file_name() {
        Some(name) if name != "-" => name.to_string_lossy().into_owned(),
        _ => "standard input".to_owned(),
    }
}

/// An input whose format is known and of which nothing has been read yet.
pub struct Input {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) window: ReadBuffer<Stream>,
    pub(crate) trouble: Rc<RefCell<Option<String>>>,
    /// How an access log is written.
    pub(crate) dialect: Option<LogFormat>,
    /// A ledger, which is a folder.
    pub(crate) ledger: Option<Reader>,
    read: Rc<Cell<u64>>,
    size: Option<u64>,
}

impl Input {
    /// What became of it once it was read, without evidence and advice.
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
        }
    }

    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path, hints: &InputOptions) -> Result<Input, AuditError> {
        let fails = |source| AuditError::Io {
            path: path.to_owned(),
            source,
        };
        let (raw, size): (Box<dyn Read>, _) = if path.as_os_str() == "-" {
            (Box::new(io::stdin()), None)
        } else {
            let file = File::open(path).map_err(fails)?;
            let about = file.metadata().map_err(fails)?;
            if about.is_dir() {
                return Input::from_folder(path);
            }
            let size = about.is_file().then_some(about.len());
            (Box::new(file), size)
        };
        Input::from_reader(path, raw, size, hints)
    }

    /// The files of a folder that is no ledger, and the ledgers in it; anything else is itself.
    pub fn files_of(path: &Path) -> Vec<PathBuf> {
        let is_ledger = |path: &Path| path.join("run.json").is_file();
        let entries = match std::fs::read_dir(path) {
            Ok(entries) if !is_ledger(path) => entries,
            _ => return vec![path.to_owned()],
        };
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_file() || is_ledger(path))
            .collect();
        files.sort();
        // an empty folder stands for itself, so that its error names it
        if files.is_empty() {
            files.push(path.to_owned());
        }
        files
    }

    /// The inputs in a few words: their file names, or their paths where names repeat.
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

    /// A stored ledger.
    fn from_folder(path: &Path) -> Result<Input, AuditError> {
        let reader = Reader::open(path).map_err(|error| match error {
            StoreError::NotALedger(_) => AuditError::Folder(path.to_owned()),
            other => AuditError::Broken {
                path: path.to_owned(),
                format: "ledger",
                why: other.to_string(),
            },
        })?;
        let trouble = Rc::new(RefCell::new(None));
        Ok(Input {
            path: path.to_owned(),
            format: Format::Ledger,
            window: ReadBuffer::new(Stream {
                inner: Box::new(io::empty()),
                trouble: trouble.clone(),
            }),
            trouble,
            dialect: None,
            ledger: Some(reader),
            read: Rc::new(Cell::new(0)),
            size: None,
        })
    }

    /// An input that comes from elsewhere than a file; `size` in bytes is for progress only.
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
        let mut counted = Counted {
            inner: raw,
            read: read.clone(),
        };
        let mut magic = Vec::new();
        counted
            .by_ref()
            .take(4)
            .read_to_end(&mut magic)
            .map_err(fails)?;
        let whole = io::Cursor::new(magic.clone()).chain(counted);
        let plain: Box<dyn Read> = match magic.as_slice() {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(whole)),
            [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::Decoder::new(whole).map_err(fails)?),
            _ => Box::new(whole),
        };
        let trouble = Rc::new(RefCell::new(None));
        let mut window = ReadBuffer::new(Stream {
            inner: plain,
            trouble: trouble.clone(),
        });
        window.fill(PREFIX).map_err(fails)?;
        let prefix = window.available();
        if prefix.is_empty() {
            return Err(match trouble.borrow_mut().take() {
                Some(why) => AuditError::Broken {
                    path: path.to_owned(),
                    format: "compressed file",
                    why,
                },
                None => AuditError::Empty(path.to_owned()),
            });
        }
        let mut dialect = None;
        let format = match Format::tell(prefix) {
            Some(format) => format,
            None => {
                if let Some(log) = zeek::other_log(prefix) {
                    return Err(AuditError::OtherLog {
                        path: path.to_owned(),
                        log,
                    });
                }
                if let Some(summary) = Summary::tell(prefix) {
                    return Err(AuditError::Summary {
                        path: path.to_owned(),
                        what: summary.what,
                        instead: summary.instead,
                    });
                }
                let given = hints.log_format.clone().map(LogFormat::Given);
                dialect = given.or_else(|| LogFormat::tell(prefix));
                if dialect.is_none() {
                    return Err(AuditError::Unknown {
                        path: path.to_owned(),
                        start: prefix[..prefix.len().min(24)].escape_ascii().to_string(),
                    });
                }
                Format::AccessLog
            }
        };
        if format == Format::NetLog {
            // its first event is behind the constants
            window.fill(FIRST_EVENT).map_err(fails)?;
        }
        Ok(Input {
            path: path.to_owned(),
            format,
            window,
            trouble,
            dialect,
            ledger: None,
            read,
            size,
        })
    }

    /// Its path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it was taken for.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Where whoever recorded it stood.
    pub fn vantage(&self) -> Vantage {
        match (self.format, &self.ledger) {
            (_, Some(reader)) => reader.run().vantage,
            (Format::Har | Format::NetLog | Format::Tool(_), None) => Vantage::Client,
            (Format::AccessLog, None) => Vantage::Server,
            (Format::Pcap | Format::Pcapng | Format::Zeek(_) | Format::Ledger, None) => {
                Vantage::OnPath
            }
        }
    }

    /// Whether all of these tell how connections end. Zeek's conn.log tells it for the logs beside it.
    pub fn see_ends(all: &[Input]) -> bool {
        let connections = Format::Zeek(zeek::Log::Connections);
        let has_connections = all.iter().any(|input| input.format == connections);
        all.iter().all(|input| match (&input.ledger, input.format) {
            (Some(reader), _) => reader.run().ends_seen,
            (None, Format::Zeek(_)) => has_connections,
            (None, format) => matches!(format, Format::Pcap | Format::Pcapng | Format::NetLog),
        })
    }

    /// Whether these tell how long requests take, as far as their first bytes show.
    pub fn tell_durations(all: &[Input]) -> bool {
        all.iter()
            .all(|input| match (&input.ledger, &input.dialect) {
                (Some(reader), _) => reader.run().durations_seen,
                (None, Some(dialect)) => log::tells_durations(input.window.available(), dialect),
                (None, None) => !matches!(input.format, Format::Zeek(_)),
            })
    }

    /// What inputs are put in order by: when they begin, but those of Zeek's logs first that the others are joined to.
    pub fn turn(&self) -> (u8, Option<u64>) {
        let first = match self.format {
            Format::Zeek(log) => log.turn(),
            _ => 0,
        };
        (first, self.begins_at())
    }

    /// When it begins, in nanoseconds since 1970, as far as its first bytes tell; no record of it is earlier by more than
    /// what a clock or a log written at the end of requests explains.
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

    /// Its size in the file system in bytes; `None` for a pipe.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// A gauge of the bytes read from the file so far.
    pub fn gauge(&self) -> Rc<Cell<u64>> {
        self.read.clone()
    }
}

/// Counts what comes from the file, before decompression.
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

/// A stream that ends where it cannot be read any further, and remembers why: what came before is worth reporting.
pub(crate) struct Stream {
    inner: Box<dyn Read>,
    trouble: Rc<RefCell<Option<String>>>,
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
