//! The exchange in flight: its times, and what its answer told.

use ledger::{Exchange, Failure, Nanos, Outcome, Protocol, Setup, Span};

/// Fields of an answer that are remembered; the rest is not worth the memory.
const MOST_FIELDS: usize = 128;
/// Bytes of a field's value that are remembered.
const LONGEST_VALUE: usize = 1024;

/// When bytes reached us.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// When the kernel received them, or when they were read where it does not say.
    pub(crate) at: Nanos,
    /// When they were read.
    pub(crate) read: Nanos,
    /// Whether `at` is the kernel's.
    pub(crate) stamped: bool,
}

/// What an answer told beside what the ledger records. Never written as it is: it may hold secrets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    /// The version in the status line.
    pub(crate) answered_in: Option<Protocol>,
    /// Whether the answer leaves the connection open for another, by what it said (RFC 9112 section 9.3).
    pub(crate) keeps: bool,
    fields: Vec<(String, String)>,
}

impl Reply {
    /// Remembers a field.
    pub(crate) fn note(&mut self, name: &[u8], value: &[u8]) {
        if self.fields.len() < MOST_FIELDS {
            let value = &value[..value.len().min(LONGEST_VALUE)];
            self.fields.push((
                String::from_utf8_lossy(name).to_ascii_lowercase(),
                String::from_utf8_lossy(value).into_owned(),
            ));
        }
    }

    /// The first field of that name.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All fields of that name.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.fields
            .iter()
            .filter(move |(own, _)| own == name)
            .map(|(_, value)| &**value)
    }

    /// All fields, names in lower case.
    pub(crate) fn fields(&self) -> &[(String, String)] {
        &self.fields
    }
}

/// An exchange that is over.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) exchange: Exchange,
    pub(crate) reply: Reply,
}

impl Answered {
    /// Whether a complete answer came.
    pub(crate) fn is_ok(&self) -> bool {
        self.exchange.outcome.is_ok()
    }
}

/// An exchange under way.
pub(crate) struct Flight {
    pub(crate) exchange: Exchange,
    pub(crate) reply: Reply,
    /// The first byte of its answer has come.
    pub(crate) begun: bool,
    head_at: Option<Nanos>,
    body_at: Option<Nanos>,
}

impl Flight {
    /// An exchange that begins; `setup` is what its connection took, if it waited for that.
    pub(crate) fn new(mut exchange: Exchange, setup: Option<&Setup>) -> Flight {
        let at = exchange.at;
        exchange.fresh = Some(setup.is_some_and(|setup| exchange.spans.wait_for_setup(setup, at)));
        // the request leaves in the moment that the set-up ends
        let from = setup
            .and_then(|setup| setup.ssl.or(setup.connect))
            .map_or(at, |span| span.end.max(at));
        exchange.spans.send = Some(Span::new(from, from));
        Flight {
            exchange,
            reply: Reply::default(),
            begun: false,
            head_at: None,
            body_at: None,
        }
    }

    /// Notes that the request is with the kernel.
    pub(crate) fn sent(&mut self, at: Nanos) {
        if let Some(send) = &mut self.exchange.spans.send {
            send.end = send.end.max(at);
        }
    }

    /// Notes bytes of the answer, the first ones or later.
    pub(crate) fn hear(&mut self, arrival: Arrival) {
        if self.begun {
            return;
        }
        self.begun = true;
        let spans = &mut self.exchange.spans;
        if let Some(send) = &mut spans.send {
            // on loopback the answer may be there before our send returns
            send.end = send.end.min(arrival.at).max(send.start);
            spans.wait = Some(Span::new(send.end, arrival.at));
        }
    }

    /// Notes that the final head is complete.
    pub(crate) fn head(&mut self, status: u16, arrival: Arrival) {
        self.exchange.status = Some(status);
        self.head_at = Some(arrival.at);
    }

    /// Notes so many bytes of the body.
    pub(crate) fn body(&mut self, bytes: usize, arrival: Arrival) {
        if bytes > 0 && self.body_at.is_none() {
            self.body_at = Some(arrival.at);
        }
        *self.exchange.body.read.get_or_insert(0) += bytes as u64;
    }

    /// The answer is complete.
    pub(crate) fn complete(mut self, arrival: Arrival) -> Answered {
        let exchange = &mut self.exchange;
        let read = *exchange.body.read.get_or_insert(0);
        exchange.bytes.decoded = Some(read);
        let spans = &mut exchange.spans;
        let first = spans.wait.map_or(arrival.at, |wait| wait.end);
        let end = arrival.at.max(first);
        match (self.head_at, self.body_at) {
            (Some(head), Some(body)) if body > head => {
                // a head that came in pieces belongs to the wait for it
                if let Some(wait) = &mut spans.wait {
                    wait.end = head;
                }
                spans.headers_to_body = Some(Span::new(head, body));
                spans.receive = Some(Span::new(body, end));
            }
            _ => spans.receive = Some(Span::new(first, end)),
        }
        exchange.end = end;
        if arrival.stamped {
            exchange.own_queue = Some(Span::new(end, arrival.read));
        }
        Answered {
            exchange: self.exchange,
            reply: self.reply,
        }
    }

    /// The exchange failed.
    pub(crate) fn fail(mut self, kind: Failure, at: Nanos) -> Answered {
        self.exchange.outcome = Outcome::Failed(kind);
        self.exchange.end = at.max(self.exchange.at);
        Answered {
            exchange: self.exchange,
            reply: self.reply,
        }
    }

    /// The kind of failure when the stream ended before the answer was complete: `failure` is what the kernel said, if anything.
    pub(crate) fn cut_off(&self, failure: Option<Failure>) -> Failure {
        let reused = self.exchange.ordinal > Some(1);
        match failure {
            Some(Failure::Reset) | None if !self.begun && reused => Failure::Stale,
            None if !self.begun => Failure::Closed,
            None => Failure::Truncated,
            Some(kind) => kind,
        }
    }
}
