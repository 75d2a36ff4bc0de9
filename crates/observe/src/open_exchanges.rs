//! The open exchanges of a connection: their positions, fingerprints and last bytes.

use crate::{Side, identity};
use intact_ledger::{FingerprintBuilder, FingerprintKey, Identity};
use intact_wire::exchange::{Exchange as Seen, Request};

/// The open exchanges, the oldest first.
#[derive(Default)]
pub(crate) struct OpenExchanges {
    open: Vec<OpenExchange>,
    /// Number of requests so far.
    pub(crate) begun: u32,
}

/// An open exchange.
#[derive(Default)]
pub(crate) struct OpenExchange {
    pub(crate) stream: Option<u32>,
    pub(crate) begun_at: u64,
    /// Its position on the connection, from 1.
    pub(crate) ordinal: u32,
    /// `None` if the request's header section is hidden.
    pub(crate) fingerprint: Option<FingerprintBuilder>,
    /// The user of the request.
    pub(crate) identity: Identity,
    /// The last byte of the response so far.
    pub(crate) last_at: Option<u64>,
    /// The last byte of its body that came before the client closed its direction.
    pub(crate) heard_at: Option<u64>,
}

impl OpenExchanges {
    /// Number of open exchanges.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Adds the exchange of a request.
    pub(crate) fn begin(&mut self, stream: Option<u32>, request: &Request, key: &FingerprintKey) {
        self.begun += 1;
        let is_known =
            !request.is_partial && !request.method.is_empty() && !request.target.is_empty();
        self.open.push(OpenExchange {
            stream,
            begun_at: request.started_at,
            ordinal: self.begun,
            fingerprint: is_known.then(|| key.begin(&request.method, &request.target)),
            identity: identity::of(&request.user, key),
            ..OpenExchange::default()
        });
    }

    /// Records that the client closes its direction: what comes from now on may not reach it.
    pub(crate) fn note_client_fin(&mut self) {
        for open in &mut self.open {
            open.heard_at = open.heard_at.or(open.last_at);
        }
    }

    /// Adds bytes of a body.
    pub(crate) fn take_body(&mut self, from: Side, stream: Option<u32>, bytes: &[u8], at: u64) {
        let mut of_stream = self.open.iter_mut().filter(|open| open.stream == stream);
        match from {
            // the current request is the last one, the current response belongs to the first
            Side::Client => {
                let open = of_stream.next_back();
                if let Some(fingerprint) = open.and_then(|open| open.fingerprint.as_mut()) {
                    fingerprint.update(bytes);
                }
            }
            Side::Server => {
                if let Some(open) = of_stream.next() {
                    open.last_at = Some(at);
                }
            }
        }
    }

    /// Removes the exchange of `seen`, or makes one if its request was not observed.
    pub(crate) fn close(&mut self, seen: &Seen) -> OpenExchange {
        let begun_at = seen.request.as_ref().map(|request| request.started_at);
        let place = self.open.iter().position(|open| {
            open.stream == seen.stream && begun_at.is_some_and(|begun| begun == open.begun_at)
        });
        if let Some(place) = place {
            return self.open.remove(place);
        }
        self.begun += 1;
        let response = seen.response.as_ref();
        OpenExchange {
            stream: seen.stream,
            begun_at: begun_at
                .or(response.map(|response| response.started_at))
                .unwrap_or_default(),
            ordinal: self.begun,
            ..OpenExchange::default()
        }
    }

    /// Records that the HTTP/1 request that asked for HTTP/2 is answered on stream 1.
    pub(crate) fn enter_upgrade(&mut self) {
        if let Some(open) = self.open.iter_mut().find(|open| open.stream.is_none()) {
            open.stream = Some(1);
        }
    }
}
