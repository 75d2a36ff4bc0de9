//! The outcome of an exchange, from how `wire` saw it end and how its connection ended.

use crate::{FirstEnd, Side};
use intact_ledger::{Certainty, Failure, Outcome, Side as LedgerSide, UnansweredRequest};
use intact_wire::exchange::Outcome as SeenOutcome;

const CLIENT_CLOSED: &str = "the client closed the connection before the response was complete";

/// What decides an outcome in addition to how the exchange was seen to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    /// How the connection began to end.
    pub(crate) end: Option<FirstEnd>,
    /// The server sent a FIN.
    pub(crate) has_server_fin: bool,
    /// The end of the connection was not observed, or bytes before it are missing.
    pub(crate) is_unobserved: bool,
    /// Bytes may be missing in the middle.
    pub(crate) is_partial: bool,
    /// Decides where no byte of a response came.
    pub(crate) request: UnansweredRequest,
}

/// How an exchange ended, for its row.
#[derive(Clone, Debug)]
pub(crate) struct Judgement {
    pub(crate) outcome: Outcome,
    pub(crate) certainty: Certainty,
    pub(crate) detail: Option<&'static str>,
}

impl Judgement {
    fn failed(kind: Failure) -> Judgement {
        Judgement {
            outcome: Outcome::Failed(kind),
            certainty: Certainty::Exact,
            detail: None,
        }
    }

    fn client_closed(detail: &'static str) -> Judgement {
        Judgement {
            detail: Some(detail),
            ..Judgement::failed(Failure::ClientClosed)
        }
    }

    /// The recording ended before the server's TCP had acknowledged the request.
    pub(crate) fn unheard() -> Judgement {
        Judgement {
            detail: Some("no acknowledgement of the request came until the recording ended"),
            ..Judgement::failed(Failure::Aborted)
        }
    }

    fn inferred(outcome: Outcome, why: &str) -> Judgement {
        Judgement {
            outcome,
            certainty: Certainty::Inferred(why.into()),
            detail: None,
        }
    }

    /// Whether the end of the exchange was not observed.
    pub(crate) fn is_unobserved(&self) -> bool {
        self.outcome.is_ok() && !self.certainty.is_exact()
    }
}

impl Circumstances {
    /// The outcome of an exchange that was seen to end like this.
    pub(crate) fn judge(self, outcome: SeenOutcome) -> Judgement {
        let is_by_client = self
            .end
            .is_some_and(|end| end.by == Some(LedgerSide::Client));
        // a client that half closes reads on until the server's FIN
        let is_open = self.end.is_none() || is_by_client && !self.has_server_fin;
        let failed = Judgement::failed;
        match outcome {
            SeenOutcome::Malformed if !self.is_partial => Judgement {
                detail: Some("the response breaks RFC 9113"),
                ..failed(Failure::Malformed)
            },
            SeenOutcome::UntilClose if self.request.by_reset && is_by_client => {
                Judgement::client_closed(CLIENT_CLOSED)
            }
            SeenOutcome::UntilClose if self.request.by_reset => failed(Failure::Reset),
            SeenOutcome::UntilClose if is_open && self.is_unobserved => {
                Judgement::inferred(Outcome::Ok, "its end was not observed")
            }
            SeenOutcome::UntilClose if is_open && is_by_client => {
                Judgement::client_closed(CLIENT_CLOSED)
            }
            SeenOutcome::UntilClose if self.end.is_none() => failed(Failure::Aborted),
            SeenOutcome::Complete | SeenOutcome::UntilClose | SeenOutcome::Malformed => Judgement {
                outcome: Outcome::Ok,
                certainty: Certainty::Exact,
                detail: None,
            },
            // what was not observed did not fail
            SeenOutcome::Unanswered | SeenOutcome::Cut if self.is_unobserved => {
                Judgement::inferred(Outcome::Ok, "its end was not observed")
            }
            SeenOutcome::Unseen if self.is_partial => {
                Judgement::inferred(Outcome::Ok, "its end was not observed")
            }
            SeenOutcome::Unseen => Judgement::inferred(
                Outcome::Failed(Failure::Malformed),
                "a part of it was not HTTP",
            ),
            SeenOutcome::Unanswered | SeenOutcome::Cut if is_by_client => {
                Judgement::client_closed(CLIENT_CLOSED)
            }
            // only a run that is stopped ends a connection that neither side closed
            SeenOutcome::Unanswered | SeenOutcome::Cut if self.end.is_none() => {
                failed(Failure::Aborted)
            }
            SeenOutcome::Unanswered => {
                let (kind, detail) = self.request.failure();
                Judgement {
                    detail,
                    ..failed(kind)
                }
            }
            SeenOutcome::Cut if !self.request.by_reset => failed(Failure::Truncated),
            SeenOutcome::Cut => failed(Failure::Reset),
            SeenOutcome::Reset {
                by: Side::Client, ..
            } => Judgement::client_closed(
                "the client reset the stream before the response was complete",
            ),
            SeenOutcome::Reset { .. } => failed(Failure::StreamReset),
            SeenOutcome::Refused => failed(Failure::Refusal),
        }
    }
}
