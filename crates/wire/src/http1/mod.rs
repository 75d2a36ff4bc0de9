//! HTTP/1.0 and HTTP/1.1 messages (RFC 9112): [`ResponseParser`] for one direction,
//! [`RequestParser`] for the other, [`Http1Observer`] for both at once.
//!
//! ```
//! use intact_wire::http1::{Kind, ResponseEvent, ResponseParser};
//!
//! let mut parser = ResponseParser::default();
//! parser.expect(Kind::Plain);
//! let mut input: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
//! let mut body = Vec::new();
//! loop {
//!     let step = parser.parse(input)?;
//!     match step.event {
//!         Some(ResponseEvent::Head(head)) => assert_eq!(head.status(), 200),
//!         Some(ResponseEvent::Body(bytes)) => body.extend_from_slice(bytes),
//!         Some(_) => {}
//!         None => break, // all of the input was used: come back with more
//!     }
//!     input = &input[step.consumed..];
//! }
//! assert_eq!(body, b"hi");
//! # Ok::<(), intact_wire::http1::Error>(())
//! ```
//!
//! A parser copies each head into a buffer of its own, so the caller's read buffer is free after
//! every call. The last head stays there: a response that repeats it byte for byte is recognised by
//! one comparison and not parsed again. Nothing is decoded (no gzip, no percent-encoding), nothing
//! is decided for the caller (no redirects, no retries).

mod block;
mod body;
mod content;
mod error;
mod fields;
mod given;
mod head_cache;
mod message;
mod observer;
mod parser;
mod partial;
mod request;
mod response;
mod seen;

pub use crate::ParseStep;
pub use error::{Error, Part, Snippet};
pub use fields::{Headers, is_token};
pub use given::{check_authority, check_field, check_method, check_target, split_field};
pub(crate) use message::decimal;
pub use message::{Eof, Framing, KeepAlive, Options, Persistence, Version};
pub use observer::Http1Observer;
pub use parser::{MessageEvent, MessageHead, MessageParser};
pub use partial::begins_request;
pub use request::{RequestEvent, RequestHead, RequestLine, RequestParser};
pub use response::{Kind, ResponseEvent, ResponseHead, ResponseParser, StatusLine};

/// What a peer may make a parser hold or swallow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest head or trailer section, in bytes, its closing empty line included.
    pub head: usize,
    /// How many interim (1xx) responses may precede one final response.
    pub interim: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: 64 * 1024,
            interim: 100,
        }
    }
}
