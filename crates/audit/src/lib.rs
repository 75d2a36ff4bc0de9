//! Audit: what captures, HAR files, access logs and other tools' results say about connections, as ledger events.
//!
//! A producer: it writes [`intact_ledger::Event`]s into a [`intact_ledger::Sink`] and draws no conclusions. Formats are told by content,
//! never by name; input is streamed and memory is bounded, since every byte is foreign. No printing, no clock, no sockets.
//!
//! Open every input with [`Input`], choose the earliest [`Input::begins_at`] as nanosecond 0, then hand them to an [`Audit`]
//! in the order of [`Input::turn`].

mod input_summary;
mod audit;
mod capture;
mod client;
mod error;
mod format;
mod har;
mod input;
mod log;
mod lenient;
mod netlog;
mod replay;
mod event_writer;
mod load_generator;
mod read_buffer;
mod zeek;

pub use input_summary::{InputSummary, Unit};
pub use audit::{Audit, LadderSelection, NO_CONNECTIONS, Options};
pub use capture::{Ladder, LadderStep};
pub use error::AuditError;
pub use format::Format;
pub use input::{InputOptions, Input};
pub use intact_wire::tls::decrypt::KeyLog;
pub use log::{Pattern, PatternError};
pub use load_generator::LoadGenerator;
pub use zeek::Log as ZeekLog;
