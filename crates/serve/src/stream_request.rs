//! A request on a stream of HTTP/2 or HTTP/3: what is decided about it, and the fields of its
//! response. Writes no frames.

use crate::host;
use crate::http2::request::RequestHead;
use crate::record::{OpenExchange, Record};
use crate::response::Response;
use crate::thread_state::{Peer, ResponsePlan, ThreadState};
use intact_ledger::{Nanos, Protocol};
use std::rc::Rc;

/// A request whose header section has come.
pub(crate) struct StreamRequest {
    /// Absent for questions about the server itself.
    pub(crate) pending: Option<OpenExchange>,
    pub(crate) plan: ResponsePlan,
    pub(crate) head_only: bool,
    /// No stream after it is to be served.
    pub(crate) is_last: bool,
}

impl StreamRequest {
    /// Decides about a request whose header section came at `at`.
    pub(crate) fn begin(
        state: &ThreadState,
        record: &Rc<Record>,
        peer: Peer,
        version: Protocol,
        head: &RequestHead,
        at: Nanos,
    ) -> StreamRequest {
        let named = host::of_fields(head.hosts(), true);
        let mut plan = state.plan(&head.path, named, peer, record);
        if head.method == b"CONNECT" {
            plan.answer = Response::ours(501, "text/plain", "this is no proxy\n".to_owned());
        }
        if head.is_grpc && version == Protocol::Http2 && !plan.hidden {
            plan.answer = plan.answer.for_call(&head.path);
        }
        state.adapt(&mut plan, &head.method, &head.preconditions);
        let pending = (!plan.hidden).then(|| {
            let mut exchange = record.begin(at, version, &head.method, &head.path);
            exchange.fault = plan.fault;
            exchange.disturbed = std::mem::take(&mut plan.disturbed);
            exchange
        });
        let is_last = plan.answer.closes || state.is_last(record.exchanges(), peer);
        StreamRequest {
            is_last: is_last && pending.is_some(),
            pending,
            plan,
            head_only: head.method == b"HEAD",
        }
    }

    /// Whether a body follows the header section of the response.
    pub(crate) fn has_body(&self) -> bool {
        let answer = &self.plan.answer;
        let is_empty = answer.body.len() == 0 && !answer.unannounced;
        !answer.is_bodiless() && !self.head_only && !is_empty
    }

    /// Passes on the fields of the response's header section, the server's own last.
    pub(crate) fn fields(&self, own: &[(Vec<u8>, Vec<u8>)], mut add: impl FnMut(&[u8], &[u8])) {
        let answer = &self.plan.answer;
        add(b":status", answer.status.to_string().as_bytes());
        if !answer.is_bodiless() {
            if !answer.unannounced {
                add(b"content-length", answer.body.len().to_string().as_bytes());
            }
            add(b"content-type", answer.content_type.as_bytes());
        }
        if let Some(path) = answer.location {
            add(b"location", path.as_bytes());
        }
        if let Some(status) = answer.grpc.filter(|_| !self.has_body()) {
            add(b"grpc-status", status.to_string().as_bytes());
        }
        for (name, value) in &answer.fields {
            add(name.as_bytes(), value.as_bytes());
        }
        for (name, value) in own {
            add(name, value);
        }
    }

    /// Notes that the header section of the response, of `bytes`, is written.
    pub(crate) fn note_head(&mut self, bytes: u64) {
        if let Some(pending) = &mut self.pending {
            pending.status = Some(self.plan.answer.status);
            pending.bytes.head += bytes;
        }
    }
}
