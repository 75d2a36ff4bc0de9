//! Calls of gRPC: what is known of one in addition to its exchange, and the outcome that follows
//! from it: the one rule of all producers.

use crate::exchange::Exchange;
use crate::failure::{Failure, Outcome};
use serde::{Deserialize, Serialize};

/// A call of gRPC. The exchange that carries it has a request with `Content-Type:
/// application/grpc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrpcCall {
    /// `grpc-status`; absent if the response ended without one, or if it was not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// The names of the statuses, by code (gRPC `doc/statuscodes.md`).
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

impl GrpcCall {
    /// Whether the call succeeded: status 0.
    pub fn is_ok(self) -> bool {
        self.status == Some(0)
    }

    /// The status in words: `grpc-status 5 (NOT_FOUND)`.
    pub fn words(self) -> String {
        let Some(status) = self.status else {
            return "no grpc-status".to_owned();
        };
        match NAMES.get(usize::from(status)) {
            Some(name) => format!("grpc-status {status} ({name})"),
            None => format!("grpc-status {status}"),
        }
    }
}

impl Exchange {
    /// Derives the outcome of a complete response to a call of gRPC: only the status 0 is ok. A
    /// response without a status comes from a server that does not speak gRPC there. Exchanges that
    /// are no call, or that failed already, stay as they are.
    pub fn judge_grpc(&mut self) {
        let Some(call) = self
            .grpc
            .filter(|call| self.outcome.is_ok() && !call.is_ok())
        else {
            return;
        };
        self.outcome = Outcome::Failed(Failure::GrpcStatus);
        let words = match (call.status, self.status) {
            (None, Some(status)) => format!("{}, HTTP status {status}", call.words()),
            _ => call.words(),
        };
        self.detail = Some(words.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Nanos;

    #[test]
    fn only_the_grpc_status_0_is_ok() {
        let judged = |grpc: Option<GrpcCall>, outcome| {
            let mut exchange = Exchange::new(1, Nanos(0));
            exchange.status = Some(200);
            exchange.outcome = outcome;
            exchange.grpc = grpc;
            exchange.judge_grpc();
            (exchange.outcome, exchange.detail)
        };
        let call = |status| Some(GrpcCall { status });
        let failed = Outcome::Failed(Failure::GrpcStatus);
        let words = |text: &str| Some(text.into());
        assert_eq!(judged(call(Some(0)), Outcome::Ok), (Outcome::Ok, None));
        assert_eq!(
            judged(call(Some(5)), Outcome::Ok),
            (failed, words("grpc-status 5 (NOT_FOUND)"))
        );
        assert_eq!(
            judged(call(None), Outcome::Ok),
            (failed, words("no grpc-status, HTTP status 200"))
        );
        assert_eq!(judged(None, Outcome::Ok), (Outcome::Ok, None));
        let reset = Outcome::Failed(Failure::StreamReset);
        assert_eq!(judged(call(None), reset), (reset, None));
    }

    #[test]
    fn a_status_has_its_name_and_only_zero_is_ok() {
        let call = |status| GrpcCall { status };
        assert_eq!(call(Some(5)).words(), "grpc-status 5 (NOT_FOUND)");
        assert_eq!(call(Some(99)).words(), "grpc-status 99");
        assert_eq!(call(None).words(), "no grpc-status");
        assert!(call(Some(0)).is_ok());
        assert!(!call(Some(16)).is_ok() && !call(None).is_ok());
    }
}
