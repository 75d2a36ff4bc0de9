//! The outcome of an exchange, derived from the end that `wire` observed and the end of its
//! connection.

use crate::{FirstEnd, Side};
use intact_ledger::{Certainty, Failure, Outcome, Side as LedgerSide, UnansweredRequest};
use intact_wire::exchange::Outcome as SeenOutcome;

const CLIENT_CLOSED: &str = "the client closed the connection before the response was complete";

/// The facts that decide an outcome, in addition to the observed end of the exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    /// The first end of the connection.
    pub(crate) end: Option<FirstEnd>,
    /// The server sent a FIN.
    pub(crate) has_server_fin: bool,
    /// The end of the connection was not observed, or bytes before it are missing.
    pub(crate) is_unobserved: bool,
    /// All bytes were observed until the recording ended, before the connection did.
    pub(crate) is_pending: bool,
    /// Bytes within the connection may be missing.
    pub(crate) is_partial: bool,
    /// Decides the outcome if no byte of a response arrived.
    pub(crate) request: UnansweredRequest,
}

/// The outcome of an exchange, for its row.
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

    /// The outcome of an exchange whose request the server's TCP had not acknowledged when the
    /// recording ended.
    pub(crate) fn unheard() -> Judgement {
        Judgement {
            detail: Some("no acknowledgement of the request came until the recording ended"),
            ..Judgement::failed(Failure::Aborted)
        }
    }

    fn undecided(outcome: Outcome) -> Judgement {
        Judgement {
            outcome,
            certainty: Certainty::Exact,
            detail: Some(match outcome {
                Outcome::Pending => "no complete response came until the recording ended",
                _ => "its end was not observed",
            }),
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
        self.outcome.is_undecided()
    }
}

impl Circumstances {
    /// Derives the outcome from the observed end.
    pub(crate) fn judge(self, outcome: SeenOutcome) -> Judgement {
        let is_by_client = self
            .end
            .is_some_and(|end| end.by == Some(LedgerSide::Client));
        // a client that half-closes still reads until the server's FIN
        let is_open = self.end.is_none() || is_by_client && !self.has_server_fin;
        let failed = Judgement::failed;
        let client_closed = || Judgement::client_closed(CLIENT_CLOSED);
        let unobserved = || {
            Judgement::undecided(match self.is_pending {
                true => Outcome::Pending,
                false => Outcome::Unknown,
            })
        };
        match outcome {
            SeenOutcome::Malformed if !self.is_partial => Judgement {
                detail: Some("the response breaks RFC 9113"),
                ..failed(Failure::Malformed)
            },
            SeenOutcome::UntilClose if self.request.by_reset && is_by_client => client_closed(),
            SeenOutcome::UntilClose if self.request.by_reset => failed(Failure::Reset),
            SeenOutcome::UntilClose if is_open && self.is_unobserved => unobserved(),
            SeenOutcome::UntilClose if is_open && is_by_client => client_closed(),
            SeenOutcome::UntilClose if self.end.is_none() => failed(Failure::Aborted),
            SeenOutcome::Complete | SeenOutcome::UntilClose | SeenOutcome::Malformed => Judgement {
                outcome: Outcome::Ok,
                certainty: Certainty::Exact,
                detail: None,
            },
            // an exchange that was not observed to the end may have failed or not
            SeenOutcome::Unanswered | SeenOutcome::Cut if self.is_unobserved => unobserved(),
            SeenOutcome::Unseen if self.is_partial => Judgement::undecided(Outcome::Unknown),
            SeenOutcome::Unseen => Judgement::inferred(
                Outcome::Failed(Failure::Malformed),
                "a part of it was not HTTP",
            ),
            SeenOutcome::Unanswered | SeenOutcome::Cut if is_by_client => client_closed(),
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
