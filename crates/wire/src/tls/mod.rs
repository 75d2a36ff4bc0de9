//! TLS as seen from outside: records, hellos, and what can be told of a handshake without keys.
//!
//! [`Watcher`] reads both directions of one connection and keeps [`TlsFacts`]. It terminates nothing and verifies
//! nothing: no certificate is judged here, and a lie in a hello is reported as it was told. Where the program logged
//! its keys, [`decrypt`] reads on. The one thing written is a hello of TLS 1.0 or 1.1 ([`write_old_client_hello`]).

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
pub use watcher::{Alert, Evidence, Finished, Mode, TlsFacts, Traffic, Watcher};

/// TLS 1.0 as it stands in a hello.
pub const TLS10: u16 = 0x0301;

/// TLS 1.2 as it stands in a hello.
pub const TLS12: u16 = 0x0303;

/// TLS 1.3 as it stands in `supported_versions`.
pub const TLS13: u16 = 0x0304;
