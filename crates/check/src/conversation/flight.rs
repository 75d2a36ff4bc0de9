//! The exchange in flight: its times, and what its answer told.

use intact_client::{Arrival, Stopwatch, names_tls_port};
use intact_ledger::{Exchange, Failure, Nanos, Protocol, Setup};

/// Fields of an answer that are remembered; the rest is not worth the memory.
const MOST_FIELDS: usize = 128;
/// Bytes of a field's value that are remembered.
const LONGEST_VALUE: usize = 1024;

/// What an answer told beside what the ledger records. Never written as it is: it may hold secrets.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResponseInfo {
    /// The version in the status line.
    pub(crate) response_version: Option<Protocol>,
    /// Whether the answer leaves the connection open for another, by what it said (RFC 9112 section 9.3).
    pub(crate) keeps: bool,
    /// Whether it is a 400 whose body says that the port speaks TLS.
    pub(crate) is_tls_port: bool,
    fields: Vec<(String, String)>,
}

impl ResponseInfo {
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
    pub(crate) reply: ResponseInfo,
}

impl Answered {
    /// Whether a complete answer came.
    pub(crate) fn is_ok(&self) -> bool {
        self.exchange.outcome.is_ok()
    }
}

/// An exchange under way.
pub(crate) struct InFlight {
    pub(crate) exchange: Exchange,
    pub(crate) reply: ResponseInfo,
    watch: Stopwatch,
}

impl InFlight {
    /// An exchange that begins; `setup` is what its connection took, if it waited for that.
    pub(crate) fn new(mut exchange: Exchange, setup: Option<&Setup>) -> InFlight {
        let watch = Stopwatch::start(&mut exchange, setup);
        InFlight {
            exchange,
            reply: ResponseInfo::default(),
            watch,
        }
    }

    /// Whether nothing of the connection's first response has come yet.
    pub(crate) fn is_unanswered_first(&self) -> bool {
        self.exchange.ordinal == Some(1) && !self.watch.begun()
    }

    /// Looks into the body of a 400 for the words of a port that speaks TLS.
    pub(crate) fn read_refusal(&mut self, piece: &[u8]) {
        if self.exchange.status == Some(400) {
            self.reply.is_tls_port |= names_tls_port(piece);
        }
    }

    /// Notes that the request is with the kernel.
    pub(crate) fn sent(&mut self, at: Nanos) {
        Stopwatch::sent(&mut self.exchange, at);
    }

    /// Notes bytes of the answer, the first ones or later.
    pub(crate) fn hear(&mut self, arrival: Arrival) {
        self.watch.hear(&mut self.exchange, arrival);
    }

    /// Notes that the final head is complete.
    pub(crate) fn head(&mut self, status: u16, arrival: Arrival) {
        self.exchange.status = Some(status);
        self.watch.head(arrival);
    }

    /// Notes so many bytes of the body.
    pub(crate) fn body(&mut self, bytes: usize, arrival: Arrival) {
        if bytes > 0 {
            self.watch.body(arrival);
        }
        *self.exchange.body.read.get_or_insert(0) += bytes as u64;
    }

    /// The answer is complete.
    pub(crate) fn complete(mut self, arrival: Arrival) -> Answered {
        let exchange = &mut self.exchange;
        let read = *exchange.body.read.get_or_insert(0);
        exchange.bytes.decoded = Some(read);
        self.watch.complete(exchange, arrival);
        Answered {
            exchange: self.exchange,
            reply: self.reply,
        }
    }

    /// The exchange failed.
    pub(crate) fn fail(mut self, kind: Failure, at: Nanos) -> Answered {
        Stopwatch::fail(&mut self.exchange, kind, at);
        Answered {
            exchange: self.exchange,
            reply: self.reply,
        }
    }

    /// The kind of failure when the stream ended before the answer was complete: `failure` is what the kernel said, if anything.
    pub(crate) fn cut_off(&self, failure: Option<Failure>) -> Failure {
        let reused = self.exchange.ordinal > Some(1);
        match failure {
            Some(Failure::Reset) | None if !self.watch.begun() && reused => Failure::Stale,
            None if !self.watch.begun() => Failure::Closed,
            None => Failure::Truncated,
            Some(kind) => kind,
        }
    }
}
