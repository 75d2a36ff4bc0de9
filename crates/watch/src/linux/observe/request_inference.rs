//! Counts requests on an encrypted connection by whose turn it is to talk: a request begins where the program speaks after
//! the server has.
//!
//! Exact for requests that are sent in one go, one after the other; what of HTTP/2 is no request is told by its size. A body
//! that is sent after an interim answer, pipelining and HTTP/2 streams beside each other are miscounted, which is why all of it is
//! marked as inferred.

use super::record_sizes::RecordSizes;
use super::tls_connection::Mark;
use intact_wire::Side;

/// Counts turns.
#[derive(Default)]
pub(super) struct RequestInference {
    open: Option<InferredExchange>,
    /// What is a request if it is answered.
    doubtful: Option<Mark>,
}

/// What is taken for one request and its answer. Times are in nanoseconds, bytes are encrypted ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InferredExchange {
    pub(super) started: u64,
    /// When the program had last spoken before the answer.
    pub(super) sent: u64,
    /// When the answer began.
    pub(super) answered: Option<u64>,
    pub(super) last: u64,
    pub(super) up: u64,
    pub(super) down: u64,
}

impl RequestInference {
    /// Takes what passed; the turn that it ended.
    pub(super) fn take(&mut self, mark: Mark) -> Option<InferredExchange> {
        match (mark.shape, mark.from) {
            (RecordSizes::Farewell, _) => return None,
            (RecordSizes::Control, _) => {
                self.doubtful = None;
                return None;
            }
            (RecordSizes::Doubtful, _) if !self.is_asking() => {
                self.doubtful = Some(mark);
                return None;
            }
            (_, Side::Client) => self.doubtful = None,
            (_, Side::Server) => {
                if let Some(asked) = self.doubtful.take() {
                    let before = self.speak(asked);
                    self.speak(mark);
                    return before;
                }
            }
        }
        self.speak(mark)
    }

    fn speak(&mut self, mark: Mark) -> Option<InferredExchange> {
        match (mark.from, &mut self.open) {
            (Side::Client, Some(turn)) if turn.answered.is_none() => {
                turn.sent = mark.at;
                turn.last = mark.at;
                turn.up += mark.bytes;
                None
            }
            (Side::Client, open) => open.replace(InferredExchange {
                started: mark.at,
                sent: mark.at,
                answered: None,
                last: mark.at,
                up: mark.bytes,
                down: 0,
            }),
            (Side::Server, Some(turn)) => {
                turn.answered.get_or_insert(mark.at);
                turn.last = mark.at;
                turn.down += mark.bytes;
                None
            }
            // session tickets, settings: nobody asked
            (Side::Server, None) => None,
        }
    }

    /// The turn that was open at the end.
    pub(super) fn end(&mut self) -> Option<InferredExchange> {
        self.open.take()
    }

    /// Whether the program has spoken and not been answered.
    pub(super) fn is_asking(&self) -> bool {
        self.open.is_some_and(|turn| turn.answered.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_begins_where_the_program_speaks_after_the_server() {
        use Side::{Client, Server};
        let mut guess = RequestInference::default();
        let mut turns = Vec::new();
        let talk = [
            Server, Client, Client, Server, Server, Client, Server, Client,
        ];
        for (at, from) in talk.into_iter().enumerate() {
            let at = at as u64;
            turns.extend(guess.take(Mark {
                from,
                at,
                bytes: 10,
                shape: RecordSizes::Data,
            }));
        }
        assert!(guess.is_asking());
        turns.extend(guess.end());
        let told: Vec<_> = turns
            .iter()
            .map(|turn| (turn.started, turn.sent, turn.answered, turn.last, turn.up))
            .collect();
        assert_eq!(
            told,
            [
                (1, 2, Some(3), 4, 20),
                (5, 5, Some(6), 6, 10),
                (7, 7, None, 7, 10)
            ]
        );
    }

    #[test]
    fn what_may_be_a_request_is_one_if_it_is_answered() {
        use RecordSizes::{Control, Data, Doubtful};
        use Side::{Client, Server};
        let count = |talk: &[(Side, RecordSizes)]| {
            let mut guess = RequestInference::default();
            let mut turns = 0;
            for (at, &(from, shape)) in talk.iter().enumerate() {
                let mark = Mark {
                    from,
                    at: at as u64,
                    bytes: 10,
                    shape,
                };
                turns += u32::from(guess.take(mark).is_some());
            }
            turns + u32::from(guess.end().is_some())
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
        // settings, and their acknowledgement, before the answer
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
}
