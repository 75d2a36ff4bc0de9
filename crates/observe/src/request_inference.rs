//! Infers requests on an encrypted connection from the order of its bursts: a request begins if the
//! client sends after the server has sent.
//!
//! Exact for sequential requests that are each sent in one piece. Frames of HTTP/2 without requests
//! are excluded by their size. A body that follows an interim response and pipelining are
//! miscounted, so every row is marked as inferred. If streams of HTTP/2 may overlap, the count is a
//! lower bound ([`RequestInference::is_lower_bound`]).

use crate::record_sizes::RecordSizes;
use intact_wire::Side;

/// A burst of encrypted application data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealedBurst {
    pub(crate) from: Side,
    pub(crate) at: u64,
    /// Number of encrypted bytes.
    pub(crate) bytes: u64,
    pub(crate) sizes: RecordSizes,
    /// The connection is known to carry HTTP/2.
    pub(crate) is_http2: bool,
    /// It holds at most one frame with a header section.
    pub(crate) is_single: bool,
}

/// Infers exchanges.
#[derive(Clone, Copy, Default)]
pub(crate) struct RequestInference {
    /// Number of exchanges that were returned.
    pub(crate) ended: u64,
    open: Option<InferredExchange>,
    /// A burst that is a request if a response follows.
    doubtful: Option<SealedBurst>,
    /// There may be requests that are not counted.
    pub(crate) is_lower_bound: bool,
}

/// Bursts that are inferred to be one request and its response. Times are in nanoseconds; bytes are
/// encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InferredExchange {
    pub(crate) started: u64,
    /// The last burst of the client before the response.
    pub(crate) sent: u64,
    /// When the response began.
    pub(crate) answered: Option<u64>,
    pub(crate) last: u64,
    pub(crate) up: u64,
    pub(crate) down: u64,
    /// The connection is known to carry HTTP/2.
    pub(crate) is_http2: bool,
}

impl RequestInference {
    /// Adds a burst. Returns the exchange that it ends.
    pub(crate) fn take(&mut self, burst: SealedBurst) -> Option<InferredExchange> {
        let ended = self.take_next(burst);
        self.ended += u64::from(ended.is_some());
        ended
    }

    fn take_next(&mut self, burst: SealedBurst) -> Option<InferredExchange> {
        match (burst.sizes, burst.from) {
            (RecordSizes::Close, _) => return None,
            (RecordSizes::Control | RecordSizes::Updates, _) => {
                self.is_lower_bound |= burst.sizes == RecordSizes::Updates;
                self.doubtful = None;
                return None;
            }
            (RecordSizes::Doubtful, _) if !self.is_asking() => {
                self.doubtful = Some(burst);
                return None;
            }
            (_, Side::Client) => self.doubtful = None,
            (_, Side::Server) => {
                if let Some(asked) = self.doubtful.take() {
                    let before = self.extend(asked);
                    self.extend(burst);
                    return before;
                }
            }
        }
        if burst.from == Side::Client && burst.is_http2 {
            // one body in parts, or concurrent streams
            self.is_lower_bound |= self.is_asking() || !burst.is_single;
        }
        self.extend(burst)
    }

    fn extend(&mut self, burst: SealedBurst) -> Option<InferredExchange> {
        match (burst.from, &mut self.open) {
            (Side::Client, Some(one)) if one.answered.is_none() => {
                one.sent = burst.at;
                one.last = burst.at;
                one.up += burst.bytes;
                one.is_http2 |= burst.is_http2;
                None
            }
            (Side::Client, open) => open.replace(InferredExchange {
                started: burst.at,
                sent: burst.at,
                answered: None,
                last: burst.at,
                up: burst.bytes,
                down: 0,
                is_http2: burst.is_http2,
            }),
            (Side::Server, Some(one)) => {
                one.answered.get_or_insert(burst.at);
                one.last = burst.at;
                one.down += burst.bytes;
                None
            }
            // session tickets, SETTINGS: no request
            (Side::Server, None) => None,
        }
    }

    /// The exchange that is open at the end. In HTTP/2 a burst without a response may be any frame,
    /// so it is none.
    pub(crate) fn end(&mut self) -> Option<InferredExchange> {
        let last = self.open.take();
        last.filter(|one| one.answered.is_some() || !one.is_http2)
    }

    /// Whether the response to the last request has begun.
    pub(crate) fn is_answered(&self) -> bool {
        self.open.is_some_and(|one| one.answered.is_some())
    }

    /// Whether the last request has no response yet.
    pub(crate) fn is_asking(&self) -> bool {
        self.open.is_some_and(|one| one.answered.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_begins_where_the_client_sends_after_the_server() {
        use Side::{Client, Server};
        let mut inference = RequestInference::default();
        let mut exchanges = Vec::new();
        let talk = [
            Server, Client, Client, Server, Server, Client, Server, Client,
        ];
        for (at, from) in talk.into_iter().enumerate() {
            let at = at as u64;
            exchanges.extend(inference.take(SealedBurst {
                from,
                at,
                bytes: 10,
                sizes: RecordSizes::Data,
                is_http2: false,
                is_single: true,
            }));
        }
        assert!(inference.is_asking());
        exchanges.extend(inference.end());
        let inferred: Vec<_> = exchanges
            .iter()
            .map(|one| (one.started, one.sent, one.answered, one.last, one.up))
            .collect();
        assert_eq!(
            inferred,
            [
                (1, 2, Some(3), 4, 20),
                (5, 5, Some(6), 6, 10),
                (7, 7, None, 7, 10)
            ]
        );
    }

    #[test]
    fn a_doubtful_burst_is_a_request_if_a_response_follows() {
        use RecordSizes::{Control, Data, Doubtful};
        use Side::{Client, Server};
        let count = |talk: &[(Side, RecordSizes)]| {
            let mut inference = RequestInference::default();
            let mut exchanges = 0;
            for (at, &(from, sizes)) in talk.iter().enumerate() {
                let burst = SealedBurst {
                    from,
                    at: at as u64,
                    bytes: 10,
                    sizes,
                    is_http2: false,
                    is_single: true,
                };
                exchanges += u32::from(inference.take(burst).is_some());
            }
            exchanges + u32::from(inference.end().is_some())
        };
        let exchange = [(Client, Data), (Server, Data)];
        let after = |more: &[(Side, RecordSizes)]| count(&[&exchange, more].concat());
        assert_eq!(after(&[(Client, Doubtful)]), 1);
        assert_eq!(after(&[(Client, Doubtful), (Server, Control)]), 1);
        assert_eq!(after(&[(Client, Doubtful), (Server, Data)]), 2);
        assert_eq!(
            after(&[(Client, Doubtful), (Client, Data), (Server, Data)]),
            2
        );
        // settings and their acknowledgement, before the response
        assert_eq!(
            after(&[
                (Client, Data),
                (Server, Control),
                (Client, Data),
                (Server, Data)
            ]),
            2
        );
        assert_eq!(after(&[(Client, Control), (Server, Data)]), 1);
    }

    #[test]
    fn streams_that_may_overlap_make_the_count_a_lower_bound() {
        use RecordSizes::{Data, Updates};
        use Side::{Client, Server};
        let infer = |talk: &[(Side, RecordSizes, bool)], is_http2: bool| {
            let mut inference = RequestInference::default();
            for (at, &(from, sizes, is_single)) in talk.iter().enumerate() {
                let burst = SealedBurst {
                    from,
                    at: at as u64,
                    bytes: 10,
                    sizes,
                    is_http2,
                    is_single,
                };
                inference.take(burst);
            }
            let last = inference.end();
            (inference.is_lower_bound, last.is_some())
        };
        let (ask, answer) = ((Client, Data, true), (Server, Data, true));
        assert_eq!(infer(&[ask, answer, ask, answer], true), (false, true));
        assert_eq!(infer(&[ask, ask, answer], true), (true, true));
        assert_eq!(infer(&[(Client, Data, false), answer], true), (true, true));
        let updates = (Client, Updates, true);
        assert_eq!(infer(&[ask, answer, updates, answer], true), (true, true));
        // a request without a response: in HTTP/2 it may be any frame
        assert_eq!(infer(&[ask], true), (false, false));
        assert_eq!(infer(&[ask, ask], false), (false, true));
    }
}
