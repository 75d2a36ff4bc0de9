//! Audit: what captures, HAR files, access logs and other tools' results say about connections, as ledger events.
//!
//! A producer: it writes [`intact_ledger::Event`]s into a [`intact_ledger::Sink`] and draws no conclusions. Formats are told by content,
//! never by name; input is streamed and memory is bounded, since every byte is foreign. No printing, no clock, no sockets.
//!
//! Open every input with [`Input`], choose the earliest [`Input::begins_at`] as nanosecond 0, then hand them to an [`Audit`]
//! in the order of [`Input::turn`].

mod account;
mod audit;
mod capture;
mod client;
mod error;
mod format;
mod har;
mod input;
mod log;
mod loose;
mod netlog;
mod replay;
mod scope;
mod tool;
mod window;
mod zeek;

pub use account::{Account, Unit};
pub use audit::{Audit, Choice, NO_CONNECTIONS, Options};
pub use capture::{Ladder, Step};
pub use error::AuditError;
pub use format::Format;
pub use input::{Hints, Input};
pub use intact_wire::tls::decrypt::KeyLog;
pub use log::{Pattern, PatternError};
pub use tool::Tool;
pub use zeek::Log as ZeekLog;
