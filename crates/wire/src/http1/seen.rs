//! Converts the header sections of requests and responses to observed exchanges.

use super::message::Framing;
use super::request::RequestHead;
use super::response::ResponseHead;
use crate::exchange::{Request, Response, UserFields};

impl RequestHead<'_> {
    /// The request of an observed exchange; times in nanoseconds.
    pub(super) fn seen(&self, started_at: u64, head_at: u64) -> Request {
        let mut user = UserFields::default();
        for (name, value) in self.headers() {
            user.take(name, value);
        }
        Request {
            method: self.method().to_vec(),
            target: self.target().to_vec(),
            authority: self.header("host").map(<[u8]>::to_vec),
            agent: self.header("user-agent").map(<[u8]>::to_vec),
            user,
            version: Some(self.version),
            started_at,
            head_at,
            head_len: self.as_bytes().len() as u64,
            close: !self.persistent(),
            ..Request::default()
        }
    }
}

impl ResponseHead<'_> {
    /// The response of an observed exchange; times in nanoseconds.
    pub(super) fn seen(&self, started_at: u64, head_at: u64) -> Response {
        Response {
            status: self.status(),
            version: Some(self.version),
            started_at,
            head_at,
            head_len: self.as_bytes().len() as u64,
            announced_len: match self.framing {
                Framing::Length(length) => Some(length),
                _ => None,
            },
            keep_alive: self.keep_alive,
            server: self.header("server").map(<[u8]>::to_vec),
            via: self.last_field(b"via").map(<[u8]>::to_vec),
            close: !self.persistent(),
            solicited: self.solicited,
            ..Response::default()
        }
    }
}
