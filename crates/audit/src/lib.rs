//! Audit: what captures, HAR files, access logs and other tools' results say about connections, as ledger events.
//!
//! A producer: it writes [`intact_ledger::Event`]s into a [`intact_ledger::Sink`] and draws no conclusions. Formats are told by content,
//! never by name; input is streamed and memory is bounded, since every byte is foreign. No printing, no clock, no sockets.
//!
//! Open every input with [`Input`], choose the earliest [`Input::begins_at`] as nanosecond 0, then hand them to an [`Audit`]
//! in the order of [`Input::turn`].

mod audit;
mod capture;
mod client;
mod error;
mod event_writer;
mod fields;
mod format;
mod har;
mod input;
mod input_summary;
mod lenient;
mod load_generator;
mod log;
mod netlog;
mod open;
mod read_buffer;
mod replay;
mod timestamp;
mod zeek;

pub use audit::{Audit, LadderSelection, NO_CONNECTIONS, Options};
pub use capture::{Ladder, LadderStep};
pub use error::AuditError;
pub use format::{Format, LoadGenerator, Log as ZeekLog};
pub use input::Input;
pub use input_summary::{InputSummary, Unit};
pub use intact_wire::tls::decrypt::KeyLog;

pub use log::{Pattern, PatternError};
pub use open::InputOptions;
