//! The passive reader of `watch` and `audit`: turns the bytes of a connection and their times into
//! rows of the ledger.
//!
//! No sockets, no clock, no packets. A producer feeds an [`ObservedConnection`] with the bytes of
//! both sides and implements a [`RunContext`] that takes the rows. `watch` has bytes from its
//! relay, `audit` from reassembled TCP segments. The same bytes at the same times give the same
//! rows.
//!
//! # Decisions
//!
//! * **Protocol**: the first bytes decide. An HTTP/1 request is recognised by its whole first line.
//!   A named protocol without HTTP is counted and not read. TLS within TLS is not read.
//! * **Origin**: the authority of the first request that has one, from `Host` or `:authority`. A
//!   missing port is the default port of the scheme (RFC 9110 section 4.2). Before such a request,
//!   the host is the TLS server name, else the name that the client looked up, else the peer's
//!   address. The port is then the peer's. So it is for a first request with a target in absolute
//!   form: that goes to a proxy, which takes requests for any origin.
//! * **Tunnel**: a CONNECT of HTTP/1 is part of the setup, and its target is the origin. A granted
//!   one extends `connect`, and later bytes are read as the same connection. If the last one was
//!   refused, the dial failed. After a 101 the reader continues only with HTTP/2.
//! * **Reuse**: [`intact_ledger::SetupWait`]. Unknown for the first exchange of a connection whose
//!   start was not observed.
//! * **Spans**: an exchange that waited for the setup begins with the connection. `blocked` is the
//!   time between the setup and the first byte of the request. `wait` lasts to the first byte of
//!   the response, or to the end of a header section whose body comes later. The spans add up to
//!   the latency.
//! * **TLS**: `ssl` begins where `connect` ends, and ends with the client's last handshake message.
//!   An alert before anything else of the server refuses the handshake, although the client may
//!   have sent requests by then: they are no exchanges.
//! * **End of an exchange**: the last byte of the response. A failed exchange ends with the first
//!   FIN or RST, or the reset of its stream, and at the latest with its last byte.
//! * **Outcome**: `client-closed` if the client closes or resets before the response is complete. A
//!   FIN alone is a half-close, and a response that is complete after it is ok. A RST after the FIN
//!   shows that the client had closed both directions: then the exchange ended with the FIN.
//!   `aborted` has two causes: the run was stopped, or a capture ended while the client
//!   retransmitted a request. [`intact_ledger::UnansweredRequest`] decides whether an unanswered
//!   request is `stale`, `reset` or `closed`. The outcome of a response whose end was not
//!   observed is unknown. It is `pending` where the recording ended first, and lacks nothing.
//! * **gRPC**: the outcome of a complete call follows from `grpc-status`, as in every producer
//!   ([`intact_ledger::Exchange::judge_grpc`]). The outcome of a call whose end was not observed
//!   is unknown.
//! * **Body**: `body.read` has the bytes that passed the point of observation on the way to the
//!   client; absent if unknown.
//! * **Fingerprint**: over method, target and the whole body, of any length. Absent if a part was
//!   not observed.
//! * **Identity**: salted hashes of what names the user in `Authorization`, and of `Cookie`. Never
//!   written.
//! * **Server**: the product of the last `Via`, else of `Server`, on the first connection of the
//!   run that names it for its origin.
//! * **Terms**: the connection keeps the first terms that were announced, each exchange its own.
//! * **Partial header sections**: an HTTP/1 request whose header section is cut off or malformed is
//!   an exchange. Its target is absent if the request line is incomplete. Such a response ends with
//!   the last byte before the next message. Its outcome is unknown if bytes are missing. Otherwise
//!   it is inferred to be `malformed`.
//! * **Pushed streams** and unsolicited responses are no exchanges. They may announce the end of
//!   the connection.
//! * **Segments**: retransmissions, and segments that awaited a late acknowledgement, belong to the
//!   exchanges during which they were observed. A fresh exchange also has those of the setup.
//! * **Close**: the first `close_notify`, FIN or RST decides who closed, and when. GOAWAY by the
//!   same side names the kind. The end of a connection whose dial failed has no row.
//! * **Close point**: `stale` if a request began after the server's end or was stale. Otherwise
//!   `mid-exchange` if an exchange was cut or ended later. Otherwise
//!   [`intact_ledger::ClosePoint::after`] decides.
//! * **Inference**: without secrets, `watch` infers requests from bursts of TLS records, because
//!   the relay observes each write of the program. `audit` does not: segments differ from writes,
//!   and packets may be missing.

mod app_protocol;
pub mod authority;
mod client_turns;
mod connection;
mod connection_row;
mod detect_protocol;
mod exchange_row;
mod identity;
mod judgement;
mod lower_bounds;
mod open_exchanges;
mod progress;
mod record_sizes;
mod request_inference;
mod rows;
mod run_context;
mod segment_events;
mod server_product;
mod tls_connection;
mod tls_facts;
pub mod user_agent;

pub use connection::{ObservedConnection, Opaque};
pub use detect_protocol::{DetectedProtocol, detect_client, detect_server};
pub use intact_wire::Side;
pub use lower_bounds::{LowerBound, LowerBounds};
pub use progress::{Progress, ResponsePart};
pub use run_context::RunContext;
pub use server_product::{KnownServers, server_product};
pub use tls_connection::Sealed;

use intact_ledger::{CloseKind, Evidence, EvidenceSet, Nanos};

/// What the bytes of a connection show. Lookups, and dials that fail, are the producer's.
pub const EVIDENCE: EvidenceSet = EvidenceSet::of(&[
    Evidence::Announcements,
    Evidence::Bodies,
    Evidence::Calls,
    Evidence::Contents,
    Evidence::Durations,
    Evidence::Ends,
    Evidence::Handshakes,
    Evidence::Identities,
    Evidence::Repeats,
    Evidence::Reuse,
    Evidence::Setup,
]);

/// How TLS is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsReading {
    /// Secrets may come.
    pub expects_secrets: bool,
    /// Requests are inferred from record sizes where no secrets come.
    pub infers_requests: bool,
    /// The process in whose memory secrets may be searched.
    pub process: Option<u32>,
}

/// What shows that several processes may use a connection of HTTP/1 or TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharingSign {
    /// A request began before the response to the one before it: a client of HTTP/1 waits for it,
    /// unless it pipelines.
    Overlap,
    /// A record of the client does not decrypt as the next one: another process has written it.
    ForeignRecord,
}

/// Why no more bytes come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All bytes of the connection were observed. If neither side ended it, the end of the run cut
    /// it.
    Observed,
    /// Bytes are missing, or the connection may continue unobserved: an incomplete response is not
    /// a failure.
    Unobserved,
}

/// How a connection began to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FirstEnd {
    pub(crate) at: Nanos,
    /// Absent where packets of the other side are missing.
    pub(crate) by: Option<intact_ledger::Side>,
    pub(crate) how: CloseKind,
}

/// The side as the ledger names it.
pub fn ledger_side(side: Side) -> intact_ledger::Side {
    match side {
        Side::Client => intact_ledger::Side::Client,
        Side::Server => intact_ledger::Side::Server,
    }
}
