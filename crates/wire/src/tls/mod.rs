//! TLS without keys: records, hellos, and the facts that a handshake shows.
//!
//! [`Watcher`] reads both directions of one connection and keeps [`TlsFacts`]. It terminates and
//! verifies nothing: no certificate is checked, and a false hello is reported as sent. If the
//! program logged its keys, [`decrypt`] reads the content. The only thing written is a hello of TLS
//! 1.0 or 1.1 ([`write_old_client_hello`]).

pub mod decrypt;

mod cursor;
mod error;
mod hello;
mod legacy_hello;
mod messages;
mod record;
mod suite;
mod watcher;

pub(crate) use cursor::Cursor;
pub use error::Error;
pub use hello::{ClientHello, ServerHello};
pub use legacy_hello::write_old_client_hello;
pub use record::{ContentType, Record, RecordReader};
pub use suite::suite_name;
pub use watcher::{Alert, Mode, OVERHEAD_13, TlsFacts, Traffic, Watcher, finished_len};

/// TLS 1.0 as a hello encodes it.
pub const TLS10: u16 = 0x0301;

/// TLS 1.2 as a hello encodes it.
pub const TLS12: u16 = 0x0303;

/// TLS 1.3 as `supported_versions` encodes it.
pub const TLS13: u16 = 0x0304;
