//! Audit: reads captures, HAR files, access logs and results of other tools into ledger events.
//!
//! A producer: it writes [`intact_ledger::Event`]s to a [`intact_ledger::Sink`] and draws no
//! conclusions. It detects formats by content, never by name. It streams inputs in bounded memory,
//! because every byte is foreign. No printing, no clock, no sockets.
//!
//! Open every input with [`Input`] and use the earliest [`Input::begins_at`] as nanosecond 0. Then
//! pass the inputs to an [`Audit`] in the order of [`Input::turn`].

mod audit;
mod capture;
mod client;
mod counters;
mod csv_row;
mod devtools;
mod envelope;
mod error;
mod event_thread;
mod evidence;
mod failure_words;
mod fields;
mod format;
mod har;
mod input;
mod input_summary;
mod lenient;
mod load_generator;
mod log;
mod mitmproxy;
mod named;
mod netlog;
mod open;
mod read_buffer;
mod refusal;
mod replay;
mod text;
mod timestamp;
mod unread_lines;
mod zeek;

pub use audit::{Audit, NO_CONNECTIONS, Options};
pub use client::DocumentFormat;
pub use counters::{CounterSyntax, UpstreamCounts};
pub use error::AuditError;
pub use event_thread::record_on_thread;
pub use format::{Format, Log as ZeekLog};
pub use input::Input;
pub use input_summary::{InputSummary, Unit};
use intact_packets::event_writer;
pub use intact_packets::{Ladder, LadderSelection, LadderStep};
pub use intact_wire::tls::decrypt::KeyLog;

pub use load_generator::RowFormat;
pub use log::{Pattern, PatternError};
pub use open::InputOptions;
